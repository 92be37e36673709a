//! A daemon that is there and does not answer: whoever waits for it is told who it is, and how to be rid of it.

use homing_testkit::{freeze, thaw};

#[test]
fn a_daemon_that_does_not_answer_is_named_and_not_waited_for_in_silence() {
    let home = super::home();
    let daemon = home.daemon_pid();
    let id = home.submit(&[], "true");
    let _ = home.ended(&id);
    freeze(daemon);
    let listing = home.spawn(["list"]);
    let calls =
        [["daemon", "stop"], ["daemon", "restart"], ["daemon", "status"]].map(|call| home.spawn(call));
    for call in calls {
        let left = call.wait_with_output().unwrap();
        let said = String::from_utf8(left.stderr).unwrap();
        assert_eq!(left.status.code(), Some(69), "{said}");
        assert!(said.contains("does not answer") && said.contains(&format!("`kill -9 {daemon}`")), "{said}");
    }
    let looked = home.cli(["doctor"]);
    assert_eq!(looked.code, 1, "{}", looked.text());
    assert!(looked.text().contains(&format!("`kill -9 {daemon}`")), "{}", looked.text());
    // By now whoever lists has been told, and goes on waiting.
    homing_testkit::drift(std::time::Duration::from_secs(5));
    thaw(daemon);
    let listed = listing.wait_with_output().unwrap();
    let said = String::from_utf8(listed.stderr).unwrap();
    assert_eq!(listed.status.code(), Some(0), "{said}");
    assert!(said.contains(&format!("(pid {daemon}) does not answer; it is waited for")), "{said}");
    assert!(String::from_utf8(listed.stdout).unwrap().contains(&id));
}
