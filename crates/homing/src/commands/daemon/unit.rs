//! The systemd user unit: which file, and what is in it. Pure, but for the variables that it is given.
//!
//! Who restarts what: the keeper restarts the daemon, at once and without being asked, as it does everywhere else; the service manager restarts the one process
//! that it knows, `daemon run --service`, which watches over the two and does nothing else. So no two fight over the home, and a daemon that dies
//! is not a failed service. A stop of the service is a stop on purpose: the daemon leaves, and tasks run on, since only that one process is
//! signalled (`KillMode=process`).

use std::path::{Path, PathBuf};

use homing_api::{Code, Problem};
use homing_model::digest;

use crate::options::environment::Surroundings;
use crate::options::home;

/// How a unit of ours begins. What begins otherwise is somebody else's.
pub(crate) const MARK: &str = "# Written by `homing daemon install`";

/// Variables that decide where things are and what can be found: the service gets them as its installer had them.
const VARIABLES: [&str; 3] = ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "PATH"];

/// A unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unit {
    /// `homing.service`.
    pub(crate) name: String,
    /// The file.
    pub(crate) path: PathBuf,
    /// What is in it.
    pub(crate) text: String,
}

/// What a unit is made of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ingredients<'a> {
    /// This program.
    pub(crate) program: &'a Path,
    /// The home.
    pub(crate) home: &'a Path,
    /// Whether somebody chose it: then the unit has a name of its own, and names it.
    pub(crate) chosen: bool,
}

/// The unit of a home. One that was chosen has a name of its own, so that homes do not meet here either.
pub(crate) fn unit(of: Ingredients<'_>, surroundings: &Surroundings) -> Result<Unit, Problem> {
    let folder = home::xdg(surroundings, "XDG_CONFIG_HOME", ".config")?.join("systemd/user");
    let name = if of.chosen {
        let hash = digest::sha256(of.home.as_os_str().as_encoded_bytes());
        format!("homing-{}.service", hash.get(..8).unwrap_or_default())
    } else {
        "homing.service".to_owned()
    };
    Ok(Unit { path: folder.join(&name), text: text(of, &name, surroundings)?, name })
}

fn text(of: Ingredients<'_>, name: &str, surroundings: &Surroundings) -> Result<String, Problem> {
    let program = executed(plain(of.program)?);
    let mut environment = String::new();
    if of.chosen {
        environment
            .push_str(&format!("Environment={}\n", quoted(&format!("HOMING_HOME={}", plain(of.home)?))));
    }
    for variable in VARIABLES {
        let Some(value) = surroundings.text(variable).filter(|value| !value.contains('\n')) else { continue };
        environment.push_str(&format!("Environment={}\n", quoted(&format!("{variable}={value}"))));
    }
    Ok(format!(
        "{MARK}, and replaced by it. What is yours belongs into a drop-in: `systemctl --user edit {name}`.
[Unit]
Description=homing, which runs commands in the background and brings every result home
StartLimitIntervalSec=300
StartLimitBurst=5

[Service]
Type=notify
NotifyAccess=main
ExecStart={program} daemon run --service
ExecReload={program} config reload
{environment}# The daemon is restarted by its keeper, at once. What is restarted here is the process that watches over both.
Restart=on-failure
RestartSec=2
# A stop or a restart ends neither tasks nor what supervises them.
KillMode=process
# Each task gets a cgroup of its own.
Delegate=yes
# A task that runs out of memory is no reason to stop the others.
OOMPolicy=continue
TasksMax=infinity

[Install]
WantedBy=default.target
"
    ))
}

/// A path that can be written down in a unit.
fn plain(path: &Path) -> Result<&str, Problem> {
    path.to_str().filter(|text| !text.chars().any(char::is_control)).ok_or_else(|| {
        let detail = format!("{} cannot be written into a unit of systemd", path.display());
        let mut problem = Problem::new(Code::InvalidRequest, detail);
        problem.advice = "Choose a path of plain text, without line breaks.".to_owned();
        problem
    })
}

/// As systemd reads it back.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%"))
}

/// A program as `ExecStart=` begins with it. systemd takes no quote and no backslash in the name of a program, however it is written, and reads variables
/// in its arguments alone; so a name with those is given to a shell as an argument.
fn executed(program: &str) -> String {
    if program.contains(['"', '\'', '\\']) {
        let shell = quoted(r#"exec "$0" "$@""#).replace('$', "$$");
        return format!("/bin/sh -c {shell} {}", quoted(program).replace('$', "$$"));
    }
    quoted(program)
}

/// How a unit that is there compares to the one that would be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// There is none.
    Absent,
    /// The same, whatever the PATH of its installer was.
    Current,
    /// Ours, and another.
    Outdated,
    /// Somebody else's.
    Foreign,
}

/// Compares.
pub(crate) fn standing(there: Option<&str>, wanted: &str) -> Standing {
    let without_path = |text: &str| {
        text.lines()
            .filter(|line| !line.starts_with("Environment=\"PATH="))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    match there {
        None => Standing::Absent,
        Some(there) if !there.starts_with(MARK) => Standing::Foreign,
        Some(there) if without_path(there) == without_path(wanted) => Standing::Current,
        Some(_) => Standing::Outdated,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(program: &str, home: &str, chosen: bool) -> Result<Unit, Problem> {
        let surroundings = Surroundings::from([("HOME", "/home/ann"), ("PATH", "/usr/bin:/opt/100%/bin")]);
        unit(Ingredients { program: Path::new(program), home: Path::new(home), chosen }, &surroundings)
    }

    #[test]
    fn a_home_that_was_chosen_has_a_unit_of_its_own_which_names_it() {
        let usual = of("/usr/bin/homing", "/home/ann/.local/state/homing", false).unwrap();
        assert_eq!(usual.path, Path::new("/home/ann/.config/systemd/user/homing.service"));
        assert!(!usual.text.contains("HOMING_HOME"), "{}", usual.text);
        assert!(
            usual.text.contains("\nExecStart=\"/usr/bin/homing\" daemon run --service\n"),
            "{}",
            usual.text
        );
        assert!(usual.text.contains("\nKillMode=process\n") && usual.text.contains("\nDelegate=yes\n"));
        let chosen = of("/usr/bin/homing", "/srv/h", true).unwrap();
        assert!(chosen.name.starts_with("homing-") && chosen.name != usual.name, "{}", chosen.name);
        assert!(chosen.text.contains("\nEnvironment=\"HOMING_HOME=/srv/h\"\n"), "{}", chosen.text);
    }

    #[test]
    fn what_systemd_would_read_otherwise_is_escaped_and_what_it_cannot_read_is_refused() {
        let odd = of("/opt/a b/100%/$x/homing", "/srv/50%", true).unwrap();
        assert!(odd.text.contains("ExecStart=\"/opt/a b/100%%/$x/homing\" daemon run"), "{}", odd.text);
        let by_shell = of("/opt/it's \"b\"/$x\\/homing", "/srv/50%", true).unwrap().text;
        let line = r#"ExecStart=/bin/sh -c "exec \"$$0\" \"$$@\"" "/opt/it's \"b\"/$$x\\/homing" daemon run --service"#;
        assert!(by_shell.contains(line), "{by_shell}");
        assert!(odd.text.contains("\"HOMING_HOME=/srv/50%%\""), "{}", odd.text);
        assert!(odd.text.contains("\"PATH=/usr/bin:/opt/100%%/bin\""), "{}", odd.text);
        assert!(of("/usr/bin/homing", "/srv/a\nb", true).is_err());
    }

    #[test]
    fn only_what_we_wrote_is_ours() {
        let text = of("/usr/bin/homing", "/srv/h", true).unwrap().text;
        assert_eq!(standing(None, &text), Standing::Absent);
        assert_eq!(standing(Some(&text), &text), Standing::Current);
        assert_eq!(standing(Some(&text.replace("/usr/bin:", "/bin:")), &text), Standing::Current);
        assert_eq!(standing(Some(&text.replace("RestartSec=2", "RestartSec=9")), &text), Standing::Outdated);
        assert_eq!(standing(Some("[Service]\nExecStart=homing daemon run\n"), &text), Standing::Foreign);
    }
}
