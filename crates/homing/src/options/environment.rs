//! The environment of this process, read once.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use homing_model::OsText;

use crate::options::nested_agent_env;

/// The variables that this process was given.
#[derive(Debug, Default)]
pub(crate) struct Surroundings {
    variables: BTreeMap<OsString, OsString>,
}

impl Surroundings {
    /// Those of this process; of several sessions of agents the innermost.
    pub(crate) fn of_this_process() -> Self {
        let mut given = Self::default();
        // One by one: to collect them would sort them first, which for so few is more work, and more code to be loaded.
        given.variables.extend(std::env::vars_os());
        nested_agent_env::keep(&mut given);
        given
    }

    /// Takes a variable out.
    pub(crate) fn forget(&mut self, name: &str) {
        self.variables.remove(OsStr::new(name));
    }

    /// A variable; an empty one counts as absent.
    pub(crate) fn get(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(OsStr::new(name)).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// A variable as text.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(OsStr::to_str)
    }

    /// A variable exactly as it is, empty or not.
    pub(crate) fn exact(&self, name: &str) -> Option<OsText> {
        self.variables.get(OsStr::new(name)).cloned().map(OsText::from)
    }

    /// All variables whose names are text.
    pub(crate) fn all(&self) -> impl Iterator<Item = (String, OsText)> {
        self.variables
            .iter()
            .filter_map(|(name, value)| Some((name.to_str()?.to_owned(), OsText::from(value.clone()))))
    }
}

#[cfg(test)]
impl<const N: usize> From<[(&str, &str); N]> for Surroundings {
    fn from(pairs: [(&str, &str); N]) -> Self {
        Self { variables: pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect() }
    }
}
