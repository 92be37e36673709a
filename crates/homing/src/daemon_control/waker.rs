//! `homing __homing-wake HOME [BUS]`: what the daemon runs, under a shim, to start a turn of an agent.
//!
//! Reads an order on its input, does it, and says by its exit code what came of it: 0 delivered, 75 not now, 78 given up, 1 a failed attempt. Its last line
//! says how or why, and stays with the delivery. It asks no daemon: what it needs to know is in the order.

use std::io::{self, Read, Write};
use std::path::Path;

use homing_agents::wake::{self, Verdict};
use homing_deliver::wake::{http_client, wake};
use homing_model::{OsText, WakeOrder};

use crate::cli::exit_code;
use crate::options::environment::Surroundings;
use crate::options::home;

/// The hidden first argument.
pub(crate) const WAKE: &str = "__homing-wake";
/// The code that means: not now (`EX_TEMPFAIL`).
const NOT_NOW: u8 = 75;
/// The code that means: another attempt would fail in the same way (`EX_CONFIG`).
const GIVEN_UP: u8 = 78;
/// No order is longer: fifty notices with their tails.
const LONGEST: u64 = 16 << 20;
/// Where programs are looked for; a session says it better.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// Where people keep programs of their own, in their folder.
const OWN: [&str; 3] = [".local/bin", "bin", ".npm-global/bin"];

/// How the daemon calls this.
pub(crate) fn command(program: &Path, home: &Path, bus: Option<&str>) -> Vec<OsText> {
    let words = [program.as_os_str(), WAKE.as_ref(), home.as_os_str()].into_iter();
    words.chain(bus.map(AsRef::as_ref)).map(|word| OsText::from(word.to_owned())).collect()
}

/// The session bus that the environment names. The waker, whose environment is not the daemon's, has it from its command line.
pub(crate) fn bus(surroundings: &Surroundings) -> Option<String> {
    surroundings.text("DBUS_SESSION_BUS_ADDRESS").map(str::to_owned)
}

/// What can be known of this process's surroundings.
pub(crate) fn surroundings(home: &Path, surroundings: &Surroundings) -> wake::Surroundings {
    let user = surroundings.get("HOME").map(Path::new).filter(|user| user.is_absolute());
    let own = user.iter().flat_map(|user| OWN.map(|folder| user.join(folder).to_string_lossy().into_owned()));
    let path = std::iter::once(PATH.to_owned()).chain(own).collect::<Vec<_>>().join(":");
    let usual = surroundings.get("HOMING_HOME").is_none()
        && home::resolve(None, surroundings).is_ok_and(|usual| usual == home);
    let user = user.map(Path::to_owned);
    let (bus, http) = (bus(surroundings), Some(http_client()));
    wake::Surroundings { home: home.to_owned(), names_home: !usual, user, path, bus, http }
}

/// Does what the order on the input says.
pub(crate) fn run(home: &Path) -> u8 {
    let mut surroundings = surroundings(home, &Surroundings::of_this_process());
    surroundings.bus = std::env::args_os().nth(3).and_then(|bus| bus.into_string().ok()).or(surroundings.bus);
    let verdict = match read() {
        Ok(order) => match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime.block_on(wake(&order, &surroundings)),
            Err(error) => Verdict::Failed(format!("the event loop cannot be set up: {error}")),
        },
        Err(why) => Verdict::Failed(why),
    };
    let (code, line) = match &verdict {
        Verdict::Delivered(how) => (exit_code::DONE, how),
        Verdict::NotNow(why) => (NOT_NOW, why),
        Verdict::Failed(why) => (exit_code::FAILED, why),
        Verdict::GivenUp(why) => (GIVEN_UP, why),
    };
    // If nobody takes it, the code still says what matters.
    let _ = writeln!(io::stderr(), "{}", homing_model::sanitize::line(line));
    code
}

fn read() -> Result<WakeOrder, String> {
    let mut text = Vec::new();
    let read = io::stdin().take(LONGEST).read_to_end(&mut text);
    read.map_err(|error| format!("the order cannot be read: {error}"))?;
    WakeOrder::from_json(&text).map_err(|why| why.to_string())
}
