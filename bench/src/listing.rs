//! `list` with a full ledger, and how the ledger is filled.

use homing_store::store::{Queue, Tasks, Upkeep};
use std::time::Instant;

use anyhow::{Result, ensure};
use homing_client::ListQuery;
use homing_model::queue::StartPolicy;
use homing_model::{Ending, Notify, OnDuplicate, OsText, Outcome, Spec, TaskId, Timestamp, Verdict};
use homing_store::sqlite::SqliteStore;
use homing_store::store::Submit;
use homing_store::{NewTask, Started};
use homing_testkit::Home;
use tokio::runtime::Runtime;

use crate::report::{Report, median, ms, percentile};
use crate::{Bench, client};

const CALLS: usize = 200;

pub(crate) fn measure(bench: &Bench, runtime: &Runtime, report: &mut Report) -> Result<()> {
    eprintln!("list: 100,000 finished tasks");
    let home = bench.fresh();
    fill(&home, 100_000)?;
    let _ = home.daemon_pid();
    let client = client(&home);
    let query = ListQuery { limit: Some(100), ..ListQuery::default() };
    let (mut listed, mut status) = (Vec::new(), Vec::new());
    for _ in 0..CALLS {
        let began = Instant::now();
        ensure!(runtime.block_on(client.list(&query))?.items.len() == 100, "a full page");
        listed.push(ms(began.elapsed()));
        let began = Instant::now();
        runtime.block_on(client.status())?;
        status.push(ms(began.elapsed()));
    }
    let (p50, p99, base) = (median(&mut listed), percentile(&mut listed, 0.99), median(&mut status));
    report.ratio(
        "`list`, 100 of 100,000 finished, at the API, p50",
        &format!("{p50:.2} ms (p99 {p99:.2})"),
        &format!("`status` {base:.2} ms"),
        p50 / base,
        "at most 5 ms",
        p50 <= 5.0,
    );
    Ok(())
}

/// Fills a home's ledger with finished tasks, before its daemon starts. A large retention keeps them.
pub(crate) fn fill(home: &Home, tasks: u64) -> Result<()> {
    fill_telling(home, tasks, None)
}

/// The same, with somebody to be told of each.
pub(crate) fn fill_telling(home: &Home, tasks: u64, notify: Option<&Notify>) -> Result<()> {
    std::fs::create_dir(home.path())?;
    std::fs::set_permissions(home.path(), std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
    std::fs::write(home.path().join("config.toml"), "[retention]\ncount = 1000000\n")?;
    let store = SqliteStore::open(&home.path().join("homing.db"))?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let now = i64::try_from(std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_millis())?;
    runtime.block_on(async {
        let mut pending = std::collections::VecDeque::new();
        for number in 0..tasks {
            let id = TaskId::from_entropy(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let at = Timestamp::from_millis(now - i64::try_from(tasks - number)?);
            drop(store.submit(new_task(id.clone(), notify.cloned()), at));
            let attempt = homing_model::Attempt { task: id, number: 1 };
            drop(store.started(attempt.clone(), Started { pid: 1, at }));
            pending.push_back(store.finish(
                attempt,
                ending(at),
                homing_store::outbox::Report { entropy: number, ..Default::default() },
            ));
            if pending.len() > 200
                && let Some(done) = pending.pop_front()
            {
                done.await?;
            }
        }
        for done in pending {
            done.await?;
        }
        store.close().await?;
        anyhow::Ok(())
    })
}

fn new_task(id: TaskId, notify: Option<Notify>) -> Submit {
    let spec = Spec { argv: vec![OsText::from("true")], cwd: Some("/tmp".into()), notify, ..Spec::default() };
    let task = NewTask {
        kind: homing_model::Kind::Command,
        tracking: None,
        agent: None,
        id,
        spec,
        owner: "user".into(),
        command: "true".into(),
        env_names: ["HOME", "LANG", "PATH", "SHELL", "USER"].map(str::to_owned).to_vec(),
        volatile_secrets: Vec::new(),
        masks: homing_model::Masks::default(),
        parent: None,
        depth: 0,
        network: false,
        node: "here".into(),
        boot_id: "then".into(),
    };
    Submit {
        task,
        on_duplicate: OnDuplicate::Join,
        children: 0,
        idempotency: None,
        policy: StartPolicy::default(),
    }
}

fn ending(at: Timestamp) -> Ending {
    Ending {
        verdict: Verdict::Succeeded,
        outcome: Outcome { exit_code: Some(0), ..Outcome::default() },
        started_at: Some(at),
        ended_at: at,
        duration_ms: Some(1),
        pid: Some(1),
        output_bytes: 0,
        output_dropped: 0,
    }
}
