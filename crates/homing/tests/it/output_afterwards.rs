//! Children that outlive a task go on writing: what is said of its output stays true.

use homing_testkit::{gate, wait_for};

use super::home;

#[test]
fn p7_the_length_of_the_output_counts_what_was_written_after_the_end() {
    let home = home();
    let id =
        home.submit(&[], &format!("echo first; ({}; echo second; {}) & exit 3", gate("say"), gate("go")));
    let task = home.ended(&id);
    assert_eq!((&task["outcome"]["exit_code"], &task["output"]["bytes"]), (&3.into(), &6.into()), "{task}");
    home.open("say");
    wait_for("the longer output", || (home.task(&id)["output"]["bytes"] == 13).then_some(()));
    assert_eq!(home.output(&id), b"first\nsecond\n");
    home.open("go");
    wait_for("the shim to leave", || home.processes("homing-shim").is_empty().then_some(()));
    // Nobody is left who could say so; the files can.
    let task = home.task(&id);
    assert_eq!((&task["output"]["bytes"], &task["output"]["dropped"]), (&13.into(), &0.into()), "{task}");
    home.does(["forget", &id]);
    assert_eq!(home.task(&id)["forgotten"], true);
}
