//! Homes and engines that know nothing of each other, however many there are and however deep they lie.
#![expect(
    clippy::unwrap_used,
    reason = "in a test, a panic is the report; helpers outside of #[test] are tests too"
)]

use std::collections::BTreeSet;

use homing_api::Code;
use homing_engine::{Caller, Engine, OpenError, OutputQuery, WaitMode};
use homing_model::{Spec, TaskId};
use homing_store::store::Filter;
use homing_testkit::Home;

const ENGINES: usize = 50;

fn spec(line: &str) -> Spec {
    Spec { shell: Some(line.into()), key: Some("the same in all".into()), ..Spec::default() }
}

async fn open(home: &Home) -> Result<Engine, OpenError> {
    Engine::builder(home.path()).helper(home.program().to_owned()).open().await
}

async fn all(engine: &Engine) -> Vec<TaskId> {
    let page = engine.list(Filter { limit: 100, ..Filter::default() }).await.unwrap();
    page.items.into_iter().map(|task| task.id).collect()
}

#[tokio::test]
async fn fifty_engines_in_one_process_do_not_see_each_other() {
    let homes: Vec<_> = (0..ENGINES).map(|_| super::home()).collect();
    let mut engines = Vec::new();
    for home in &homes {
        engines.push(open(home).await.unwrap());
    }
    let mut ids = Vec::new();
    for (number, engine) in engines.iter().enumerate() {
        let submission =
            engine.submit(spec(&format!("echo {number}; exit {number}")), Caller::default(), None).await;
        let submission = submission.unwrap();
        assert!(!submission.joined, "the key is another one's");
        ids.push(submission.task.id);
    }
    for (number, (engine, id)) in engines.iter().zip(&ids).enumerate() {
        let ended = engine.wait(std::slice::from_ref(id), WaitMode::All, None).await.unwrap();
        let outcome = ended.items[0].outcome.as_ref().unwrap();
        assert_eq!(outcome.exit_code, i32::try_from(number).ok());
        let query = OutputQuery { offset: Some(0), tail: None, limit: 100, stream: None, wait: None };
        assert_eq!(&engine.read_output(id, query).await.unwrap().bytes[..], format!("{number}\n").as_bytes());
        assert_eq!(all(engine).await, std::slice::from_ref(id));
        let other = &ids[(number + 1) % ENGINES];
        assert_eq!(engine.task(other).await.unwrap_err().code(), Code::UnknownTask);
    }
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ENGINES);
    assert_eq!(open(&homes[0]).await.unwrap_err().code(), Code::HomeInUse);
}

#[test]
fn two_homes_do_not_meet() {
    let (one, other) = (super::home(), super::home());
    let kept = one.submit(&["--name", "same", "--key", "same"], "sleep 1000");
    let _ = one.until_status(&kept, "running");
    let second = other.submit(&["--name", "same", "--key", "same"], "exit 3");
    assert_ne!(kept, second);
    assert_eq!(other.ended("same")["outcome"]["exit_code"], 3);
    assert_eq!(other.cli(["show", &kept]).code, 4);
    assert_eq!(other.cli(["stop", &kept]).code, 4);
    assert_eq!(other.cli(["list", "--all", "--json"]).ok().json()["items"].as_array().unwrap().len(), 1);
    // What is named outright wins over the environment.
    let home = one.path().to_str().unwrap();
    assert_eq!(other.cli(["--home", home, "show", &kept, "--json"]).ok().json()["id"], *kept);
    let (daemon, keeper) = (one.daemon_pid(), one.keeper_pid());
    other.kill_at_once(&[other.daemon_pid(), other.keeper_pid()]);
    let _ = other.cli(["daemon", "stop"]);
    assert_eq!((one.daemon_pid(), one.keeper_pid()), (daemon, keeper));
    assert_eq!(one.task(&kept)["status"], "running");
}

#[test]
fn p3_a_home_too_deep_for_a_socket_address_works_for_everything() {
    let name = format!("{}/{}", "x".repeat(100), "y".repeat(100));
    let home = Home::named(env!("CARGO_BIN_EXE_homing"), &name);
    assert!(home.path().as_os_str().len() > 200);
    assert_eq!(home.cli(["run", "--wait", "-c", "exit 5"]).code, 5);
    let id = home.submit(&["--stdin", "pipe"], "read line; echo got $line; exit 6");
    let gone = home.kill_daemon();
    let _ = home.next_daemon(gone);
    assert_eq!(home.until_status(&id, "running")["pid"], home.task(&id)["pid"]);
    let _ = home.cli(["input", &id, "word", "--enter"]).ok();
    assert_eq!(home.ended(&id)["outcome"]["exit_code"], 6);
    assert_eq!(home.output(&id), b"got word\n");
    let endless = home.submit(&[], "echo ready; sleep 1000");
    let _ = home.until_status(&endless, "running");
    home.kill_at_once(&[home.keeper_pid()]);
    assert_eq!(home.cli(["run", "--follow", "-c", "echo again"]).ok().stdout, b"again\n");
    let _ = home.cli(["stop", &endless]).ok();
    assert_eq!(home.ended(&endless)["status"], "stopped");
    assert_eq!(home.get("/healthz").status, 200);
}

#[test]
fn looking_at_a_home_that_is_not_there_makes_none() {
    let home = super::home();
    for (words, code) in [
        (&["list"][..], 0),
        (&["inbox"], 0),
        (&["deliveries"], 0),
        (&["show", "t-bcdfghjkmn"], 4),
        (&["ack", "n-bcdfghjkmn"], 4),
    ] {
        let looked = home.cli(words);
        assert_eq!(looked.code, code, "{words:?}: {looked:?}");
        assert!(looked.stderr.contains("there is no home at"), "{words:?}: {looked:?}");
        assert!(looked.stderr.contains("The first `homing run` makes it"), "{words:?}: {looked:?}");
        assert!(!home.path().exists(), "{words:?}");
    }
    for words in [&["inbox", "--json"][..], &["deliveries", "--json"], &["list", "--json"]] {
        assert_eq!(home.cli(words).ok().json()["items"], serde_json::json!([]), "{words:?}");
    }
    assert!(!home.path().exists());
    assert_eq!(home.cli(["daemon", "status", "--json"]).json()["running"], false);
    assert!(
        home.cli(["status", "--json"]).ok().json()["daemon"]["pid"].is_number(),
        "this one starts a daemon"
    );
    assert_eq!(home.cli(["daemon", "status", "--json"]).ok().json()["running"], true);
}
