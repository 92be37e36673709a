//! Who may come in (P11).

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use homing_engine::Config;
use homing_testkit::wait_for;

use crate::served::{Served, helper};

fn ask(command: &mut Command, how: &str, served: &Served) -> String {
    let output = command.arg(how).arg(served.socket()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn p11_a_confined_caller_is_refused_with_the_reason() {
    let served = Served::start();
    assert!(ask(&mut Command::new(helper()), "plain", &served).starts_with("HTTP/1.1 200"));
    let own = std::fs::read_to_string("/proc/self/status").unwrap();
    if own.contains("NoNewPrivs:\t1") {
        return;
    }
    let refused = ask(&mut Command::new(helper()), "confined", &served);
    assert!(refused.starts_with("HTTP/1.1 403"), "{refused}");
    assert!(refused.contains("HM0016") && refused.contains("no_new_privs"), "{refused}");
}

#[test]
fn a_person_may_allow_confined_callers() {
    let mut config = Config::default();
    config.confined.allow = true;
    let served = Served::with(config);
    assert!(ask(&mut Command::new(helper()), "confined", &served).starts_with("HTTP/1.1 200"));
}

#[test]
fn p11_another_user_is_refused_even_where_the_folder_lets_them_in() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let served = Served::start();
    let open =
        |path: &std::path::Path| std::fs::set_permissions(path, PermissionsExt::from_mode(0o777)).unwrap();
    open(served.home().parent().unwrap());
    open(served.home());
    open(&served.socket());
    // The helper must be where that user can execute it; copied by another process, so that nothing we fork holds it open.
    let copy = served.home().join("helper");
    assert!(Command::new("cp").arg(helper()).arg(&copy).status().unwrap().success());
    open(&copy);
    let refused = ask(Command::new(copy).uid(65534), "plain", &served);
    assert!(refused.starts_with("HTTP/1.1 403") && refused.contains("HM0017"), "{refused}");
}

#[test]
fn p11_a_connection_that_was_handed_on_is_still_that_of_the_task_it_was_made_in() {
    let served = Served::start();
    for round in 0..5 {
        let answer = served.home().parent().unwrap().join(format!("answer.{round}"));
        let argv = [helper(), "hand".into(), served.socket(), answer.clone()];
        let argv: Vec<_> = argv.iter().map(|word| word.to_str().unwrap()).collect();
        let submitted = served.post("/v1/tasks", &serde_json::json!({ "argv": argv }).to_string());
        assert_eq!(submitted.status, 201, "{}", submitted.text());
        let said = wait_for("what was answered", || std::fs::read_to_string(&answer).ok());
        // Either it was seen to be inside, or there was nobody left to look at.
        assert!(said.starts_with("HTTP/1.1 403"), "{said}");
        assert!(
            said.contains("HM0054") || said.contains("has ended") || said.contains("cannot be seen"),
            "{said}"
        );
    }
}
