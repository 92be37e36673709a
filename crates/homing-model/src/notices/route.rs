//! The way of a wake: to whom, and by what is known of the way there. Fixed when the task is submitted.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::notify::Target;
use crate::session::{self, AgentName, Pane, Session};

/// Whom a wake names outright: what follows `wake:`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// `AGENT:SESSION`, or `AGENT:URL#SESSION`.
    Session {
        /// Which agent.
        agent: AgentName,
        /// Its server, if that is named.
        url: Option<String>,
        /// Which session.
        id: String,
    },
    /// `tmux:PANE`.
    Tmux(String),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Session { agent, url: Some(url), id } => write!(f, "{agent}:{url}#{id}"),
            Self::Session { agent, url: None, id } => write!(f, "{agent}:{id}"),
            Self::Tmux(pane) => write!(f, "tmux:{pane}"),
        }
    }
}

impl FromStr for Address {
    type Err = NoRoute;

    fn from_str(text: &str) -> Result<Self, NoRoute> {
        let unknown = || NoRoute::Unknown(crate::sanitize::line(text));
        let (agent, rest) = text.split_once(':').ok_or_else(unknown)?;
        if agent == "tmux" {
            return session::is_pane(rest).then(|| Self::Tmux(rest.to_owned())).ok_or_else(unknown);
        }
        let (url, id) = match rest.rsplit_once('#') {
            Some((url, id)) if is_server(url) => (Some(url.trim_end_matches('/').to_owned()), id),
            Some(_) => return Err(unknown()),
            None => (None, rest),
        };
        let agent = AgentName::new(agent).filter(|_| session::is_id(id)).ok_or_else(unknown)?;
        Ok(Self::Session { agent, url, id: id.to_owned() })
    }
}

/// Whether a text is the address of a server, and nothing of one.
fn is_server(url: &str) -> bool {
    let host = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    host.map(|host| host.trim_end_matches('/')).is_some_and(|host| {
        !host.is_empty() && !host.contains(['/', '?', '#', '@']) && !host.contains(char::is_whitespace)
    })
}

/// Why nobody can be woken; the message says what to do instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoRoute {
    /// The address is none.
    #[error(
        "`wake:{0}` names nobody: expected wake:AGENT:SESSION, wake:AGENT:URL#SESSION or wake:tmux:%PANE"
    )]
    Unknown(String),
    /// Nobody's environment names a session.
    #[error(
        "`wake` has nobody to wake: the caller is in no session of an agent. Use `inbox`, `exec:COMMAND LINE` or `desktop`, or name the \
         session: wake:AGENT:SESSION"
    )]
    NoSession,
    /// The agent cannot be woken.
    #[error(
        "`wake` cannot start a turn of {}: it takes none from outside. Use `inbox` (its hooks bring what waits: `homing install {}`), or \
         name its terminal: wake:tmux:%PANE",
        .title, .agent
    )]
    Asleep {
        /// Its name.
        agent: AgentName,
        /// As people call it.
        title: String,
    },
    /// What ran in the pane at submit was not recorded.
    #[error(
        "`wake:tmux:{0}` needs to know what runs in that pane, and nobody can say: submit from the command line on the machine of that \
         tmux, and check that `tmux list-panes -a` has the pane"
    )]
    NoPane(String),
    /// Nothing is typed into terminals.
    #[error(
        "`wake:tmux:{0}` is off: homing types into a terminal only if `tmux = true` stands under [wake] in config.toml. A dialog that opens \
         in that moment would get the text; docs/wakes.md says more. Use `inbox`"
    )]
    TmuxOff(String),
    /// A shell would run what is typed.
    #[error(
        "`wake:tmux:{pane}` is refused: `{program}` runs there, and a shell would run what is typed into it"
    )]
    Shell {
        /// Which pane.
        pane: String,
        /// What runs there.
        program: String,
    },
}

/// The way, with all that is known of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Route {
    /// To a session of an agent.
    Session(Session),
    /// To whatever runs in a pane of tmux.
    Pane(Pane),
    /// To the person before the screen.
    Desktop,
}

/// Programs that run what is typed; and ourselves, behind whom there is one of them.
const SHELLS: [&str; 19] = [
    "sh", "bash", "zsh", "fish", "dash", "ash", "ksh", "mksh", "csh", "tcsh", "nu", "xonsh", "pwsh",
    "elvish", "busybox", "ssh", "sudo", "su", "homing",
];

impl Route {
    /// The way that a target means, for a task with this session and this pane. `None` for a target that wakes nobody.
    ///
    /// # Errors
    /// Why there is none.
    pub fn of(
        target: &Target,
        session: Option<&Session>,
        pane: Option<&Pane>,
    ) -> Result<Option<Self>, NoRoute> {
        let Target::Wake(whom) = target else {
            return Ok((*target == Target::Desktop).then_some(Self::Desktop));
        };
        let Some(whom) = whom else {
            let session = session.ok_or(NoRoute::NoSession)?.clone();
            return match session.asleep {
                false => Ok(Some(Self::Session(session))),
                true => Err(NoRoute::Asleep { title: session.agent.to_string(), agent: session.agent }),
            };
        };
        match whom.parse()? {
            // The caller may be in that very session, and then more is known of it.
            Address::Session { agent, url, id } => {
                let found = match session {
                    Some(own) if own.agent == agent && own.id == id => own.clone(),
                    Some(_) | None => {
                        let path = session.and_then(|own| own.path.clone());
                        let new = Session::new(agent, &id)
                            .ok_or_else(|| NoRoute::Unknown(crate::sanitize::line(whom)))?;
                        Session { path, ..new }
                    }
                };
                let url = url.or_else(|| found.url.clone());
                Ok(Some(Self::Session(Session { url, ..found })))
            }
            Address::Tmux(id) => {
                let pane = pane.filter(|pane| pane.id == id).ok_or_else(|| NoRoute::NoPane(id.clone()))?;
                let program = pane.program.as_ref().ok_or_else(|| NoRoute::NoPane(id.clone()))?;
                if SHELLS.contains(&program.name.trim_start_matches('-')) {
                    return Err(NoRoute::Shell { pane: id, program: crate::sanitize::line(&program.name) });
                }
                Ok(Some(Self::Pane(pane.clone())))
            }
        }
    }

    /// The same, named outright: what `wake` alone leaves open is said, so that what goes the same way goes together and nothing else does.
    #[must_use]
    pub fn target(&self) -> Target {
        let address = match self {
            Self::Desktop => return Target::Desktop,
            Self::Pane(pane) => Address::Tmux(pane.id.clone()),
            Self::Session(session) => Address::Session {
                agent: session.agent.clone(),
                url: session.url.clone(),
                id: session.id.clone(),
            },
        };
        Target::Wake(Some(address.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Foreground;

    fn session(agent: &str) -> Session {
        Session { path: Some("/bin".into()), ..Session::named(&format!("{agent}:s1")).unwrap() }
    }

    fn of(target: &str, session: Option<&Session>, pane: Option<&Pane>) -> Result<String, String> {
        let route = Route::of(&target.parse().unwrap(), session, pane).map_err(|why| why.to_string())?;
        Ok(route.map_or_else(|| "none".to_owned(), |route| route.target().to_string()))
    }

    #[test]
    fn addresses_read_back_as_they_were_written() {
        for text in [
            "claude:0b6e-42",
            "codex:019a",
            "opencode:http://127.0.0.1:4096#ses_1",
            "opencode:ses_1",
            "tmux:%3",
        ] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "claude",
            "claude:",
            "claude:-p",
            "claude:a/b",
            "tmux:3",
            "tmux:%x",
            "tmux:",
            "opencode:",
            "opencode:http://h",
            "opencode:http://#s",
            "opencode:http://h/x#s",
            "opencode:ftp://h#s",
            "opencode:http://a@h#s",
            "opencode:http://h#",
        ] {
            assert!(matches!(text.parse::<Address>(), Err(NoRoute::Unknown(_))), "{text}");
        }
    }

    #[test]
    fn a_wake_goes_to_the_session_that_asks_or_to_the_one_that_is_named() {
        let claude = session("claude");
        assert_eq!(of("wake", Some(&claude), None).as_deref(), Ok("wake:claude:s1"));
        assert_eq!(of("wake", Some(&session("codex")), None).as_deref(), Ok("wake:codex:s1"));
        assert_eq!(of("wake", Some(&session("opencode")), None).as_deref(), Ok("wake:opencode:s1"));
        assert_eq!(of("wake:codex:t9", Some(&claude), None).as_deref(), Ok("wake:codex:t9"));
        assert_eq!(
            of("wake:opencode:http://h:1/#s", None, None).as_deref(),
            Ok("wake:opencode:http://h:1#s")
        );
        assert_eq!(of("desktop", None, None).as_deref(), Ok("desktop"));
        assert_eq!(of("exec:true", None, None).as_deref(), Ok("none"));
        let known = Route::of(&"wake:claude:s1".parse().unwrap(), Some(&claude), None).unwrap();
        assert_eq!(known, Some(Route::Session(claude)));
    }

    #[test]
    fn where_nobody_can_be_woken_it_is_said_what_to_do_instead() {
        for (target, session, expected) in [
            ("wake", None, "in no session of an agent"),
            ("wake", Some(Session { asleep: true, ..session("gemini") }), "a turn of gemini"),
            ("wake:tmux:%3", None, "needs to know what runs in that pane"),
            ("wake:nobody", None, "names nobody"),
        ] {
            let said = of(target, session.as_ref(), None).unwrap_err();
            assert!(said.contains(expected), "{said}");
        }
    }

    #[test]
    fn nothing_is_typed_into_a_shell() {
        let pane = |name: &str| Pane {
            server: "/tmp/s".into(),
            id: "%3".into(),
            program: Some(Foreground { pid: 7, start: 9, name: name.into() }),
        };
        assert_eq!(of("wake:tmux:%3", None, Some(&pane("node"))).as_deref(), Ok("wake:tmux:%3"));
        for shell in ["bash", "-zsh", "homing", "fish"] {
            assert!(of("wake:tmux:%3", None, Some(&pane(shell))).unwrap_err().contains("shell"), "{shell}");
        }
        assert!(of("wake:tmux:%4", None, Some(&pane("node"))).is_err(), "another pane");
    }
}
