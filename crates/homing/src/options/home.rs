//! Where things are: the home with all state, and the configuration file.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use homing_api::{Code, Problem};
use homing_client::SOCKET;
use homing_model::shell::quote;
use homing_sys::private::{self, PrivateHome};
use rustix::fs::Access;

use crate::options::environment::Surroundings;

/// The mark that `daemon stop` leaves: nobody revives the daemon by itself while it is there.
pub(crate) const STOPPED: &str = "stopped";

/// The way out that is always there.
const ANOTHER: &str = "HOMING_HOME or `--home DIR` chooses another.";

/// The state folder: `--home`, `HOMING_HOME`, or the one that XDG gives.
pub(crate) fn resolve(flag: Option<&Path>, surroundings: &Surroundings) -> Result<PathBuf, Problem> {
    let chosen = flag.map(Path::as_os_str).or_else(|| surroundings.get("HOMING_HOME"));
    match chosen {
        Some(path) => {
            let path = std::path::absolute(path).map_err(|error| {
                Problem::new(Code::InvalidRequest, format!("the home {}: {error}", path.display()))
            })?;
            // A slash at the end would follow a link.
            Ok(path.components().collect())
        }
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

/// What keeps this folder from being a home, as far as looking tells. One that is not there can be made.
pub(crate) fn check(home: &Path) -> Result<(), Problem> {
    match PrivateHome::open(home) {
        Ok(_) => check_socket(home),
        Err(private::Error::Untrusted { home, fault }) => {
            Err(homing_client::Error::Untrusted { home, fault }.into_problem())
        }
        Err(private::Error::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
            let above = home.ancestors().find(|folder| folder.exists()).unwrap_or(home);
            let room = rustix::fs::access(above, Access::WRITE_OK | Access::EXEC_OK);
            room.map_err(|errno| unusable(home, &errno.into()))
        }
        Err(private::Error::Io(error)) => Err(unusable(home, &error)),
    }
}

/// Whether nothing was ever run here: then there is nothing to look at, and looking makes no folder.
pub(crate) fn is_missing(home: &Path) -> bool {
    let missing =
        matches!(std::fs::symlink_metadata(home), Err(error) if error.kind() == io::ErrorKind::NotFound);
    missing && check(home).is_ok()
}

/// What to say of it.
pub(crate) fn missing(home: &Path) -> Problem {
    let mut problem =
        Problem::new(Code::UnknownTask, format!("there is no home at {}, and so no task", home.display()));
    problem.advice = format!("The first `homing run` makes it. {ANOTHER}");
    problem
}

/// A folder where the socket should be is the one thing that a new socket cannot take the place of.
pub(crate) fn check_socket(home: &Path) -> Result<(), Problem> {
    let socket = home.join(SOCKET);
    if !std::fs::symlink_metadata(&socket).is_ok_and(|found| found.is_dir()) {
        return Ok(());
    }
    let shown = socket.display();
    let mut problem = Problem::new(
        Code::StorageFailed,
        format!("{shown} is a folder, where the daemon's socket should be"),
    );
    problem.advice = format!("Move it away: `mv {0} {0}.moved`. {ANOTHER}", quote(&shown.to_string()));
    Err(problem)
}

/// A home that cannot be made or read.
pub(crate) fn unusable(home: &Path, error: &io::Error) -> Problem {
    let mut problem =
        Problem::new(Code::StorageFailed, format!("the home {} cannot be used: {error}", home.display()));
    problem.advice = ANOTHER.to_owned();
    problem
}

/// An XDG base folder; relative paths in its variable are to be ignored.
pub(crate) fn xdg(surroundings: &Surroundings, variable: &str, default: &str) -> Result<PathBuf, Problem> {
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
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn home(flag: Option<&str>, surroundings: &Surroundings) -> String {
        resolve(flag.map(Path::new), surroundings).unwrap().display().to_string()
    }

    #[test]
    fn the_flag_wins_then_the_variable_then_xdg_then_the_home_folder() {
        let all = Surroundings::from([("HOMING_HOME", "/v"), ("XDG_STATE_HOME", "/x"), ("HOME", "/h")]);
        assert_eq!(home(Some("/f"), &all), "/f");
        assert_eq!(home(Some("/f/"), &all), "/f");
        assert_eq!(home(None, &all), "/v");
        assert_eq!(home(None, &Surroundings::from([("XDG_STATE_HOME", "/x"), ("HOME", "/h")])), "/x/homing");
        assert_eq!(
            home(None, &Surroundings::from([("XDG_STATE_HOME", "x"), ("HOME", "/h")])),
            "/h/.local/state/homing"
        );
        assert!(resolve(None, &Surroundings::default()).is_err());
    }

    #[test]
    fn a_folder_that_cannot_be_a_home_is_refused_with_the_way_out() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o700)).unwrap();
        let inside = |name: &str| folder.path().join(name);
        std::fs::write(inside("file"), "").unwrap();
        std::fs::create_dir(inside("open")).unwrap();
        std::fs::set_permissions(inside("open"), PermissionsExt::from_mode(0o755)).unwrap();
        std::os::unix::fs::symlink(folder.path(), inside("link")).unwrap();
        for (name, code, says) in [
            ("file", Code::HostileHome, "is a file"),
            ("open", Code::HostileHome, "mode 0755"),
            ("link", Code::HostileHome, "is a link"),
            ("file/below", Code::StorageFailed, "cannot be used"),
        ] {
            let problem = check(&inside(name)).unwrap_err();
            assert_eq!(problem.known(), Some(code), "{name}");
            assert!(problem.detail.contains(says) && problem.advice.contains("HOMING_HOME"), "{problem:?}");
        }
        let home = inside("home");
        std::fs::create_dir_all(home.join("homing.sock")).unwrap();
        std::fs::set_permissions(&home, PermissionsExt::from_mode(0o700)).unwrap();
        let problem = check(&home).unwrap_err();
        assert!(
            problem.detail.contains("homing.sock is a folder") && problem.advice.starts_with("Move it away")
        );
        assert!(check(&inside("open")).unwrap_err().advice.starts_with("`chmod 700 /"));
        assert_eq!(check(folder.path()), Ok(()));
        assert_eq!(check(&inside("none/yet")), Ok(()));
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
