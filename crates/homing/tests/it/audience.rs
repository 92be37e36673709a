//! Whoever follows leaves when nobody reads it any more, also if there is nothing to print.

use std::io::{BufRead as _, BufReader};

use homing_testkit::{gate, wait_for};

#[test]
fn a_follower_leaves_when_its_reader_does_though_the_task_is_silent() {
    let home = super::home();
    let id = home.submit(&[], &format!("echo ready; {}", gate("go")));
    for following in [vec!["output", "-f", &id], vec!["events", "-f"]] {
        let mut follower = home.spawn(&following);
        let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines();
        assert!(lines.next().unwrap().is_ok());
        drop(lines);
        let left = wait_for("the follower to leave", || follower.try_wait().unwrap());
        assert!(left.success(), "{following:?}: {left}");
    }
    let _ = home.until_status(&id, "running");
    home.open("go");
    assert_eq!(home.ended(&id)["status"], "succeeded");
}

#[test]
fn a_follower_into_a_file_stays_to_the_end() {
    let home = super::home();
    let id = home.submit(&[], &format!("echo ready; {}; echo done", gate("go")));
    let file = home.scratch().join("followed");
    let mut follower = home
        .command()
        .args(["output", "-f", &id])
        .stdout(std::fs::File::create(&file).unwrap())
        .spawn()
        .unwrap();
    let read = || std::fs::read_to_string(&file).unwrap();
    wait_for("the first line", || (read() == "ready\n").then_some(()));
    home.open("go");
    assert!(follower.wait().unwrap().success());
    assert_eq!(read(), "ready\ndone\n");
}
