//! A task that says how far it is.

use homing_testkit::wait_for;

#[test]
fn what_a_task_says_of_its_progress_is_shown_everywhere_and_stays() {
    let home = super::home();
    let line = "\"$HOMING\" progress 40 linking the parts; until [ -e go ]; do sleep 0.01; done; \"$HOMING\" progress 90%";
    let program = format!("HOMING={}", home.program().display());
    let id = home.submit(&["--env", &program, "--name", "build"], line);
    let task = wait_for("the progress", || {
        let task = home.task(&id);
        // The shim's word of the start may come after the task's own.
        (!task["progress"].is_null() && task["status"] == "running").then_some(task)
    });
    assert_eq!(
        (&task["progress"]["percent"], &task["progress"]["text"]),
        (&40.0.into(), &"linking the parts".into())
    );
    assert!(home.cli(["list"]).ok().text().contains("running 40%"));
    assert!(home.cli(["show", &id]).ok().text().contains("40 % linking the parts"));
    std::fs::write(home.scratch().join("go"), b"").expect("the gate opens");
    let ended = home.ended(&id);
    assert_eq!((&ended["status"], &ended["progress"]["percent"]), (&"succeeded".into(), &90.0.into()));
    let events = home.cli(["events"]).ok().text();
    assert_eq!(events.matches("task.progress").count(), 2, "{events}");
}

#[test]
fn progress_outside_of_a_task_or_out_of_bounds_is_told_what_to_do() {
    let home = super::home();
    let outside = home.cli(["progress", "40"]);
    assert!(outside.code == 2 && outside.stderr.contains("--task"), "{}", outside.stderr);
    assert!(outside.stderr.contains("HOMING_TASK_ID is not set"), "{}", outside.stderr);
    let absurd = home.cli(["progress", "140"]);
    assert!(absurd.code != 0 && absurd.stderr.contains("0 to 100"), "{}", absurd.stderr);
    let id = home.submit(&[], "true");
    let _ = home.ended(&id);
    let late = home.cli(["progress", "--task", &id, "50"]);
    assert!(late.code != 0 && late.stderr.contains("has ended"), "{}", late.stderr);
}

#[test]
fn nobody_says_how_far_anothers_task_is() {
    let home = super::home();
    let id = home.submit(&["--owner", "ann", "--stdin", "pipe"], "read line");
    let foreign = home.cli(["progress", "--task", &id, "50"]);
    assert_eq!(foreign.code, 4, "{foreign:?}");
    let said =
        home.command().env("HOMING_OWNER", "ann").args(["progress", "--task", &id, "50", "--json"]).output();
    let said: serde_json::Value =
        serde_json::from_slice(&said.expect("the binary runs").stdout).expect("JSON");
    assert_eq!((&said["id"], &said["progress"]["percent"]), (&id.as_str().into(), &50.0.into()));
    assert_eq!(said.as_object().map(serde_json::Map::len), Some(3), "{said}");
}
