//! A stdout that nobody reads.

use super::*;

/// Runs the program with a stdout that nobody reads.
async fn run_closed(home: &Path, words: &[&str]) -> (Option<i32>, String) {
    let mut command = homing(home, words);
    tokio::task::spawn_blocking(move || {
        let (reader, writer) = std::io::pipe().expect("a pipe is made");
        drop(reader);
        let output = command.stdout(writer).stderr(Stdio::piped()).output().expect("the program ends");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    })
    .await
    .expect("the program is waited for")
}

#[tokio::test]
async fn a_closed_pipe_ends_quietly() {
    let home = tempfile::tempdir().unwrap();
    let _fake = Fake::serve(home.path(), one_task("succeeded", Some(0), b"out\n"));
    let quiet = (Some(0), String::new());
    for words in [
        &["output", "@last"][..],
        &["output", "-f", "@last"],
        &["show", "@last"],
        &["explain"],
        &["help", "--all"],
        &["--help"],
    ] {
        assert_eq!(run_closed(home.path(), words).await, quiet, "{words:?}");
    }
}

#[tokio::test]
async fn a_closed_pipe_does_not_hide_the_code_of_the_task() {
    let home = tempfile::tempdir().unwrap();
    let _fake = Fake::serve(home.path(), one_task("failed", Some(7), b"out\n"));
    for words in [
        &["exec", "--", "x"][..],
        &["run", "--follow", "--", "x"],
        &["run", "--wait", "--", "x"],
        &["exec", "--json", "--", "x"],
        &["wait", "@last"],
    ] {
        assert_eq!(run_closed(home.path(), words).await.0, Some(7), "{words:?}");
    }
}
