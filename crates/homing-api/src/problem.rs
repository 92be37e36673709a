//! What can go wrong, as users see it: a code, one sentence, and what to do next.
//!
//! The catalogue is the single source for `application/problem+json` answers, for the command line's messages and for
//! `homing explain CODE`.

use std::fmt;

use homing_model::agent;
use homing_model::nesting::Rule;
use homing_model::unsure::Unsure;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The longest `detail`.
const MAX_DETAIL_BYTES: usize = 8 << 10;

macro_rules! catalogue {
    ($( $(#[doc = $doc:literal])+ $name:ident = $code:literal, $slug:literal, $http:literal, $title:literal, $advice:literal; )+) => {
        /// A kind of problem.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code { $( $(#[doc = $doc])+ $name, )+ }

        impl Code {
            /// Every kind, in the order of its code.
            pub const ALL: &[Self] = &[ $( Self::$name, )+ ];
            /// The stable code: `HM0001`.
            #[must_use]
            pub const fn code(self) -> &'static str { match self { $( Self::$name => $code, )+ } }
            /// The stable word: `unknown_task`.
            #[must_use]
            pub const fn slug(self) -> &'static str { match self { $( Self::$name => $slug, )+ } }
            /// The HTTP status it is answered with.
            #[must_use]
            pub const fn http_status(self) -> u16 { match self { $( Self::$name => $http, )+ } }
            /// What it is, in a few words.
            #[must_use]
            pub const fn title(self) -> &'static str { match self { $( Self::$name => $title, )+ } }
            /// What to do next.
            #[must_use]
            pub const fn advice(self) -> &'static str { match self { $( Self::$name => $advice, )+ } }
        }
    };
}

catalogue! {
    /// No such id, prefix or name.
    UnknownTask = "HM0001", "unknown_task", 404, "no such task",
        "`homing list --all` shows the tasks of this home; ids may be shortened to a unique start. Check HOMING_HOME if it should be there.";
    /// A prefix or name that fits several.
    AmbiguousTask = "HM0002", "ambiguous_task", 409, "several tasks fit",
        "Give more characters of the id; `homing list --all` shows them whole.";
    /// A body or parameter that makes no sense.
    InvalidRequest = "HM0003", "invalid_request", 422, "the request makes no sense",
        "Mend the field that the message names; `/openapi.json` and `homing run --help` describe them all.";
    /// A body that is not JSON.
    MalformedBody = "HM0004", "malformed_body", 400, "the body is not valid JSON",
        "Send a JSON object with `content-type: application/json`.";
    /// The task is live.
    TaskLive = "HM0005", "task_live", 409, "the task is still live",
        "Wait for it (`homing wait ID`) or stop it (`homing stop ID`) first.";
    /// The task is over.
    TaskEnded = "HM0006", "task_ended", 409, "the task has ended",
        "`homing show ID` says how; `homing output ID` what it printed.";
    /// Its input is not open.
    NoInput = "HM0007", "no_input", 409, "the task takes no input",
        "Submit it with `--stdin pipe` or `--pty`: `homing input` writes to such a task, for as long as its input is open.";
    /// It does not read what was sent.
    InputNotRead = "HM0008", "input_not_read", 409, "the task is not reading its input",
        "What was not written is not kept: try again when it reads.";
    /// Its output was dropped with it.
    OutputGone = "HM0009", "output_gone", 410, "the output is no longer kept",
        "It was dropped, by `homing forget` or as `[retention]` in config.toml says; `homing show ID` still has the outcome.";
    /// Same key, other body.
    IdempotencyMismatch = "HM0010", "idempotency_mismatch", 422, "this idempotency key was used for another request",
        "Use a new key for a new request; a key stands for one body for 24 hours.";
    /// Same `--key`, refused by wish.
    DuplicateKey = "HM0011", "duplicate_key", 409, "a live task already has this key",
        "Wait for it, stop it, or submit with `--on-duplicate join`.";
    /// The home cannot take more.
    StorageFull = "HM0012", "storage_full", 507, "the disk with the home is full",
        "Free some space (`homing gc` drops finished tasks past their retention); running tasks are not affected.";
    /// An input/output error of the store.
    StorageFailed = "HM0013", "storage_failed", 503, "the store could not be written",
        "`homing doctor` looks at the home; running tasks are not affected and nothing acknowledged is lost.";
    /// The database is damaged.
    StorageCorrupt = "HM0014", "storage_corrupt", 503, "the database is damaged",
        "It was left as it is. To start afresh: `homing daemon stop`, then move homing.db, homing.db-wal and homing.db-shm aside; the tasks' folders keep their output.";
    /// The database is of a later release.
    SchemaTooNew = "HM0015", "schema_too_new", 503, "the database was written by a newer homing",
        "Run that release or a later one, or choose another home with HOMING_HOME.";
    /// More confined than the daemon.
    Confined = "HM0016", "confined_caller", 403, "the caller is more confined than the daemon",
        "homing lends nobody a way out of a sandbox. A person may allow it with `[confined] allow = true` in config.toml. A caller that only lacks a group or a capability of the daemon: log in again; or, once no task is live, `homing daemon stop` where the daemon was started, and `homing daemon start` here.";
    /// Another user.
    Forbidden = "HM0017", "forbidden", 403, "not allowed",
        "Only the user who runs the daemon may use its socket.";
    /// A folder that others could tamper with.
    HostileHome = "HM0018", "hostile_home", 500, "the home folder is not safe to use",
        "It must be a real folder, yours, with mode 0700: `chmod 700 FOLDER` closes it to others; HOMING_HOME or `--home DIR` chooses another.";
    /// Nobody answers.
    DaemonUnreachable = "HM0019", "daemon_unreachable", 503, "the daemon cannot be reached",
        "`homing daemon start` starts it and says why it cannot; its log is daemon.log in the home.";
    // HM0020 was never raised and stays unused: a daemon that was stopped is started by the next command that needs it.
    /// Inside a task nobody starts a daemon.
    NestedStart = "HM0021", "nested_start", 503, "no daemon runs, and one is never started from inside a task",
        "Start it from outside: `homing daemon start`.";
    /// A configuration that cannot be read.
    BadConfig = "HM0022", "bad_config", 500, "the configuration is broken",
        "Mend the line that the message names; `homing config --check` reads it again. A daemon that had a good one before goes on with that.";
    /// A filesystem without locks.
    UnsupportedFilesystem = "HM0023", "unsupported_filesystem", 500, "the filesystem of the home has no working locks",
        "Choose a home on a local disk with HOMING_HOME; network filesystems are not supported.";
    /// No keeper could be started.
    NoKeeper = "HM0024", "no_keeper", 503, "the keeper process is not there",
        "It is started again by itself; if this lasts, daemon.log says why.";
    /// Not for this task.
    NotApplicable = "HM0025", "not_applicable", 409, "that does not apply to this task now",
        "`homing show ID` says where the task is.";
    /// No such route.
    NoRoute = "HM0026", "no_route", 404, "no such address",
        "`/openapi.json` lists every address.";
    /// Too much at once.
    TooLarge = "HM0027", "too_large", 413, "the request is too large",
        "A submit may be 8 MiB, an input 1 MiB; put large data into a file.";
    /// A command line that looks like a shell line.
    LooksLikeShell = "HM0028", "looks_like_shell", 422, "that looks like a shell line, not a program",
        "Use `homing run -c 'LINE'`. Only the command line makes this check; the API runs what `argv` says.";
    /// Our own mistake.
    Internal = "HM0029", "internal", 500, "homing made a mistake",
        "Please report it with the lines of daemon.log around this time.";
    /// A limit of the system.
    SystemLimit = "HM0030", "system_limit", 503, "a limit of the system was reached",
        "Too many open files or processes: raise the limit or end something; running tasks are not affected.";
    /// Two versions that cannot talk.
    VersionMismatch = "HM0031", "version_mismatch", 503, "the running daemon is of another release",
        "`homing daemon restart` replaces it; tasks run on.";
    /// The home is in use by another engine.
    HomeInUse = "HM0032", "home_in_use", 503, "another engine serves this home",
        "One home has one engine: use its daemon, or choose another home.";
    /// Too deep or too many.
    NestedLimit = "HM0033", "nested_limit", 403, "too many tasks inside tasks",
        "`[nested]` in config.toml sets how deep they may go (`depth`) and how many one of them may have at once (`children`); wait for some of them to end.";
    /// The database was deleted or replaced under the daemon.
    LedgerMoved = "HM0034", "ledger_moved", 503, "the database was taken away under the running daemon",
        "One that was deleted is put back by itself: try again in a moment. Where another file lies in its place, `homing daemon restart` goes on with that one; what the daemon knew is kept beside it, in homing.db.displaced.";
    /// Notices cannot go there.
    BadTarget = "HM0035", "bad_target", 422, "notices cannot be sent there",
        "Targets are `inbox`, a public https:// address, http://127.0.0.1:PORT/… on this machine (from callers on the Unix socket only), `exec:COMMAND LINE`, `wake` and `desktop`; `[webhook] allow` in config.toml opens private addresses.";
    /// A delivery that does not exist.
    UnknownDelivery = "HM0036", "unknown_delivery", 404, "there is no such delivery",
        "`homing deliveries` lists them.";
    /// An id that was issued, and of which nothing else is known any more.
    RecordExpired = "HM0037", "record_expired", 410, "the task existed, and its record has expired",
        "It ended, and was forgotten longer ago than `[retention] tombstones` in config.toml keeps outcomes (90 days by default). The id is never issued again; a longer time keeps what is forgotten from now on.";
    /// A command inside a task names targets.
    NestedNotify = "HM0038", "nested_notify", 403, "a command inside a task may not say who is told",
        "Leave targets and owner out, and the end waits in the inbox of the owner of the outer task; or submit that one with `--allow-nested-notify`.";
    /// A start of an id that no notice has.
    UnknownNotice = "HM0045", "unknown_notice", 404, "there is no such notice",
        "`homing inbox` shows what waits, with its ids; `homing show ID` has all that was told of a task.";
    /// A start of an id that several notices or deliveries have.
    AmbiguousId = "HM0046", "ambiguous_id", 409, "several ids begin like that",
        "Give more characters of the id.";
    /// No token, or another.
    Unauthorized = "HM0050", "unauthorized", 401, "the token is missing or wrong",
        "Send `Authorization: Bearer TOKEN` with what `homing token show` prints; after `homing token rotate` the old one is worth nothing.";
    /// A request that a page of somebody else's may have made.
    ForeignSite = "HM0051", "foreign_site", 403, "the request came by another name than ours, or from another site",
        "Use http://127.0.0.1:PORT, http://[::1]:PORT or http://localhost:PORT exactly as `homing status` shows them; pages of other sites are never served.";
    /// The listener cannot be had.
    ListenerFailed = "HM0052", "listener_failed", 503, "the loopback listener cannot be opened",
        "Another program may have the port: end it, or choose another with `port` under [listener] in config.toml.";
    /// Inside a task: somebody else's.
    NestedForeign = "HM0053", "nested_foreign", 403, "a command inside a task reaches what it started, and nothing else",
        "Ask from outside of the task, or submit the outer task with `--allow-nested-notify`.";
    /// Inside a task: everybody's.
    NestedConfiguration = "HM0054", "nested_configuration", 403, "a command inside a task changes nothing for everybody",
        "Ask from outside of the task, or submit the outer task with `--allow-nested-notify`.";
    /// An agent reaches for a task of another owner.
    ForeignTask = "HM0055", "foreign_task", 403, "the task belongs to another owner",
        "An agent stops and types into its own tasks only; the tool `list` shows them. A person may stop any task: `homing stop ID`.";
    /// A wake has nobody to go to.
    NobodyToWake = "HM0060", "nobody_to_wake", 422, "nobody can be woken there",
        "Leave `wake` out, and the end waits in the inbox; or name the session outright: `wake:AGENT:SESSION`, or `wake:tmux:%PANE` where wake.tmux is true. `homing doctor` says what can be woken here.";
    /// A session of an agent is spoken for by a process that the agent did not start.
    NoAncestor = "HM0065", "no_ancestor", 403, "the agent did not start this process",
        "Only a hook that the agent itself runs can say which session it is in: `homing install AGENT` sets them up.";
    /// The configuration of an agent cannot be edited.
    AgentConfig = "HM0066", "agent_config", 422, "the agent's configuration cannot be edited",
        "Nothing was written. Mend the file at the place that the message names, then run the command again.";
    /// The configuration of an agent could not be read or written.
    AgentFiles = "HM0067", "agent_files", 500, "the agent's files cannot be read or written",
        "Look at the file that the message names; what was already done is undone by `homing install AGENT --uninstall`.";
    /// Nobody to ask.
    NoAgent = "HM0070", "no_agent", 422, "no agent was named",
        "Name one with `--agent NAME`, or choose one for good: `[agents] default = \"NAME\"` in config.toml. The detail says which are known; `[agents.NAME]` there makes another one.";
    /// An agent that nobody knows.
    UnknownAgent = "HM0071", "unknown_agent", 422, "there is no such agent",
        "Name one of those that the message lists; `[agents.NAME]` in config.toml makes any command an agent.";
    /// A session that cannot go on.
    NotContinued = "HM0072", "not_continued", 409, "the task cannot be continued",
        "Ask anew, without `--continue`; `homing show ID` shows which agent a task had, and its session.";
    /// A request to `/mcp` that its transport does not take.
    McpRequest = "HM0230", "mcp_request", 400, "that is no request of MCP",
        "POST one JSON-RPC message to /mcp with `Content-Type: application/json` and `Accept: application/json, text/event-stream`, as clients of MCP do; there are no sessions and no stream to GET.";
    /// It was submitted without `--pty`.
    NoTerminal = "HM0290", "no_terminal", 409, "the task has no terminal",
        "Submit it with `--pty` to attach to it; `homing output -f ID` follows what it prints.";
    /// As many are attached as may be.
    TooManyViewers = "HM0291", "too_many_viewers", 429, "too many are attached",
        "Detach one of them, or look with `homing output -f ID`.";
    /// Standing where no screen is.
    NotATerminal = "HM0292", "not_a_terminal", 422, "this is no terminal",
        "Run it in a terminal; in a script, `homing output -f ID` and `homing input ID` do the same without a screen.";
    /// A request that must become a WebSocket and does not ask for one.
    NotAWebSocket = "HM0293", "not_a_websocket", 426, "this address speaks WebSocket only",
        "Ask with `Upgrade: websocket`; `homing attach ID` does, and `/openapi.json` describes the frames.";
    /// Nothing stands still before it moves.
    NotStarted = "HM0300", "not_started", 409, "the task has not started yet",
        "Try again once `homing show ID` says that it is running; `homing stop ID` keeps it from starting.";
    /// The supervisor of a task that an earlier release started.
    OldSupervisor = "HM0301", "old_supervisor", 409, "the task was started by a release that could not pause it",
        "It runs on as it is. What is started from now on can be paused: `homing stop ID`, then `homing rerun ID`, if it must be.";
    /// A process of another user, most likely.
    CannotHold = "HM0302", "cannot_hold", 409, "a process of the task cannot be made to stand still",
        "It may be another user's (`sudo`), which only a cgroup of its own could hold: `homing doctor` says whether tasks get one here. The task goes on.";
    /// The shim does not answer.
    SilentSupervisor = "HM0303", "silent_supervisor", 503, "the supervisor of the task does not answer",
        "It may itself have been stopped by a signal, or the machine is very busy: `homing show ID` says where the task is, `homing stop ID` ends it all the same.";
    /// What a task was run with is not all there any more.
    NotAgain = "HM0330", "not_again", 409, "the task cannot be run again from what is kept of it",
        "Submit it anew with `homing run`; `homing show ID` has its command line, its folder and the names of its variables.";
    /// A code of the page that is spent, or too old, or none.
    CodeSpent = "HM0360", "code_spent", 401, "the code of this address is not good any more",
        "`homing web` prints another address; its code is good once, for a minute.";
    /// Another user's program.
    ForeignUser = "HM0361", "foreign_user", 403, "the connection belongs to another user of this machine",
        "The listener serves the programs of the user who runs the daemon; `[confined] allow = true` in config.toml serves those of others that show the token, and no browser of theirs (docs/http.md).";
    /// The browser cannot be let in.
    NotSignedIn = "HM0362", "not_signed_in", 401, "this browser is not signed in",
        "Run `homing web`: it prints, and opens, an address that signs this browser in.";
    /// No service manager of the user.
    NoServiceManager = "HM0400", "no_service_manager", 503, "there is no service manager that could be told",
        "Nothing is needed: the daemon starts with the first command and comes back by itself. In a container run `homing daemon run` under what supervises it; `homing daemon install --dry-run` shows the unit.";
    /// A unit of that name that is somebody else's.
    ForeignUnit = "HM0401", "foreign_unit", 409, "a unit of that name is somebody else's",
        "Look at it, and move it away if it is not needed; then `homing daemon install` writes its own.";
    /// A slip of the finger is no name of a task.
    Unsure = "HM0430", "unsure", 409, "too little of an id to act on a task by",
        "Begin with the `t-`, or write four characters without it, or the name of the task; to look at one, fewer do.";
    /// The program of an agent is not installed where its task would look for it.
    AgentMissing = "HM0431", "agent_missing", 422, "the program of the agent is not there",
        "Install it, or ask one that is there with `--agent NAME`; `argv` under [agents.NAME] in config.toml may name the program by its whole path.";
    /// One caller has its share of the connections.
    TooManyConnections = "HM0432", "too_many_connections", 503, "there is no place for another connection",
        "One process or task may have a quarter of the connections at once, all tasks together seven eighths: close some, or wait until their requests are answered.";
    /// It was in a task whose shim is gone.
    OrphanCaller = "HM0433", "orphan_caller", 403, "the caller was left behind by a task",
        "Which limits hold for it is not known any more, so it is not served. Ask from outside of the task.";
}

impl Code {
    /// Finds a kind by its code (`HM0001`, any case) or its word.
    #[must_use]
    pub fn find(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.code().eq_ignore_ascii_case(text) || kind.slug() == text)
    }

    /// The code of a refusal by this rule.
    #[must_use]
    pub const fn of_rule(rule: Rule) -> Self {
        match rule {
            Rule::Notify => Self::NestedNotify,
            Rule::Foreign => Self::NestedForeign,
            Rule::Configuration => Self::NestedConfiguration,
        }
    }
}

/// One problem that happened: `application/problem+json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// `urn:homing:problem:unknown_task`.
    #[serde(rename = "type")]
    pub kind: String,
    /// What it is.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What happened here, in one sentence.
    pub detail: String,
    /// The stable code, `HM0001`.
    pub code: String,
    /// What to do next.
    pub advice: String,
}

impl Problem {
    /// A problem of this kind, told in one sentence; what it repeats of a request may be long and is cut.
    #[must_use]
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        let mut detail = detail.into();
        agent::cut(&mut detail, MAX_DETAIL_BYTES);
        Self {
            kind: format!("urn:homing:problem:{}", code.slug()),
            title: code.title().to_owned(),
            status: code.http_status(),
            detail,
            code: code.code().to_owned(),
            advice: code.advice().to_owned(),
        }
    }

    /// A refusal by this rule, in the words of the request: a command or a tool may read more than was asked for.
    #[must_use]
    pub fn in_words_of(mut self, rule: Rule, what: &str) -> Self {
        let code = Code::of_rule(rule);
        if self.known() == Some(code) {
            self.detail = format!("{what} is not for callers inside a task (rule `{}`)", code.slug());
        }
        self
    }

    /// Its kind, if this release knows it.
    #[must_use]
    pub fn known(&self) -> Option<Code> {
        Code::find(&self.code)
    }
}

impl From<Unsure> for Problem {
    fn from(unsure: Unsure) -> Self {
        let mut problem = Self::new(Code::Unsure, unsure.to_string());
        problem.advice =
            format!("It fits `{}`: if that is meant, write more. {}", unsure.task, Code::Unsure.advice());
        problem
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.detail, self.code)
    }
}

impl std::error::Error for Problem {}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn codes_and_words_are_unique_and_in_order() {
        let codes: Vec<_> = Code::ALL.iter().map(|code| code.code()).collect();
        assert!(codes.windows(2).all(|pair| pair[0] < pair[1]));
        let slugs: HashSet<_> = Code::ALL.iter().map(|code| code.slug()).collect();
        assert_eq!(slugs.len(), Code::ALL.len());
    }

    #[test]
    fn found_by_code_and_by_word() {
        assert_eq!(Code::find("hm0001"), Some(Code::UnknownTask));
        assert_eq!(Code::find("confined_caller"), Some(Code::Confined));
        assert_eq!(Code::find("HM9999"), None);
        assert_eq!(Code::find("HM0020"), None, "a number that was given up is not given again");
    }

    #[test]
    fn nested_refusal_names_the_request() {
        let refused = |code| {
            Problem::new(code, "`show` of task t-1").in_words_of(Rule::Foreign, "`stop` of task `x`").detail
        };
        assert_eq!(
            refused(Code::NestedForeign),
            "`stop` of task `x` is not for callers inside a task (rule `nested_foreign`)"
        );
        assert_eq!(refused(Code::UnknownTask), "`show` of task t-1");
    }

    #[test]
    fn ambiguous_prefix_names_the_task_it_fits() {
        let id: homing_model::TaskId = "t-k3mbcdfghj".parse().unwrap();
        let problem = Problem::from(homing_model::unsure::certain("k", &id, None).unwrap_err());
        assert!(problem.detail.starts_with("`k` is too little"), "{problem:?}");
        assert!(problem.advice.starts_with("It fits `t-k3mbcdfghj`"), "{problem:?}");
    }
}
