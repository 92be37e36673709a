//! `--notify desktop`, against a real notification daemon (dunst) on a bus and a display of its own.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use homing_testkit::{Home, left_out, wait_for};
use serde_json::{Value, json};

/// A desktop without anybody at it.
struct Desktop {
    folder: tempfile::TempDir,
    display: String,
    programs: Vec<Child>,
}

impl Desktop {
    /// None where its programs are not installed.
    fn begin() -> Option<Self> {
        for program in ["dbus-daemon", "Xvfb", "dunst", "dunstctl", "dbus-send", "notify-send"] {
            if !["/usr/bin", "/usr/local/bin", "/bin"]
                .iter()
                .any(|folder| Path::new(folder).join(program).exists())
            {
                left_out(&format!("{program} is not here: notifications on a real desktop"));
                return None;
            }
        }
        let folder = tempfile::tempdir().expect("a desktop");
        let mut desktop = Self { folder, display: String::new(), programs: Vec::new() };
        let bus = format!("--address={}", desktop.bus());
        desktop.start(Command::new("dbus-daemon").args(["--session", "--nofork", "--nopidfile", &bus]));
        let shown = desktop.folder.path().join("display");
        let mut server = Command::new("Xvfb");
        server.args(["-displayfd", "1", "-nolisten", "tcp"]).stdout(File::create(&shown).expect("a desktop"));
        desktop.start(&mut server);
        let number =
            wait_for("a display", || fs::read_to_string(&shown).ok().filter(|text| text.ends_with('\n')));
        desktop.display = format!(":{}", number.trim());
        wait_for("the bus", || {
            fs::exists(desktop.folder.path().join("bus")).expect("a desktop").then_some(())
        });
        let config = desktop.folder.path().join("dunstrc");
        fs::write(&config, "").expect("a desktop");
        let mut dunst = desktop.around(Command::new("dunst"));
        dunst.arg("-conf").arg(&config).stdout(Stdio::null());
        desktop.start(&mut dunst);
        wait_for("the notification daemon", || {
            let mut ask = desktop.around(Command::new("dunstctl"));
            ask.arg("count").output().is_ok_and(|output| output.status.success()).then_some(())
        });
        Some(desktop)
    }

    fn bus(&self) -> String {
        format!("unix:path={}", self.folder.path().join("bus").display())
    }

    fn around(&self, mut command: Command) -> Command {
        command.env("DBUS_SESSION_BUS_ADDRESS", self.bus()).env("DISPLAY", &self.display);
        command.env("HOME", self.folder.path()).env_remove("WAYLAND_DISPLAY").stderr(Stdio::null());
        command
    }

    fn start(&mut self, command: &mut Command) {
        self.programs.push(command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().expect("a desktop"));
    }

    /// What was shown, from the newest on.
    fn history(&self) -> Value {
        let closed = self.around(Command::new("dunstctl")).arg("close-all").status().expect("a desktop");
        assert!(closed.success());
        let history = self.around(Command::new("dunstctl")).arg("history").output().expect("a desktop");
        let history: Value = serde_json::from_slice(&history.stdout).expect("a desktop");
        history["data"][0].clone()
    }
}

impl Drop for Desktop {
    fn drop(&mut self) {
        for program in self.programs.iter_mut().rev() {
            let _ = program.kill();
            let _ = program.wait();
        }
    }
}

/// A submit by somebody whose session has this bus, which is where the daemon is begun.
fn submit(home: &Home, bus: Option<&str>, words: &[&str]) -> homing_testkit::Output {
    let mut command = home.command();
    command.env_remove("DBUS_SESSION_BUS_ADDRESS").args(words);
    if let Some(bus) = bus {
        command.env("DBUS_SESSION_BUS_ADDRESS", bus);
    }
    Home::finish(&mut command)
}

#[test]
fn an_end_is_shown_on_the_desktop_as_text_and_nothing_else() {
    let Some(desktop) = Desktop::begin() else { return };
    let home = super::home();
    let line = "echo '<img src=\"file:///x\"/>'; exit 3";
    let words = ["run", "--notify", "desktop", "--name", "<b>bold</b> & co", "-c", line];
    let id = submit(&home, Some(&desktop.bus()), &words).ok().text();
    let shown = wait_for("the notification", || {
        let history = desktop.history();
        history.as_array().is_some_and(|list| !list.is_empty()).then_some(history)
    });
    assert_eq!(shown.as_array().unwrap().len(), 1, "{shown}");
    let text = |field: &str| shown[0][field]["data"].as_str().unwrap_or_default().to_owned();
    assert_eq!((text("appname").as_str(), text("summary").as_str()), ("homing", "homing"));
    let body = text("body");
    assert!(body.contains(&id) && body.contains("&lt;b&gt;bold"), "{body}");
    assert!(!body.contains("<b>") && !body.contains("<img"), "{body}");
    let delivery = wait_for("the delivery", || {
        let deliveries = home.cli(["deliveries", "--json"]).ok().json();
        deliveries["items"].as_array()?.iter().find(|item| item["state"] == "delivered").cloned()
    });
    assert_eq!(delivery["target"], json!("desktop"), "{delivery}");
}

#[test]
fn a_desktop_notification_is_refused_where_nothing_can_show_it() {
    let home = super::home();
    if fs::exists(format!("/run/user/{}/bus", rustix::process::getuid().as_raw())).unwrap() {
        left_out("a session bus is here: the refusal without one");
        return;
    }
    for bus in [None, Some("unix:path=/nonexistent/bus")] {
        let home = super::home();
        let refused = submit(&home, bus, &["run", "--notify", "desktop", "true"]);
        assert_eq!(refused.code, 1, "{}", refused.stderr);
        let said =
            ["no `notify-send` here", "no session bus here"].iter().any(|why| refused.stderr.contains(why));
        assert!(
            said && refused.stderr.contains("HM0035") && refused.stderr.contains("`inbox`"),
            "{}",
            refused.stderr
        );
    }
    assert_eq!(home.cli(["list", "--all", "--json"]).ok().json()["items"], json!([]));
}
