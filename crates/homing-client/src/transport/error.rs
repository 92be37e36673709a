//! What can go wrong between asking and understanding the answer.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use homing_api::{Code, Problem};
use homing_model::shell::quote;
use homing_sys::private::{self, Fault};

use crate::transport::socket::SOCKET;

/// Why a request has no answer, or none that can be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nobody listens, or the socket cannot be opened. Nothing was sent.
    #[error("cannot connect to {}", socket.display())]
    Unreachable {
        /// Which socket.
        socket: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// Another user could be behind the socket of this home. Nothing was sent.
    #[error("the home {} {fault}", home.display())]
    Untrusted {
        /// Which home.
        home: PathBuf,
        /// What is wrong with it.
        fault: Fault,
    },
    /// Nobody listens at the address of a loopback listener. Nothing was sent.
    #[error("cannot connect to {address}")]
    NoListener {
        /// Where.
        address: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// The connection broke: the request may or may not have been heard.
    #[error("the connection to the daemon broke")]
    Broken(#[source] hyper::Error),
    /// A connection that was open for long broke.
    #[error("the connection to the daemon broke")]
    Lost(#[source] io::Error),
    /// No answer within the time that the caller gave.
    #[error("the daemon did not answer in time")]
    NoAnswer,
    /// The daemon refused, and said why.
    #[error("{0}")]
    Problem(Box<Problem>),
    /// The answer is not what this release understands.
    #[error("the daemon's answer to {what} cannot be understood: {why}")]
    Protocol {
        /// What was asked.
        what: String,
        /// What is wrong with the answer.
        why: String,
    },
    /// The answer is not the JSON that it should be.
    #[error("the daemon's answer to {what} is not the JSON that it should be")]
    Json {
        /// What was asked.
        what: String,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

/// What to do where the system itself forbids to connect.
const IN_A_SANDBOX: &str = "A sandbox around this command forbids it, and starting a daemon here would not help: have the agent run homing outside of its sandbox, or use homing's MCP \
     tools, which it runs itself. If there is no sandbox: the home must be yours (`homing doctor`).";

/// The way out of a home that cannot be used.
const ANOTHER_HOME: &str = "HOMING_HOME or `--home DIR` chooses another.";

fn advice_on(home: &Path, fault: Fault) -> String {
    let shown = |path: &Path| quote(&path.display().to_string()).into_owned();
    match fault {
        Fault::Link => {
            let target = std::fs::canonicalize(home).unwrap_or_else(|_| home.to_owned());
            format!("Name the folder itself: `export HOMING_HOME={}`.", shown(&target))
        }
        Fault::Open(_) => {
            format!("`chmod 700 {}` closes it, if it is meant to be the home. {ANOTHER_HOME}", shown(home))
        }
        Fault::NotAFolder | Fault::ForeignOwner(_) | Fault::ForeignListener(_) => ANOTHER_HOME.to_owned(),
    }
}

impl Error {
    /// Why the socket of a home cannot be connected to.
    pub(crate) fn connecting(home: &Path, error: private::Error) -> Self {
        match error {
            private::Error::Untrusted { home, fault } => Self::Untrusted { home, fault },
            private::Error::Io(source) => Self::Unreachable { socket: home.join(SOCKET), source },
        }
    }

    /// Whether the daemon is an older one, which this client may meet until it is restarted, and does not know a parameter.
    pub(crate) fn is_about(&self, parameter: &str) -> bool {
        let unknown = format!("`{parameter}` is not a parameter");
        let names = |problem: &Problem| problem.detail.starts_with(&unknown);
        matches!(self, Self::Problem(problem) if self.code() == Some(Code::InvalidRequest) && names(problem))
    }

    /// Whether the daemon went away, so that asking again may help.
    #[must_use]
    pub fn is_disconnect(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::NoListener { .. } | Self::Broken(_) | Self::Lost(_))
    }

    /// Whether the daemon has no room for the caller at the moment: too many connections, or no descriptor or process left.
    #[must_use]
    pub fn is_shortage(&self) -> bool {
        matches!(self.code(), Some(Code::TooManyConnections | Code::SystemLimit))
    }

    /// Whether nobody listens: no socket, one that its daemon left behind, no folder where one could be, or a daemon that died with our
    /// connection still in its queue.
    #[must_use]
    pub fn is_nobody_there(&self) -> bool {
        use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, NotADirectory, NotFound};
        let absent = [NotFound, ConnectionRefused, NotADirectory, ConnectionReset, ConnectionAborted];
        matches!(self, Self::Unreachable { source, .. } | Self::NoListener { source, .. } if absent.contains(&source.kind()))
    }

    /// The kind of problem that the daemon named.
    #[must_use]
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Problem(problem) => problem.known(),
            _ => None,
        }
    }

    /// The same as a problem, for people: every error has a code and a next step.
    #[must_use]
    pub fn into_problem(self) -> Problem {
        let chain = |error: &dyn std::error::Error| match error.source() {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        };
        match self {
            Self::Problem(problem) => *problem,
            Self::Untrusted { ref home, fault } => {
                let mut problem = Problem::new(Code::HostileHome, self.to_string());
                problem.advice = advice_on(home, fault);
                problem
            }
            // The home is ours, so that it is no file mode that keeps us out.
            Self::Unreachable { ref source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                let mut problem = Problem::new(Code::DaemonUnreachable, chain(&self));
                problem.advice = IN_A_SANDBOX.to_owned();
                problem
            }
            Self::Unreachable { .. }
            | Self::NoListener { .. }
            | Self::Broken(_)
            | Self::Lost(_)
            | Self::NoAnswer => Problem::new(Code::DaemonUnreachable, chain(&self)),
            Self::Protocol { .. } | Self::Json { .. } => Problem::new(Code::VersionMismatch, chain(&self)),
        }
    }
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        Self::Problem(Box::new(problem))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_may_not_connect_is_not_told_to_start_a_daemon() {
        let told = |kind: io::ErrorKind| {
            Error::Unreachable { socket: "/x".into(), source: kind.into() }.into_problem().advice
        };
        assert!(told(io::ErrorKind::PermissionDenied).contains("sandbox"));
        assert!(told(io::ErrorKind::NotFound).contains("homing daemon start"));
    }
}
