//! What a task that is submitted must be: all that can be checked without looking at the world.

use std::collections::BTreeMap;

use crate::agent::{self, LONGEST_PROMPT};
use crate::id::Reference;
use crate::session;
use crate::spec::{OnExit, Secret, Spec, Stdin};
use crate::task::Kind;
use crate::text::OsText;
use crate::watch::{self, BadPattern};

/// Why a spec is refused; the message names the field and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// Neither `argv` nor `shell`.
    #[error("no command: give `argv` (program and arguments) or `shell` (one line)")]
    NoCommand,
    /// Both.
    #[error("both `argv` and `shell` are given: choose one")]
    TwoCommands,
    /// The program's name is empty.
    #[error("the program name is empty")]
    EmptyProgram,
    /// A NUL byte where the kernel takes none.
    #[error("{0} contains a NUL byte, which no program can be given")]
    Nul(&'static str),
    /// A text too long or with control characters.
    #[error("`{field}` {problem}")]
    Text {
        /// Which field.
        field: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A variable name the kernel or a shell would misread.
    #[error("`{0}` is not a name for an environment variable")]
    VariableName(String),
    /// A variable that homing sets itself.
    #[error("`{0}` is set by homing itself and cannot be a secret")]
    Reserved(String),
    /// A number out of range.
    #[error("`{field}` must be {expected}")]
    Number {
        /// Which field.
        field: &'static str,
        /// What is allowed.
        expected: &'static str,
    },
    /// A kind that nobody can submit.
    #[error("`kind` must be `command`, `agent` or `external`")]
    Kind,
    /// A field that means nothing for this kind of task.
    #[error("`{field}` means nothing for a task of the kind `{}`", kind.as_str())]
    Misplaced {
        /// Which field.
        field: &'static str,
        /// Which kind.
        kind: Kind,
    },
    /// Two ways to see the end.
    #[error("both `lease_ms` and `pid` are given: choose one")]
    TwoWatches,
    /// The folder is not absolute.
    #[error("`cwd` must be an absolute path")]
    RelativeCwd,
    /// The input file is not absolute.
    #[error("`stdin.file` must be an absolute path")]
    RelativeStdin,
    /// Something cannot be watched for.
    #[error("`watch`: {0}")]
    Watch(#[from] BadPattern),
}

/// The most that the words of a command may take, and the variables: as much as Linux gives both together with its usual stack limit. Each
/// counts with its end and its pointer, as the kernel counts.
const EXEC_BYTES: usize = 2 << 20;
const EXEC_OVERHEAD: usize = 1 + size_of::<usize>();

/// The longest path that the kernel takes.
const PATH_BYTES: usize = 4_096;

const MOST_LABELS: usize = 100;
/// Names and values together: each notice of a task repeats them.
const LABELS_BYTES: usize = 16 << 10;
const MOST_TARGETS: usize = 20;
const TARGET_BYTES: usize = 8_192;
/// A key of 64 bytes, the longest that Standard Webhooks has, takes 94 as text.
const WEBHOOK_SECRET_BYTES: usize = 200;
/// As many as the kernel has kinds.
const MOST_RLIMITS: usize = 16;

/// Whether these texts are more than a command may be given.
fn is_beyond_exec(lengths: impl Iterator<Item = usize>) -> bool {
    lengths.map(|length| length.saturating_add(EXEC_OVERHEAD)).fold(0, usize::saturating_add) > EXEC_BYTES
}

/// The smallest output cap: head and tail need a page each.
pub const MIN_OUTPUT_BYTES: u64 = 64 * 1024;

/// The longest lease: a year.
pub const MAX_LEASE_MS: u64 = 365 * 24 * 3_600 * 1_000;

/// Whether a name would never be found by: `@last`, an id, or the start of one with its `t-`.
fn is_taken_for_an_id(name: &str) -> bool {
    match Reference::parse(name) {
        Reference::Id(_) | Reference::Last => true,
        Reference::PrefixOrName { prefix, .. } => {
            prefix.is_some_and(|prefix| prefix == name.to_ascii_lowercase())
        }
    }
}

/// Whether a fact about a way is one that can be kept.
fn is_short(text: &str) -> bool {
    text.len() <= 4_096 && !text.chars().any(char::is_control)
}

impl Spec {
    /// Checks all that can be checked without looking at the world.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn validate(&self) -> Result<(), Invalid> {
        match self.kind {
            Kind::Command => self.validate_command()?,
            Kind::Agent => self.validate_agent()?,
            Kind::External => self.validate_external()?,
            Kind::Hook => return Err(Invalid::Kind),
        }
        self.validate_sizes()?;
        self.validate_texts()?;
        self.validate_route()?;
        self.validate_variables()?;
        watch::patterns(&self.watch)?;
        self.validate_numbers()
    }

    fn validate_command(&self) -> Result<(), Invalid> {
        self.refuse(self.of_agents().into_iter().chain(self.of_external()))?;
        match (&self.shell, self.argv.as_slice()) {
            (None, []) => return Err(Invalid::NoCommand),
            (Some(_), [_, ..]) => return Err(Invalid::TwoCommands),
            (None, [program, ..]) if program.is_empty() => return Err(Invalid::EmptyProgram),
            (Some(line), []) if line.is_empty() => return Err(Invalid::NoCommand),
            (Some(_), []) | (None, [_, ..]) => {}
        }
        if self.argv.iter().chain(&self.shell).any(OsText::has_nul) {
            return Err(Invalid::Nul("the command"));
        }
        match self.pty_size {
            Some(_) if !self.pty => {
                return Err(Invalid::Text { field: "pty_size", problem: "means nothing without `pty`" });
            }
            Some(size) if !size.is_possible() => {
                return Err(Invalid::Number {
                    field: "pty_size",
                    expected: "1 to 1000 `cols` and 1 to 500 `rows`",
                });
            }
            Some(_) | None => {}
        }
        self.validate_folder()?;
        if let Stdin::File(path) = &self.stdin
            && (path.has_nul() || !path.as_bytes().starts_with(b"/"))
        {
            return Err(Invalid::RelativeStdin);
        }
        Ok(())
    }

    fn validate_folder(&self) -> Result<(), Invalid> {
        if self.cwd.iter().any(OsText::has_nul) {
            return Err(Invalid::Nul("`cwd`"));
        }
        if self.cwd.as_ref().is_some_and(|cwd| !cwd.as_bytes().starts_with(b"/")) {
            return Err(Invalid::RelativeCwd);
        }
        Ok(())
    }

    /// What is for other kinds of task is refused, not ignored.
    fn refuse(&self, misplaced: impl IntoIterator<Item = (&'static str, bool)>) -> Result<(), Invalid> {
        match misplaced.into_iter().find(|(_, given)| *given) {
            Some((field, _)) => Err(Invalid::Misplaced { field, kind: self.kind }),
            None => Ok(()),
        }
    }

    fn of_agents(&self) -> [(&'static str, bool); 3] {
        [
            ("agent", self.agent.is_some()),
            ("prompt", self.prompt.is_some()),
            ("continue", self.continues.is_some()),
        ]
    }

    fn of_external(&self) -> [(&'static str, bool); 2] {
        [("lease_ms", self.lease_ms.is_some()), ("pid", self.pid.is_some())]
    }

    /// The command line is the driver's to make, and the input is the prompt.
    fn validate_agent(&self) -> Result<(), Invalid> {
        let of_commands = [
            ("argv", !self.argv.is_empty()),
            ("shell", self.shell.is_some()),
            ("stdin", self.stdin != Stdin::None),
            ("pty", self.pty),
            ("pty_size", self.pty_size.is_some()),
        ];
        self.refuse(of_commands.into_iter().chain(self.of_external()))?;
        let prompt = self.prompt.as_deref().unwrap_or_default();
        if prompt.trim().is_empty() {
            return Err(Invalid::Text { field: "prompt", problem: "is empty: say what the agent is asked" });
        }
        if prompt.len() > LONGEST_PROMPT {
            let problem = "is longer than 1 MiB: put the data into a file and name it in the prompt";
            return Err(Invalid::Text { field: "prompt", problem });
        }
        if prompt.contains('\0') {
            return Err(Invalid::Nul("`prompt`"));
        }
        if self.agent.as_deref().is_some_and(|name| !agent::is_name(name)) {
            let problem = "is no name of an agent: letters, digits, `-`, `_` and `.` make one";
            return Err(Invalid::Text { field: "agent", problem });
        }
        if self.continues.as_deref().is_some_and(|task| task.trim().is_empty() || task.len() > 200) {
            return Err(Invalid::Text { field: "continue", problem: "names no task" });
        }
        self.validate_folder()
    }

    /// What is for a command only is refused, not ignored.
    fn validate_external(&self) -> Result<(), Invalid> {
        let misplaced = [
            ("argv", !self.argv.is_empty()),
            ("shell", self.shell.is_some()),
            ("cwd", self.cwd.is_some()),
            ("env", self.env.is_some()),
            ("env_set", !self.env_set.is_empty()),
            ("secrets", !self.secrets.is_empty()),
            ("stdin", self.stdin != Stdin::None),
            ("pty", self.pty),
            ("pty_size", self.pty_size.is_some()),
            ("timeout_ms", self.timeout_ms.is_some()),
            ("grace_ms", self.grace_ms.is_some()),
            ("on_exit", self.on_exit != OnExit::Leave),
            ("max_output_bytes", self.max_output_bytes.is_some()),
            ("umask", self.umask.is_some()),
            ("rlimits", !self.rlimits.is_empty()),
            ("nice", self.nice.is_some()),
            ("watch", !self.watch.is_empty()),
            ("quiet_after_ms", self.quiet_after_ms.is_some()),
            ("heartbeat_ms", self.heartbeat_ms.is_some()),
        ];
        self.refuse(misplaced.into_iter().chain(self.of_agents()))?;
        match (self.lease_ms, self.pid) {
            (Some(_), Some(_)) => Err(Invalid::TwoWatches),
            (None, Some(0)) => Err(Invalid::Number { field: "pid", expected: "the id of a process" }),
            (Some(0), None) => Err(Invalid::Number { field: "lease_ms", expected: "above 0" }),
            (Some(lease), None) if lease > MAX_LEASE_MS => {
                Err(Invalid::Number { field: "lease_ms", expected: "at most 31536000000 (a year)" })
            }
            (Some(_), None) | (None, Some(_) | None) => Ok(()),
        }
    }

    /// A submit is copied, kept and listed: nothing in it is without bound.
    fn validate_sizes(&self) -> Result<(), Invalid> {
        let secrets = self.secrets.iter().map(|(name, secret)| {
            let (Secret::Value(text) | Secret::File(text)) = secret;
            name.len() + 1 + text.as_bytes().len()
        });
        let set = self.env_set.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
        let rest = self.env.iter().flatten().filter(|(name, _)| !self.env_set.contains_key(*name));
        let variables = rest.chain(set);
        let variables = variables.map(|(name, value)| name.len() + 1 + value.as_bytes().len());
        let targets = self.notify.as_ref().map_or(&[][..], |notify| &notify.targets);
        let webhook_secret = self.notify.as_ref().and_then(|notify| notify.secret.as_ref());
        let path = |text: Option<&OsText>| text.is_some_and(|text| text.as_bytes().len() > PATH_BYTES);
        let input = if let Stdin::File(path) = &self.stdin { Some(path) } else { None };
        let sizes = [
            (
                "argv",
                is_beyond_exec(self.argv.iter().map(|word| word.as_bytes().len())),
                "is larger than 2 MiB: put the data into a file, or on the input",
            ),
            (
                "shell",
                is_beyond_exec(self.shell.iter().map(|line| line.as_bytes().len())),
                "is larger than 2 MiB: put the script into a file",
            ),
            (
                "env",
                is_beyond_exec(variables.chain(secrets)),
                "is larger than 2 MiB together with `env_set` and `secrets`: no program can be started with so much",
            ),
            ("labels", self.labels.len() > MOST_LABELS, "has more than 100 labels"),
            (
                "labels",
                self.labels.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>()
                    > LABELS_BYTES,
                "is larger than 16 KiB: put the data into a file",
            ),
            ("notify.targets", targets.len() > MOST_TARGETS, "has more than 20 targets"),
            (
                "notify.targets",
                targets.iter().any(|target| target.to_string().len() > TARGET_BYTES),
                "has a target that is longer than 8192 bytes",
            ),
            (
                "notify.secret",
                webhook_secret.is_some_and(|secret| secret.reveal().len() > WEBHOOK_SECRET_BYTES),
                "is longer than 200 bytes, which no webhook secret is",
            ),
            ("rlimits", self.rlimits.len() > MOST_RLIMITS, "has more than 16 limits"),
            ("cwd", path(self.cwd.as_ref()), "is longer than 4096 bytes, which no path is"),
            ("stdin.file", path(input), "is longer than 4096 bytes, which no path is"),
        ];
        match sizes.into_iter().find(|(_, too_large, _)| *too_large) {
            Some((field, _, problem)) => Err(Invalid::Text { field, problem }),
            None => Ok(()),
        }
    }

    fn validate_texts(&self) -> Result<(), Invalid> {
        let texts = [
            ("name", &self.name, 200, "is longer than 200 bytes"),
            ("description", &self.description, 2_000, "is longer than 2000 bytes"),
            ("owner", &self.owner, 200, "is longer than 200 bytes"),
            ("key", &self.key, 200, "is longer than 200 bytes"),
        ];
        for (field, text, limit, too_long) in texts {
            let Some(text) = text else { continue };
            if text.trim().is_empty() {
                return Err(Invalid::Text { field, problem: "is empty" });
            }
            if text.len() > limit {
                return Err(Invalid::Text { field, problem: too_long });
            }
            if text.chars().any(char::is_control) {
                return Err(Invalid::Text { field, problem: "contains control characters" });
            }
        }
        if self.name.as_deref().is_some_and(is_taken_for_an_id) {
            let problem = "reads as an id or as `@last` wherever a task is named, so it could never be used: choose another";
            return Err(Invalid::Text { field: "name", problem });
        }
        for (name, value) in &self.labels {
            let sizes = [
                (name.is_empty(), "has an empty name"),
                (name.len() > 100, "has a name that is longer than 100 bytes"),
                (value.len() > 1_000, "has a value that is longer than 1000 bytes"),
            ];
            if let Some((_, problem)) = sizes.into_iter().find(|(is_wrong, _)| *is_wrong) {
                return Err(Invalid::Text { field: "labels", problem });
            }
            if name.chars().chain(value.chars()).any(char::is_control) {
                return Err(Invalid::Text { field: "labels", problem: "contains control characters" });
            }
        }
        Ok(())
    }

    /// What is known of the way of a wake is used as it is: it must look like it.
    fn validate_route(&self) -> Result<(), Invalid> {
        let wrong = |field, problem| Err(Invalid::Text { field, problem });
        if let Some(session) = &self.session {
            if !session::is_id(&session.id) {
                return wrong("session.id", "is not the id of a session");
            }
            let paths = [&session.socket, &session.folder, &session.program].into_iter().flatten();
            if paths.into_iter().any(|path| !path.starts_with('/') || !is_short(path)) {
                return wrong(
                    "session",
                    "has a path that is not absolute, is longer than 4096 bytes or contains control characters",
                );
            }
            let (version, url, path) = (session.version.iter(), session.url.iter(), session.path.iter());
            if version.chain(url).chain(path).any(|text| !is_short(text)) {
                return wrong(
                    "session",
                    "has a text that is longer than 4096 bytes or contains control characters",
                );
            }
        }
        if let Some(pane) = &self.pane
            && (!session::is_pane(&pane.id) || !pane.server.starts_with('/') || !is_short(&pane.server))
        {
            return wrong(
                "pane",
                "is not a pane of tmux: `server` is the path of its socket, `id` begins with %",
            );
        }
        let program = self.pane.as_ref().and_then(|pane| pane.program.as_ref());
        if program.is_some_and(|program| !is_short(&program.name)) {
            return wrong(
                "pane.program",
                "has a name that is longer than 4096 bytes or contains control characters",
            );
        }
        Ok(())
    }

    fn validate_variables(&self) -> Result<(), Invalid> {
        let names =
            self.env.iter().flat_map(BTreeMap::keys).chain(self.env_set.keys()).chain(self.secrets.keys());
        for name in names {
            if name.is_empty() || name.contains(['=', '\0']) {
                return Err(Invalid::VariableName(name.clone()));
            }
        }
        if let Some(name) = self.secrets.keys().find(|name| name.starts_with("HOMING_")) {
            return Err(Invalid::Reserved(name.clone()));
        }
        if self.env_set.values().any(Option::is_none) {
            return Err(Invalid::Text { field: "env_set", problem: "has a variable without a value" });
        }
        let set = self.env_set.values().flatten();
        if self.env.iter().flat_map(BTreeMap::values).chain(set).any(OsText::has_nul) {
            return Err(Invalid::Nul("an environment value"));
        }
        for secret in self.secrets.values() {
            let (Secret::Value(text) | Secret::File(text)) = secret;
            if text.has_nul() {
                return Err(Invalid::Nul("a secret"));
            }
        }
        Ok(())
    }

    fn validate_numbers(&self) -> Result<(), Invalid> {
        if self.timeout_ms == Some(0) {
            return Err(Invalid::Number { field: "timeout_ms", expected: "above 0, or absent for no limit" });
        }
        for (field, millis) in [("quiet_after_ms", self.quiet_after_ms), ("heartbeat_ms", self.heartbeat_ms)]
        {
            if millis.is_some_and(|millis| millis < watch::LEAST_MS) {
                return Err(Invalid::Number { field, expected: "at least 100, or absent for none" });
            }
        }
        if self.max_output_bytes.is_some_and(|bytes| bytes < MIN_OUTPUT_BYTES) {
            return Err(Invalid::Number { field: "max_output_bytes", expected: "at least 65536" });
        }
        if self.umask.is_some_and(|mask| mask > 0o777) {
            return Err(Invalid::Number { field: "umask", expected: "at most 0o777 (511)" });
        }
        if self.nice.is_some_and(|nice| !(-20..=19).contains(&nice)) {
            return Err(Invalid::Number { field: "nice", expected: "between -20 and 19" });
        }
        if self.rlimits.iter().any(|limit| limit.resource > 15) {
            return Err(Invalid::Number { field: "rlimits.resource", expected: "between 0 and 15" });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(words: &[&str]) -> Spec {
        Spec { argv: words.iter().map(|word| OsText::from(*word)).collect(), ..Spec::default() }
    }

    #[test]
    fn a_plain_command_is_fine_and_nothing_is_not() {
        assert_eq!(argv(&["true"]).validate(), Ok(()));
        assert_eq!(Spec::default().validate(), Err(Invalid::NoCommand));
        assert_eq!(argv(&[""]).validate(), Err(Invalid::EmptyProgram));
        let both = Spec { shell: Some("true".into()), ..argv(&["true"]) };
        assert_eq!(both.validate(), Err(Invalid::TwoCommands));
    }

    #[test]
    fn nul_bytes_relative_folders_and_odd_names_are_refused() {
        assert!(matches!(argv(&["echo", "a\0b"]).validate(), Err(Invalid::Nul(_))));
        let relative = Spec { cwd: Some("tmp".into()), ..argv(&["true"]) };
        assert_eq!(relative.validate(), Err(Invalid::RelativeCwd));
        let odd = Spec { env: Some(BTreeMap::from([("A=B".into(), "1".into())])), ..argv(&["true"]) };
        assert!(matches!(odd.validate(), Err(Invalid::VariableName(_))));
        let bell = Spec { name: Some("a\u{7}b".into()), ..argv(&["true"]) };
        assert!(matches!(bell.validate(), Err(Invalid::Text { field: "name", .. })));
    }

    #[test]
    fn nothing_of_a_submit_is_without_bound() {
        let wrong = |spec: Spec| spec.validate().unwrap_err().to_string();
        let words = vec!["x".repeat(1_000).as_str().into(); 2_000];
        assert_eq!(Spec { argv: words.clone(), ..Spec::default() }.validate(), Ok(()));
        let argv = [words.clone(), words].concat();
        assert!(wrong(Spec { argv, ..Spec::default() }).starts_with("`argv` is larger than 2 MiB"));
        let shell = Some(":".repeat(3 << 20).as_str().into());
        assert!(wrong(Spec { shell, ..Spec::default() }).starts_with("`shell`"));
        let many = |prefix: char| (0..200_000).map(move |n| format!("{prefix}{n}"));
        let env = Some(many('V').map(|name| (name, "x".into())).collect());
        assert!(wrong(Spec { env, ..argv_of_true() }).starts_with("`env` is larger than 2 MiB"));
        let labels = many('l').map(|name| (name, String::new())).collect();
        assert!(wrong(Spec { labels, ..argv_of_true() }).starts_with("`labels` has more than 100"));
        let labels = (0..17).map(|n| (format!("l{n}"), "v".repeat(1_000))).collect();
        assert!(wrong(Spec { labels, ..argv_of_true() }).starts_with("`labels` is larger than 16 KiB"));
        let secret = Secret::Value("s".repeat(3 << 20).as_str().into());
        let secrets = BTreeMap::from([("S".to_owned(), secret)]);
        assert!(wrong(Spec { secrets, ..argv_of_true() }).starts_with("`env`"));
        let cwd = Some(format!("/{}", "d".repeat(5_000)).as_str().into());
        assert!(wrong(Spec { cwd, ..argv_of_true() }).starts_with("`cwd`"));
        let targets = vec![crate::Target::Inbox; 21];
        let notify = Some(crate::Notify { targets, ..crate::Notify::default() });
        assert!(wrong(Spec { notify, ..argv_of_true() }).starts_with("`notify.targets`"));
        let secret = Some(crate::notify::SigningKey::new("s".repeat(201)));
        let notify = Some(crate::Notify { secret, ..crate::Notify::default() });
        assert!(wrong(Spec { notify, ..argv_of_true() }).starts_with("`notify.secret`"));
        let long = |bytes: usize| Some("n".repeat(bytes));
        assert_eq!(wrong(Spec { name: long(201), ..argv_of_true() }), "`name` is longer than 200 bytes");
        let description = Spec { description: long(2_001), ..argv_of_true() };
        assert_eq!(wrong(description), "`description` is longer than 2000 bytes");
        for (name, value, problem) in [
            ("", 1, "has an empty name"),
            (&*"n".repeat(101), 1, "has a name that is longer than 100 bytes"),
            ("n", 1_001, "has a value that is longer than 1000 bytes"),
        ] {
            let labels = [(name.to_owned(), "v".repeat(value))].into();
            assert_eq!(wrong(Spec { labels, ..argv_of_true() }), format!("`labels` {problem}"));
        }
        let program = session::Foreground { pid: 2, start: 1, name: "n".repeat(5_000) };
        let pane = session::Pane { server: "/s".into(), id: "%1".into(), program: Some(program) };
        assert!(wrong(Spec { pane: Some(pane), ..argv_of_true() }).starts_with("`pane.program`"));
    }

    fn argv_of_true() -> Spec {
        argv(&["true"])
    }

    #[test]
    fn what_leads_to_a_session_must_look_like_it() {
        let with = |session: &str| {
            let json = format!(r#"{{"argv":["true"],"session":{{"agent":"claude",{session}}}}}"#);
            serde_json::from_str::<Spec>(&json).unwrap().validate()
        };
        assert_eq!(with(r#""id":"a-1","socket":"/tmp/s","pid":7"#), Ok(()));
        for wrong in [r#""id":"-a""#, r#""id":"a","socket":"s""#, r#""id":"a","path":"/bin\n""#] {
            assert!(matches!(with(wrong), Err(Invalid::Text { .. })), "{wrong}");
        }
        let pane: Spec =
            serde_json::from_str(r#"{"argv":["true"],"pane":{"server":"/s","id":"3"}}"#).unwrap();
        assert!(matches!(pane.validate(), Err(Invalid::Text { field: "pane", .. })));
    }

    #[test]
    fn a_name_that_could_never_be_used_is_refused() {
        let named = |name: &str| Spec { name: Some(name.into()), ..argv(&["true"]) }.validate();
        for name in ["@last", "t-2222222222", "t-22", "T-2222222222"] {
            assert!(matches!(named(name), Err(Invalid::Text { field: "name", .. })), "{name}");
        }
        for name in ["last", "@latest", "build", "t-", "t-shirt", "2222222222", "bc", "t-22222222222"] {
            assert_eq!(named(name), Ok(()), "{name}");
        }
    }

    #[test]
    fn an_external_task_takes_nothing_of_a_command_and_a_command_nothing_of_it() {
        let external = Spec { kind: Kind::External, ..Spec::default() };
        assert_eq!(external.validate(), Ok(()));
        assert_eq!(Spec { lease_ms: Some(1), ..external.clone() }.validate(), Ok(()));
        assert_eq!(Spec { pid: Some(1), ..external.clone() }.validate(), Ok(()));
        let both = Spec { lease_ms: Some(1), pid: Some(1), ..external.clone() };
        assert_eq!(both.validate(), Err(Invalid::TwoWatches));
        for (lease_ms, pid) in [(Some(0), None), (Some(u64::MAX), None), (None, Some(0))] {
            let wrong = Spec { lease_ms, pid, ..external.clone() };
            assert!(matches!(wrong.validate(), Err(Invalid::Number { .. })), "{lease_ms:?} {pid:?}");
        }
        let mixed = Spec { kind: Kind::External, ..argv(&["true"]) };
        assert!(matches!(mixed.validate(), Err(Invalid::Misplaced { field: "argv", .. })));
        let leased = Spec { lease_ms: Some(1), ..argv(&["true"]) };
        assert!(matches!(leased.validate(), Err(Invalid::Misplaced { field: "lease_ms", .. })));
        assert_eq!(Spec { kind: Kind::Hook, ..argv(&["true"]) }.validate(), Err(Invalid::Kind));
    }

    #[test]
    fn an_agent_task_is_a_prompt_and_no_command() {
        let ask = |json: &str| serde_json::from_str::<Spec>(json).unwrap().validate();
        assert_eq!(ask(r#"{"kind":"agent","prompt":"why?"}"#), Ok(()));
        assert_eq!(
            ask(r#"{"kind":"agent","prompt":"why?","agent":"claude","continue":"t-22","cwd":"/"}"#),
            Ok(())
        );
        for (json, field) in [
            (r#"{"kind":"agent"}"#, "prompt"),
            (r#"{"kind":"agent","prompt":" \n"}"#, "prompt"),
            (r#"{"kind":"agent","prompt":"x","agent":"a b"}"#, "agent"),
            (r#"{"kind":"agent","prompt":"x","continue":""}"#, "continue"),
            (r#"{"kind":"agent","prompt":"x","argv":["ls"]}"#, "argv"),
            (r#"{"kind":"agent","prompt":"x","shell":"ls"}"#, "shell"),
            (r#"{"kind":"agent","prompt":"x","pty":true}"#, "pty"),
            (r#"{"kind":"agent","prompt":"x","stdin":"pipe"}"#, "stdin"),
            (r#"{"kind":"agent","prompt":"x","pid":1}"#, "pid"),
            (r#"{"argv":["ls"],"prompt":"x"}"#, "prompt"),
            (r#"{"kind":"external","agent":"x"}"#, "agent"),
        ] {
            let wrong = ask(json).unwrap_err().to_string();
            assert!(wrong.starts_with(&format!("`{field}`")), "{json}: {wrong}");
        }
        let long =
            Spec { kind: Kind::Agent, prompt: Some("x".repeat(LONGEST_PROMPT + 1)), ..Spec::default() };
        assert!(matches!(long.validate(), Err(Invalid::Text { field: "prompt", .. })));
    }

    #[test]
    fn what_is_watched_for_is_checked_with_the_rest() {
        let watching = |json: &str| serde_json::from_str::<Spec>(json).unwrap();
        let one = watching(r#"{"argv":["true"],"watch":"ready"}"#);
        assert_eq!(
            (&one.watch[..], one.validate(), one.is_watched()),
            (&["ready".to_owned()][..], Ok(()), true)
        );
        assert_eq!(watching(r#"{"argv":["true"],"watch":["a","b"]}"#).watch.len(), 2);
        assert_eq!(watching(&serde_json::to_string(&one).unwrap()), one);
        let bad = watching(r#"{"argv":["true"],"watch":["a","(b"]}"#).validate().unwrap_err();
        assert_eq!(bad.to_string(), "`watch`: `(b` is no regular expression: unclosed group, at character 1");
        for field in ["quiet_after_ms", "heartbeat_ms"] {
            let spec = watching(&format!(r#"{{"argv":["true"],"{field}":99}}"#));
            assert!(matches!(spec.validate(), Err(Invalid::Number { .. })), "{field}");
        }
        assert!(!argv(&["true"]).is_watched());
    }

    #[test]
    fn a_first_size_is_one_that_a_terminal_can_have_and_is_for_terminals_only() {
        let size = |text: &str| serde_json::from_str::<Spec>(text).unwrap().validate();
        assert_eq!(size(r#"{"argv":["vi"],"pty":true,"pty_size":{"cols":200,"rows":60}}"#), Ok(()));
        for wrong in [
            r#"{"argv":["vi"],"pty_size":{"cols":80,"rows":24}}"#,
            r#"{"argv":["vi"],"pty":true,"pty_size":{"cols":0,"rows":24}}"#,
            r#"{"argv":["vi"],"pty":true,"pty_size":{"cols":80,"rows":501}}"#,
        ] {
            let why = size(wrong).unwrap_err().to_string();
            assert!(why.contains("`pty_size`"), "{wrong}: {why}");
        }
    }
}
