//! What changes a task is not done by a slip of the finger: a letter that happens to fit is enough to look, and too little to act.

use homing_testkit::Home;

#[test]
fn p8_a_single_letter_stops_and_changes_nothing() {
    let home = super::home();
    let id = home.submit(&["--stdin", "pipe"], "exec cat");
    let _ = home.until_status(&id, "running");
    for start in [&id[2..3], &id[2..5]] {
        for command in
            [&["stop"][..], &["pause"], &["resume"], &["input", "--eof"], &["rerun"], &["ack"], &["forget"]]
        {
            let mut words = command.to_vec();
            words.push(start);
            let refused = home.cli(&words);
            assert!(refused.code == 1 && refused.stderr.contains("(HM0430)"), "{words:?}: {refused:?}");
            assert!(refused.stderr.contains(&id), "what it would have been is told: {refused:?}");
        }
        assert_eq!(home.cli(["show", start, "--json"]).ok().json()["id"], id.as_str(), "looking is free");
    }
    assert_eq!(home.task(&id)["status"], "running");
    assert_eq!(home.cli(["list", "--all", "--json"]).ok().json()["items"].as_array().unwrap().len(), 1);
    // Whoever writes `t-` means an id.
    home.does(["pause", &id[..3]]);
    home.does(["resume", &id[2..6]]);
    home.does(["stop", &id[..3]]);
    assert_eq!(home.ended(&id)["status"], "stopped");
}

#[test]
fn p8_what_is_piped_in_goes_to_no_task_by_a_letter() {
    let home = super::home();
    let id = home.submit(&["--stdin", "pipe"], "exec cat");
    let _ = home.until_status(&id, "running");
    let file = home.scratch().join("text");
    std::fs::write(&file, "for another\n").unwrap();
    let piped = |reference: &str| {
        let input = std::fs::File::open(&file).unwrap();
        Home::finish(home.command().args(["input", reference, "--eof"]).stdin(input))
    };
    let refused = piped(&id[2..3]);
    assert!(refused.code == 1 && refused.stderr.contains("(HM0430)"), "{refused:?}");
    assert_eq!(home.output(&id), b"");
    let _ = piped(&id[..3]).ok();
    let _ = home.ended(&id);
    assert_eq!(home.output(&id), b"for another\n");
}

#[test]
fn a_name_of_one_letter_is_a_name() {
    let home = super::home();
    let id = home.submit(&["--name", "k"], "exec sleep 1000");
    let _ = home.until_status(&id, "running");
    home.does(["stop", "k"]);
    assert_eq!(home.ended(&id)["status"], "stopped");
    home.does(["ack", "k"]);
    home.does(["forget", "k"]);
    assert_eq!(home.task("k")["forgotten"], true);
}

#[test]
fn a_name_means_the_newest_task_of_which_something_is_kept() {
    let home = super::home();
    let kept = home.submit(&["--name", "build"], "echo kept");
    let _ = home.ended(&kept);
    let gone = home.submit(&["--name", "build"], "echo gone");
    let _ = home.ended(&gone);
    home.does(["forget", &gone]);
    assert_eq!(home.cli(["output", "build"]).ok().text(), "kept");
    let refused = home.cli(["rerun", &gone]);
    assert!(refused.code == 1 && refused.stderr.contains("(HM0330)"), "{refused:?}");
    assert!(
        refused.stderr.contains("it is forgotten") && !refused.stderr.contains("command line, its folder"),
        "no advice to look where nothing is kept: {refused:?}"
    );
    home.does(["forget", "build"]);
    assert_eq!(home.task("build")["id"], gone.as_str(), "the newest, where nothing is kept of any");
}

#[test]
fn a_prefix_alone_names_no_notice_and_no_delivery() {
    let home = super::home();
    let _ = home.daemon_pid();
    for (words, code) in [
        (["ack", "n-"], "(HM0045)"),
        (["ack", "n-!"], "(HM0045)"),
        (["redeliver", "d-"], "(HM0036)"),
        (["ack", "x"], "(HM0001)"),
    ] {
        let refused = home.cli(words);
        assert!(refused.code != 0 && refused.stderr.contains(code), "{words:?}: {refused:?}");
    }
}
