//! What an engine leaves behind between two steps of a submit, and what the next one makes of it.
#![expect(
    clippy::unwrap_used,
    reason = "in a test, a panic is the report; helpers outside of #[test] are tests too"
)]

use std::slice;

use homing_engine::{Builder, Caller, Engine, HomeError, OpenError, WaitMode};
use homing_model::{Spec, Task, TaskId};
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
