//! The transports of one daemon: webhooks as the configuration has them, with the keys that sign, and
//! the program that wakes.

use std::fmt;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use homing_engine::config::Webhook;
use homing_engine::{AttemptResult, BoxFuture, Claimed, Transport, no_transport};
use homing_model::notify::SigningKey;
use homing_model::route::{Address, NoRoute};
use homing_model::wake::Readiness;
use homing_model::{Notify, OsText, Route, Target, Timestamp};
use homing_sys::atomic_file;

use crate::client::Client;
use crate::endpoint::{Caller, Endpoint};
use crate::guard::Policy;
use crate::secret::Secret;
use crate::wake::{self, Surroundings};
use crate::webhook::{Message, deliver};

/// The key of a home that was given none, for its owner to read and to give to receivers.
const OWN_KEY: &str = "webhook.secret";

/// What an attempt may take: longer, and a claim could end before it does.
const MIN_DEADLINE: Duration = Duration::from_millis(100);
const MAX_DEADLINE: Duration = Duration::from_secs(30);

/// What an engine delivers with.
pub struct Transports {
    client: Client,
    home: PathBuf,
    config: parking_lot::RwLock<Webhook>,
    /// Where our own API listens.
    own: parking_lot::RwLock<Option<SocketAddr>>,
    waker: Vec<OsText>,
    surroundings: Surroundings,
}

/// Checks `[webhook]` of a configuration.
///
/// # Errors
/// A sentence about the first entry that makes no sense.
pub fn validate(config: &Webhook) -> Result<(), String> {
    policy(config)?;
    if !(MIN_DEADLINE..=MAX_DEADLINE).contains(&config.deadline.0) {
        return Err("`webhook.deadline` must be between 100ms and 30s".to_owned());
    }
    for key in &config.secret {
        Secret::parse(key.reveal()).map_err(|error| format!("`webhook.secret`: {error}"))?;
    }
    Ok(())
}

fn policy(config: &Webhook) -> Result<Policy, String> {
    let entry = |text: &String| text.parse().map_err(|error| format!("`webhook.allow`: {error}"));
    Ok(Policy { allow: config.allow.iter().map(entry).collect::<Result<_, _>>()?, own: None })
}

impl Transports {
    /// For this home, with this configuration.
    #[must_use]
    pub fn new(home: &Path, config: Webhook) -> Self {
        Self {
            client: Client::new(Policy::default()),
            home: home.to_owned(),
            config: config.into(),
            own: None.into(),
            waker: Vec::new(),
            surroundings: Surroundings::default(),
        }
    }

    /// With a program, and its arguments, that wakes: it is given an [`WakeOrder`](homing_model::WakeOrder) on its input.
    #[must_use]
    pub fn with_waker(self, waker: Vec<OsText>, surroundings: Surroundings) -> Self {
        Self { waker, surroundings, ..self }
    }

    /// Puts another configuration in force.
    pub fn configure(&self, config: Webhook) {
        *self.config.write() = config;
    }

    /// Our own API listens there: webhooks to it are refused.
    pub fn listening(&self, at: Option<SocketAddr>) {
        *self.own.write() = at;
    }

    fn config(&self) -> Webhook {
        self.config.read().clone()
    }

    /// Which addresses are open. A configuration that was put in force was checked before.
    fn policy(&self) -> Policy {
        let own = *self.own.read();
        Policy { own, ..policy(&self.config()).unwrap_or_default() }
    }

    /// What one attempt may take.
    fn deadline(&self) -> Duration {
        self.config().deadline.0
    }

    /// What signs a delivery: its own key, else the configured ones, else the home's.
    fn keys(&self, own: Option<&SigningKey>) -> Result<Vec<Secret>, String> {
        let parse = |key: &SigningKey| Secret::parse(key.reveal()).map_err(|error| error.to_string());
        if let Some(key) = own {
            return Ok(vec![parse(key)?]);
        }
        let configured = self.config().secret;
        if !configured.is_empty() {
            return configured.iter().map(parse).collect();
        }
        let text = own_key(&self.home.join(OWN_KEY))
            .map_err(|error| format!("the home's key ({OWN_KEY}) cannot be had: {error}"))?;
        Ok(vec![Secret::parse(&text).map_err(|error| format!("{OWN_KEY}: {error}"))?])
    }

    /// One attempt at a webhook; an error is why it could not begin.
    async fn post(&self, delivery: &Claimed, now: Timestamp) -> Result<AttemptResult, String> {
        let Target::Webhook(url) = &delivery.target else { return Err(no_transport(&delivery.target)) };
        let policy = self.policy();
        let endpoint = Endpoint::parse(url, Caller::of(!delivery.network), &policy);
        let endpoint = endpoint.map_err(|refusal| refusal.to_string())?;
        let keys = self.keys(delivery.secret.as_ref())?;
        let message = Message::of_notice(&delivery.notice_id, &delivery.notice)?;
        let client = self.client.clone().with_policy(policy).with_deadline(self.deadline());
        Ok(deliver(&client, &endpoint, &keys, &message, now).await)
    }
}

/// Reads the home's key, or makes one.
fn own_key(path: &Path) -> io::Result<String> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        read => return read,
    }
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    let text = format!("whsec_{}\n", STANDARD.encode(bytes));
    match atomic_file::create(path, text.as_bytes(), 0o600) {
        Ok(()) => Ok(text),
        // Another process was first, and all read the winner's.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => fs::read_to_string(path),
        Err(error) => Err(error),
    }
}

impl fmt::Debug for Transports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transports").field("home", &self.home).finish_non_exhaustive()
    }
}

impl Transport for Transports {
    fn attempt<'a>(&'a self, delivery: &'a Claimed, now: Timestamp) -> BoxFuture<'a, AttemptResult> {
        Box::pin(async move { self.post(delivery, now).await.unwrap_or_else(AttemptResult::failed) })
    }

    fn readiness<'a>(&'a self, route: &'a Route, runs: bool) -> BoxFuture<'a, Readiness> {
        Box::pin(wake::readiness(route, runs, &self.surroundings))
    }

    fn waker(&self) -> &[OsText] {
        &self.waker
    }

    fn check_target(&self, target: &Target, notify: &Notify, local: bool) -> Result<(), String> {
        match target {
            Target::Inbox | Target::Exec(_) => Ok(()),
            Target::Webhook(url) => {
                Endpoint::parse(url, Caller::of(local), &self.policy()).map_err(|error| error.to_string())?;
                self.keys(notify.secret.as_ref()).map(drop)
            }
            Target::Wake(_) | Target::Desktop if self.waker.is_empty() => Err(format!(
                "nothing here delivers to `{}`: name `inbox`, an address or `exec:`",
                target.shown()
            )),
            Target::Desktop => wake::no_desktop(&self.surroundings).map_or(Ok(()), Err),
            Target::Wake(whom) => match whom.as_deref().map(str::parse) {
                Some(Ok(Address::Session { url: Some(url), .. })) => {
                    Endpoint::parse(&url, Caller::of(local), &Policy::default())
                        .map(drop)
                        .map_err(|error| error.to_string())
                }
                Some(Ok(Address::Session { url: None, .. } | Address::Tmux(_))) => Ok(()),
                Some(Err(why)) => Err(why.to_string()),
                None => Err(NoRoute::NoSession.to_string()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_makes_its_key_once_and_for_itself() {
        use std::os::unix::fs::PermissionsExt;
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(OWN_KEY);
        let first = own_key(&path).unwrap();
        assert!(Secret::parse(&first).is_ok());
        assert_eq!(own_key(&path).unwrap(), first);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1, "no draft is left");
    }

    #[test]
    fn a_link_that_somebody_left_is_not_followed() {
        let home = tempfile::tempdir().unwrap();
        let (path, other) = (home.path().join(OWN_KEY), home.path().join("other"));
        fs::write(&other, "mine").unwrap();
        let guess = path.with_extension(format!("secret.{}", std::process::id()));
        std::os::unix::fs::symlink(&other, guess).unwrap();
        assert!(Secret::parse(&own_key(&path).unwrap()).is_ok());
        assert_eq!(fs::read_to_string(other).unwrap(), "mine");
    }

    #[test]
    fn what_makes_no_sense_is_said_and_no_key_is_repeated() {
        let config = Webhook { allow: vec!["nonsense!".into()], ..Webhook::default() };
        assert!(validate(&config).unwrap_err().contains("webhook.allow"));
        let config = Webhook { secret: vec![SigningKey::new("hunter2".into())], ..Webhook::default() };
        let said = validate(&config).unwrap_err();
        assert!(said.contains("webhook.secret") && !said.contains("hunter2"), "{said}");
    }

    #[test]
    fn what_can_be_woken_is_taken_where_something_wakes() {
        let home = tempfile::tempdir().unwrap();
        let nowhere = Surroundings { path: home.path().display().to_string(), ..Surroundings::default() };
        let transports =
            Transports::new(home.path(), Webhook::default()).with_waker(vec!["homing".into()], nowhere);
        let check = |text: &str| transports.check_target(&text.parse().unwrap(), &Notify::usual(), true);
        for target in
            ["wake:claude:s1", "wake:codex:t1", "wake:tmux:%1", "wake:opencode:http://127.0.0.1:4096#s"]
        {
            assert_eq!(check(target), Ok(()), "{target}");
        }
        assert!(check("wake:opencode:http://10.0.0.1:4096#s").is_err());
        assert!(check("wake").is_err() && check("wake:nobody").is_err());
        assert!(check("desktop").unwrap_err().contains("notify-send"));
    }

    #[test]
    fn private_addresses_are_refused_at_submit_unless_they_are_allowed() {
        let home = tempfile::tempdir().unwrap();
        let transports = Transports::new(home.path(), Webhook::default());
        let check = |text: &str| transports.check_target(&text.parse().unwrap(), &Notify::usual(), true);
        assert_eq!(check("inbox"), Ok(()));
        assert_eq!(check("http://127.0.0.1:9/x"), Ok(()));
        assert_eq!(check("https://hooks.example/x"), Ok(()));
        assert!(check("https://10.0.0.1/x").is_err());
        assert_eq!(check("exec:true"), Ok(()));
        for target in ["wake:claude:s1", "desktop"] {
            assert!(check(target).unwrap_err().contains("nothing here delivers"), "{target}");
        }
        transports.configure(Webhook { allow: vec!["10.0.0.0/8".into()], ..Webhook::default() });
        assert_eq!(check("https://10.0.0.1/x"), Ok(()));
    }

    #[test]
    fn p11_this_machine_is_closed_to_callers_from_the_network_unless_it_is_allowed() {
        let home = tempfile::tempdir().unwrap();
        let transports = Transports::new(home.path(), Webhook::default());
        let check = |text: &str| transports.check_target(&text.parse().unwrap(), &Notify::usual(), false);
        for target in ["http://127.0.0.1:9/x", "http://localhost:9/x", "https://[::1]/x"] {
            assert!(check(target).unwrap_err().contains("[webhook]"), "{target}");
        }
        assert_eq!(check("https://hooks.example/x"), Ok(()));
        transports.listening(Some("127.0.0.1:9".parse().unwrap()));
        let local = transports.check_target(&"http://127.0.0.1:9/x".parse().unwrap(), &Notify::usual(), true);
        assert!(local.unwrap_err().contains("own listener"));
        transports.listening(None);
        assert_eq!(check("exec:true"), Ok(()), "who has the token is the user");
        transports.configure(Webhook { allow: vec!["127.0.0.1:9".into()], ..Webhook::default() });
        assert_eq!(check("http://127.0.0.1:9/x"), Ok(()));
    }
}
