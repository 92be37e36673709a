//! The service unit, where there is one.

use super::Check;
use crate::cli::context::Context;
use crate::commands::daemon::install;
use crate::commands::daemon::unit::{self, Standing};

const NAME: &str = "service";

/// Whether the daemon is installed as a service, and as this program would install it.
pub(super) fn service(context: &Context) -> Check {
    let found = install::wanted(context).and_then(|unit| install::there(&unit).map(|there| (unit, there)));
    let (unit, there) = match found {
        Ok(found) => found,
        Err(problem) => return Check::warn(NAME, problem.detail, problem.advice),
    };
    let manager = install::manager(context);
    let shown = unit.path.display();
    match (unit::standing(there.as_deref(), &unit.text), manager) {
        (Standing::Absent, Err(why)) => Check::ok(NAME, format!("none, and none is needed: {}", why.detail)),
        (Standing::Absent, Ok(())) => Check::ok(
            NAME,
            "none; the first command starts the daemon (`homing daemon install` has it from login on)",
        ),
        (Standing::Current, Ok(())) => Check::ok(NAME, shown.to_string()),
        (Standing::Current | Standing::Outdated, Err(why)) => Check::warn(
            NAME,
            format!("{shown} is there, but nobody to run it: {}", why.detail),
            "Nothing is amiss: the first command starts the daemon.",
        ),
        (Standing::Outdated, Ok(())) => Check::warn(
            NAME,
            format!("{shown} is not as this program would write it"),
            "`homing daemon install` brings it up to date.",
        ),
        (Standing::Foreign, _) => Check::warn(
            NAME,
            format!("{shown} is not one that `homing daemon install` wrote"),
            "If it runs `homing daemon run`, fine; see docs/service.md for what it should say.",
        ),
    }
}
