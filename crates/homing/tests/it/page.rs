//! The page in a real browser: Chromium, driven by scripts of Node (`tests/page/`), on a home of its own each.
//!
//! `cargo xtask test` installs browser and modules. Where they are missing the tests say so and are left out, except under CI, where they fail. With
//! `HOMING_SCREENSHOTS=1` the pictures of `docs/images` are made anew.

use homing_store::store::{Queue, Upkeep};
use std::collections::VecDeque;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use homing_model::queue::StartPolicy;
use homing_model::{Kind, Masks, OnDuplicate, Spec, TaskId, Timestamp};
use homing_store::store::Submit;
use homing_store::{NewTask, SqliteStore, Tracking};
use homing_testkit::{Home, left_out};

/// Where Debian has it.
const CHROMIUM: &str = "/usr/bin/chromium";

/// A browser takes much of a small machine: one at a time.
static ONE: Mutex<()> = Mutex::new(());

fn has(name: &str) -> bool {
    std::env::vars_os().any(|(known, value)| known == name && !value.is_empty())
}

/// The modules of Node, if browser and modules are there.
fn modules() -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("a target folder");
    let modules = target.join("verifiers/page-node");
    let missing = [PathBuf::from(CHROMIUM), modules.clone()].into_iter().find(|path| !path.exists());
    let Some(missing) = missing else { return Some(modules) };
    assert!(!has("CI"), "{} is not there; `cargo xtask test` installs it", missing.display());
    left_out(&format!("{} is not there; `cargo xtask test` installs it", missing.display()));
    None
}

/// Runs a scenario to its end; what it says when it fails is the report.
fn scenario(name: &str) {
    prepared(name, |_| {});
}

/// The same, in a home that was prepared before its daemon starts.
fn prepared(name: &str, prepare: impl FnOnce(&Home)) {
    let Some(modules) = modules() else { return };
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let home = super::home();
    prepare(&home);
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut node = Command::new("node");
    node.arg(here.join("tests/page").join(format!("{name}.mjs")))
        .stdin(Stdio::null())
        .current_dir(home.scratch());
    node.env_remove("HOMING_OWNER").env_remove("HOMING_TASK_ID").env("NO_COLOR", "1");
    node.env("HOMING", home.program()).env("HOMING_HOME", home.path()).env("MODULES", modules);
    node.env("SCRATCH", home.scratch()).env("TMPDIR", home.scratch());
    if has("HOMING_SCREENSHOTS") {
        node.env("PICTURES", here.join("../../docs/images"));
    }
    let ran = Home::finish(&mut node);
    assert_eq!(ran.code, 0, "{name}\n{}\n{}", String::from_utf8_lossy(&ran.stdout), ran.stderr);
}

#[test]
fn the_page_shows_tasks_as_they_begin_print_and_end_and_does_what_people_come_for() {
    scenario("golden");
}

#[test]
fn p4_the_page_is_right_again_by_itself_after_the_daemon_was_killed() {
    scenario("crash");
}

#[test]
fn p11_output_on_the_page_is_text_whatever_is_in_it_and_a_gigabyte_is_scrolled_and_searched() {
    scenario("hostile");
}

#[test]
fn p11_a_page_of_another_origin_or_name_reads_and_changes_nothing_of_a_signed_in_browser() {
    scenario("foreign");
}

#[test]
fn ten_thousand_tasks_are_scrolled_through_and_no_update_is_dropped() {
    prepared("many", |home| fill(home, 10_000));
}

/// Puts so many live tasks of somebody else's into the ledger: a request for each would take most of the test's time.
fn fill(home: &Home, tasks: u64) {
    std::fs::create_dir(home.path()).expect("a home");
    std::fs::set_permissions(home.path(), PermissionsExt::from_mode(0o700)).expect("a home of one's own");
    let store = SqliteStore::open(&home.path().join("homing.db")).expect("a ledger");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mut pending = VecDeque::new();
        for number in 0..tasks {
            let at = 1_790_000_000_000 + i64::try_from(number).expect("a small number");
            pending.push_back(store.submit(foreign(number), Timestamp::from_millis(at)));
            if pending.len() > 200
                && let Some(accepted) = pending.pop_front()
            {
                accepted.await.expect("an accepted task");
            }
        }
        for accepted in pending {
            accepted.await.expect("an accepted task");
        }
        store.close().await.expect("a closed ledger");
    });
}

fn foreign(number: u64) -> Submit {
    let spec = Spec { name: Some(format!("task {number}")), ..Spec::default() };
    let task = NewTask {
        kind: Kind::External,
        tracking: Some(Tracking::Lease { ms: 3_600_000 }),
        agent: None,
        id: TaskId::from_entropy(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        spec,
        owner: format!("owner {}", number % 7),
        command: String::new(),
        env_names: Vec::new(),
        volatile_secrets: Vec::new(),
        masks: Masks::default(),
        parent: None,
        depth: 0,
        network: false,
        node: "here".into(),
        boot_id: "then".into(),
    };
    Submit {
        task,
        on_duplicate: OnDuplicate::Join,
        children: 0,
        idempotency: None,
        policy: StartPolicy::default(),
    }
}

#[test]
fn axe_objects_to_nothing_in_light_and_dark_at_a_desk_and_on_a_phone() {
    scenario("looks");
}
