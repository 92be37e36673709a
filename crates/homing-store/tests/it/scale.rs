//! A hundred thousand finished tasks must not be felt.

use homing_store::outbox::Report;
use homing_store::store::{Queue, Tasks, Upkeep};
use std::time::{Duration, Instant};

use homing_model::retention::Policy;
use homing_model::{Ending, Reference, Status, Verdict};
use homing_store::conformance::fixture::{at, ending, first, id, submit};
use homing_store::store::Filter;

use crate::home::Home;

const TASKS: u64 = 100_000;

#[expect(clippy::disallowed_methods, reason = "a measurement needs the real clock")]
fn now() -> Instant {
    Instant::now()
}

macro_rules! timed {
    ($what:literal, $times:expr, $operation:expr) => {{
        let mut taken: Vec<Duration> = Vec::new();
        for _ in 0..$times {
            let begin = now();
            $operation.await.unwrap();
            taken.push(begin.elapsed());
        }
        taken.sort();
        println!(
            "{:42} median {:>9.1?}  max {:>9.1?}",
            $what,
            taken[taken.len() / 2],
            taken[taken.len() - 1]
        );
    }};
}

#[tokio::test]
#[ignore = "a measurement: cargo test --release -p homing-store --test it scale -- --ignored --nocapture"]
async fn a_hundred_thousand_finished_tasks() {
    let home = Home::new();
    let store = home.open();
    let begin = now();
    for chunk in 0..TASKS / 1000 {
        let numbers = chunk * 1000..(chunk + 1) * 1000;
        let submits: Vec<_> = numbers
            .clone()
            .map(|n| {
                let mut submit = submit(n);
                submit.task.owner = format!("owner{}", n % 10);
                submit.task.spec.name = Some(format!("name{}", n % 100));
                store.submit(submit, at(0))
            })
            .collect();
        for submit in submits {
            submit.await.unwrap();
        }
        let ends: Vec<_> = numbers
            .map(|n| {
                let verdict = if n % 1000 == 0 { Verdict::Failed } else { Verdict::Succeeded };
                store.finish(
                    first(n),
                    Ending { verdict, ..ending(i64::try_from(n).unwrap(), 10) },
                    Report::default(),
                )
            })
            .collect();
        for end in ends {
            end.await.unwrap();
        }
    }
    println!("filled in {:?}, {} commits", begin.elapsed(), store.commits());
    let page = |owner: Option<&str>, statuses: &[Status]| Filter {
        owner: owner.map(Into::into),
        statuses: statuses.to_vec(),
        limit: 100,
        ..Filter::default()
    };
    timed!("list 100", 200, store.list(page(None, &[])));
    timed!("list 100 of an owner", 200, store.list(page(Some("owner3"), &[])));
    timed!("list 100 of a rare status", 200, store.list(page(None, &[Status::Failed])));
    timed!("list 100 of an owner and a status", 200, store.list(page(Some("owner0"), &[Status::Failed])));
    timed!("list 100 running (none)", 200, store.list(page(None, &[Status::Running])));
    timed!("get", 200, store.get(id(77_777)));
    timed!("find by a start", 200, store.find(Reference::parse(&id(77_777).as_str()[..6]), "owner3".into()));
    timed!("find by name", 200, store.find(Reference::parse("name7"), "owner3".into()));
    timed!("find @last", 200, store.find(Reference::Last, "owner3".into()));
    timed!("live", 200, store.live());
    timed!("counts", 200, store.counts());
    timed!(
        "retire (nothing past)",
        200,
        store.retire(Policy { count: TASKS, ..Policy::default() }, at(0), 100)
    );
    let mut n = TASKS;
    timed!("submit, alone (synced)", 200, {
        n += 1;
        store.submit(submit(n), at(0))
    });
    n = TASKS;
    timed!("started, alone (not synced)", 200, {
        n += 1;
        store.started(first(n), homing_store::Started { pid: 1, at: at(0) })
    });
    n = TASKS;
    timed!("finish, alone (synced)", 200, {
        n += 1;
        store.finish(first(n), ending(0, 10), Report::default())
    });
    timed!("retire 100", 20, store.retire(Policy { count: 10_000, ..Policy::default() }, at(0), 100));
    timed!(
        "trim 100 tombstones",
        5,
        store.trim(Policy { tombstones: Duration::ZERO, ..Policy::default() }, at(9), 100)
    );
    timed!("check", 1, store.check());
    println!("file {} KiB", std::fs::metadata(home.database()).unwrap().len() / 1024);
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    println!("{}", status.lines().find(|line| line.starts_with("VmRSS")).unwrap());
    let killed = home.as_after_a_kill();
    let begin = now();
    killed.open();
    println!("open after a kill {:?}", begin.elapsed());
    store.close().await.unwrap();
    let begin = now();
    home.open();
    println!("open after a clean shutdown {:?}", begin.elapsed());
}
