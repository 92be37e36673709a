//! Where things are: the home with all state, and the configuration file.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use homing_model::{Code, Problem};

use crate::surroundings::Surroundings;

/// The mark that `daemon stop` leaves: nobody revives the daemon by itself while it is there.
pub(crate) const STOPPED: &str = "stopped";

/// The state folder: `--home`, `HOMING_HOME`, or the one that XDG gives.
pub(crate) fn resolve(flag: Option<&Path>, surroundings: &Surroundings) -> Result<PathBuf, Problem> {
    let chosen = flag.map(Path::as_os_str).or_else(|| surroundings.get("HOMING_HOME"));
    match chosen {
        Some(path) => std::path::absolute(path).map_err(|error| {
            Problem::new(Code::InvalidRequest, format!("the home {}: {error}", path.display()))
        }),
        None => Ok(xdg(surroundings, "XDG_STATE_HOME", ".local/state")?.join("homing")),
    }
}

/// The configuration file: in the home where one was chosen, else in the XDG configuration folder.
pub(crate) fn configuration(flag: Option<&Path>, surroundings: &Surroundings) -> Result<PathBuf, Problem> {
    let chosen = flag.is_some() || surroundings.get("HOMING_HOME").is_some();
    let folder = if chosen {
        resolve(flag, surroundings)?
    } else {
        xdg(surroundings, "XDG_CONFIG_HOME", ".config")?.join("homing")
    };
    Ok(folder.join("config.toml"))
}

/// An XDG base folder; relative paths in its variable are to be ignored.
fn xdg(surroundings: &Surroundings, variable: &str, default: &str) -> Result<PathBuf, Problem> {
    let absolute = |value: &&OsStr| Path::new(value).is_absolute();
    if let Some(folder) = surroundings.get(variable).filter(absolute) {
        return Ok(folder.into());
    }
    match surroundings.get("HOME").filter(absolute) {
        Some(home) => Ok(Path::new(home).join(default)),
        None => {
            let mut problem = Problem::new(Code::InvalidRequest, "neither HOMING_HOME nor HOME is set");
            problem.advice = "Choose the state folder with `--home DIR` or HOMING_HOME.".to_owned();
            Err(problem)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home(flag: Option<&str>, surroundings: &Surroundings) -> String {
        resolve(flag.map(Path::new), surroundings).unwrap().display().to_string()
    }

    #[test]
    fn the_flag_wins_then_the_variable_then_xdg_then_the_home_folder() {
        let all = Surroundings::from([("HOMING_HOME", "/v"), ("XDG_STATE_HOME", "/x"), ("HOME", "/h")]);
        assert_eq!(home(Some("/f"), &all), "/f");
        assert_eq!(home(None, &all), "/v");
        assert_eq!(home(None, &Surroundings::from([("XDG_STATE_HOME", "/x"), ("HOME", "/h")])), "/x/homing");
        assert_eq!(
            home(None, &Surroundings::from([("XDG_STATE_HOME", "x"), ("HOME", "/h")])),
            "/h/.local/state/homing"
        );
        assert!(resolve(None, &Surroundings::default()).is_err());
    }

    #[test]
    fn the_configuration_is_in_a_chosen_home_and_else_where_xdg_says() {
        let chosen =
            configuration(None, &Surroundings::from([("HOMING_HOME", "/v"), ("HOME", "/h")])).unwrap();
        assert_eq!(chosen, Path::new("/v/config.toml"));
        let usual = configuration(None, &Surroundings::from([("HOME", "/h")])).unwrap();
        assert_eq!(usual, Path::new("/h/.config/homing/config.toml"));
    }
}
