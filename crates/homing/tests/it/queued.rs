//! Tasks that wait for their start, and what an engine leaves that dies between two steps of a submit.
#![expect(
    clippy::unwrap_used,
    reason = "in a test, a panic is the report; helpers outside of #[test] are tests too"
)]

use homing_store::store::{Queue, Upkeep};
use std::slice;
use std::sync::Arc;
use std::time::Duration;

use homing_api::StopRequest;
use homing_engine::config::Period;
use homing_engine::{
    Builder, Caller, Config, Engine, Error, HomeError, IdempotencyKey, OpenError, OutputQuery, WaitMode,
};
use homing_model::queue::StartPolicy;
use homing_model::{Secret, Spec, Status, Task, TaskId};
use homing_store::sqlite::SqliteStore;
use homing_store::store::ClaimQueued;
use homing_testkit::{Home, PATIENCE};
use tokio::time::timeout;

use super::home;

async fn open_with(home: &Home, configure: impl Fn(Builder) -> Builder) -> Engine {
    let opened = async {
        loop {
            let builder = Engine::builder(home.path()).helper(home.program().to_owned());
            match configure(builder).open().await {
                Ok(engine) => return engine,
                // The engine before this one still holds the lock.
                Err(OpenError::Home(HomeError::InUse(_))) => tokio::task::yield_now().await,
                Err(error) => panic!("{error}"),
            }
        }
    };
    timeout(PATIENCE, opened).await.expect("the home is free in time")
}

async fn submit(engine: &Engine, line: &str) -> Task {
    let spec = Spec { shell: Some(line.into()), ..Spec::default() };
    engine.submit(spec, Caller::default(), None).await.unwrap().task
}

async fn ended(engine: &Engine, id: &TaskId) -> Task {
    let answer = engine.wait(slice::from_ref(id), WaitMode::All, Some(PATIENCE)).await.unwrap();
    answer.items.into_iter().next().unwrap()
}

#[tokio::test]
async fn p10_a_folder_without_a_row_is_removed_at_the_next_open() {
    let home = home();
    let engine = open_with(&home, |builder| builder).await;
    let kept = ended(&engine, &submit(&engine, "exit 0").await.id).await;
    engine.leave(false).await;
    drop(engine);
    // A daemon that is killed between making the folder and the commit leaves this.
    let tasks = home.path().join("tasks");
    std::fs::create_dir(tasks.join("t-2222222222")).unwrap();
    std::fs::write(tasks.join("t-2222222222/env"), "WORD=kept\0").unwrap();
    let _engine = open_with(&home, |builder| builder).await;
    assert!(!tasks.join("t-2222222222").exists());
    assert!(tasks.join(kept.id.as_str()).exists());
}

/// Holds every task back, and looks for what recovery could do all the time.
fn holding(builder: Builder) -> Builder {
    let mut config = Config::default();
    config.reconcile.interval = Period(Duration::from_millis(20));
    builder.start_policy(StartPolicy::HoldAll).config(config)
}

async fn leave(engine: Engine) {
    engine.leave(false).await;
    drop(engine);
}

/// Lets the safety net pass twice: the second pass began after this was called.
async fn passes(engine: &Engine) {
    let passes = async || engine.status().await.unwrap().reconcile.passes;
    let begin = passes().await;
    let passed = async {
        while passes().await < begin + 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, passed).await.expect("passes come");
}

fn files(home: &Home, id: &TaskId) -> Vec<String> {
    let entries = std::fs::read_dir(home.path().join("tasks").join(id.as_str())).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[tokio::test]
async fn p9_a_queued_task_survives_a_restart_and_starts_once() {
    let home = home();
    let ran = home.scratch().join("ran");
    let spec = Spec {
        shell: Some(format!("echo $WORD >> {}", ran.display()).into()),
        env: Some([("WORD".to_owned(), "kept".into())].into()),
        ..Spec::default()
    };
    let key = || Some(IdempotencyKey { key: "k".into(), body_hash: "b".into() });
    let engine = open_with(&home, holding).await;
    let task = engine.submit(spec.clone(), Caller::default(), key()).await.unwrap().task;
    assert_eq!(task.status, Status::Queued);
    for _ in 0..2 {
        let again = engine.submit(spec.clone(), Caller::default(), key()).await.unwrap();
        assert_eq!((again.task.id, again.joined), (task.id.clone(), false));
    }
    leave(engine).await;

    let engine = open_with(&home, holding).await;
    passes(&engine).await;
    assert_eq!(engine.task(&task.id).await.unwrap().status, Status::Queued, "recovery starts nothing");
    assert!(files(&home, &task.id).contains(&"env".to_owned()));
    leave(engine).await;

    let engine = open_with(&home, |builder| builder).await;
    assert_eq!(ended(&engine, &task.id).await.status, Status::Succeeded);
    leave(engine).await;
    let engine = open_with(&home, |builder| builder).await;
    assert_eq!(engine.task(&task.id).await.unwrap().status, Status::Succeeded);
    assert_eq!(std::fs::read_to_string(ran).unwrap(), "kept\n");
}

#[tokio::test]
async fn p2_a_queued_task_whose_secret_is_gone_fails_to_start() {
    let home = home();
    let ran = home.scratch().join("ran");
    let spec = Spec {
        shell: Some(format!("echo ran >> {}", ran.display()).into()),
        secrets: [("TOKEN".to_owned(), Secret::Value("hunter22".into()))].into(),
        ..Spec::default()
    };
    let engine = open_with(&home, holding).await;
    let task = engine.submit(spec, Caller::default(), None).await.unwrap().task;
    let env = std::fs::read(home.path().join("tasks").join(task.id.as_str()).join("env")).unwrap();
    assert!(!env.windows(8).any(|part| part == b"hunter22"));
    leave(engine).await;
    let engine = open_with(&home, |builder| builder).await;
    let task = ended(&engine, &task.id).await;
    assert_eq!(task.status, Status::StartFailed);
    assert_eq!(task.outcome.unwrap().reason.as_deref(), Some("secret unavailable: TOKEN"));
    assert!(!ran.exists());
}

#[tokio::test]
async fn p1_a_queued_task_that_is_stopped_never_starts_and_keeps_no_value() {
    let home = home();
    let ran = home.scratch().join("ran");
    let engine = open_with(&home, holding).await;
    let task = submit(&engine, &format!("echo ran >> {}", ran.display())).await;
    assert!(matches!(engine.signal(&task.id, 15).await, Err(Error::NotStarted(_))));
    assert!(matches!(engine.pause(&task.id).await, Err(Error::NotStarted(_))));
    let waiting = tokio::spawn({
        let (engine, id) = (engine.clone(), task.id.clone());
        async move { ended(&engine, &id).await }
    });
    let answer = engine.stop(&task.id, StopRequest { wait: true, ..StopRequest::default() }).await.unwrap();
    assert!(answer.stopping);
    assert_eq!(answer.task.status, Status::Stopped);
    assert_eq!(waiting.await.unwrap().status, Status::Stopped);
    assert!(files(&home, &task.id).is_empty());
    leave(engine).await;
    // What a daemon leaves that is killed between that commit and the folder.
    std::fs::write(home.path().join("tasks").join(task.id.as_str()).join("env"), "WORD=kept\0").unwrap();
    let engine = open_with(&home, |builder| builder).await;
    assert!(files(&home, &task.id).is_empty());
    assert_eq!(engine.task(&task.id).await.unwrap().status, Status::Stopped);
    assert!(!ran.exists());
}

#[tokio::test]
async fn p10_a_claimed_task_that_was_never_launched_runs_once() {
    let home = home();
    let ran = home.scratch().join("ran");
    let engine = open_with(&home, holding).await;
    let task = submit(&engine, &format!("echo ran >> {}", ran.display())).await;
    leave(engine).await;
    // A scheduler that is killed between its claim and the launch leaves this.
    let store = SqliteStore::open(&home.path().join("homing.db")).unwrap();
    assert_eq!(claim(&store, home_boot()).await, slice::from_ref(&task.id));
    store.close().await.unwrap();
    let engine = open_with(&home, holding).await;
    assert_eq!(ended(&engine, &task.id).await.status, Status::Succeeded);
    assert_eq!(std::fs::read_to_string(ran).unwrap(), "ran\n");
}

#[tokio::test]
async fn a_task_that_waited_starts_with_its_secrets_and_its_reader_sees_it() {
    let home = home();
    // The home is made by its first engine.
    leave(open_with(&home, |builder| builder).await).await;
    let store = Arc::new(SqliteStore::open(&home.path().join("homing.db")).unwrap());
    let engine = open_with(&home, |builder| holding(builder).store(store.clone())).await;
    let spec = Spec {
        shell: Some("echo ${#TOKEN} $TOKEN".into()),
        secrets: [("TOKEN".to_owned(), Secret::Value("hunter22".into()))].into(),
        ..Spec::default()
    };
    let task = engine.submit(spec, Caller::default(), None).await.unwrap().task;
    let reading = tokio::spawn({
        let (engine, id) = (engine.clone(), task.id.clone());
        let query = OutputQuery { limit: 100, wait: Some(PATIENCE), ..OutputQuery::default() };
        async move { engine.read_output(&id, query).await.unwrap() }
    });
    passes(&engine).await;
    assert_eq!(engine.task(&task.id).await.unwrap().status, Status::Queued);
    // Another part claims it: whoever finds it unattended hands it to the scheduler.
    assert_eq!(claim(&store, home_boot()).await, slice::from_ref(&task.id));
    assert_eq!(ended(&engine, &task.id).await.status, Status::Succeeded);
    assert_eq!(reading.await.unwrap().bytes, b"8 hunter22\n");
}

fn home_boot() -> String {
    homing_sys::boot::id().unwrap()
}

async fn claim(store: &SqliteStore, boot_id: String) -> Vec<TaskId> {
    let claim = ClaimQueued { policy: StartPolicy::StartAll, node: "here".into(), boot_id, limit: 10 };
    store.claim_queued(claim).await.unwrap().into_iter().map(|record| record.id).collect()
}
