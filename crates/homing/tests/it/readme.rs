//! What README.md promises to a newcomer.

use std::io::{BufRead, BufReader};

use homing_testkit::gate;

#[test]
fn the_two_commands_of_the_readme_are_there() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
    let text = std::fs::read_to_string(path).expect("README.md");
    for command in
        ["cargo run --release -- run --follow -c 'echo hello; sleep 1; echo done'", "cargo xtask test"]
    {
        assert!(text.contains(command), "README.md lacks `{command}`");
    }
}

#[test]
fn the_first_command_shows_output_as_it_comes_and_returns_the_exit_code() {
    let home = super::home();
    // Nothing runs yet: the daemon is started by this very call.
    let mut call =
        home.spawn(["run", "--follow", "-c", &format!("echo hello; {}; echo done; exit 3", gate("go"))]);
    let mut lines = BufReader::new(call.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "hello", "it is shown while the command runs");
    home.open("go");
    assert_eq!(lines.next().unwrap().unwrap(), "done");
    assert!(lines.next().is_none());
    assert_eq!(call.wait().unwrap().code(), Some(3));
    assert_eq!(home.cli(["run", "--follow", "-c", "echo hello; echo done; exit 3"]).code, 3);
}
