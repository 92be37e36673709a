//! One soak from beginning to end.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use homing_testkit::{Home, Storm};

use super::field::Field;
use super::receivers::Receivers;
use super::story::Story;
use super::victim::{self, Tally, Until};
use super::{books, checker, external, interrupt, load, readers, sessions};

/// Those who submit at once.
const SUBMITTERS: u64 = 3;
/// Those who run something elsewhere.
const EXTERNALS: u64 = 2;
/// Those who follow the events.
const FOLLOWERS: u64 = 2;

/// Attempts are short, so that a receiver that hangs is one of many moods; no command waits for a budget; nothing is forgotten before it was judged.
const CONFIG: &str = "[log]\nlevel = \"debug\"\nmax = \"64MiB\"\nkeep = 9\n[webhook]\ndeadline = \"1s\"\n[retention]\ncount = 10000000\n[wake]\nper_hour = 1000000\n";

/// A home that is gone when this process is interrupted.
fn guarded(program: &Path, over: &Arc<AtomicBool>) -> Result<Arc<Home>> {
    let home = Arc::new(Home::new(program));
    interrupt::watch(Arc::clone(&home), Arc::clone(over))?;
    Ok(home)
}

/// Runs the soak.
fn run(program: &Path, until: Until, seed: u64) -> Result<()> {
    let over = Arc::<AtomicBool>::default();
    let home = guarded(program, &over)?;
    std::fs::create_dir(home.path())?;
    std::fs::set_permissions(home.path(), std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
    let field = Field::new(home, over, Receivers::new())?;
    let config = format!("{CONFIG}{}", field.stand_ins.config());
    std::fs::write(field.home.path().join("config.toml"), config)?;
    let _ = field.home.daemon_pid();
    let began = Instant::now();
    eprintln!("soak: {until:?}, seed {seed}");
    let worn = wear(&field, until, seed).and_then(|tally| books::collect(&field).map(|()| tally));
    let left = field.home.task_processes();
    let story = field.story();
    let mut problems = if worn.is_ok() { checker::check(&story) } else { Vec::new() };
    problems.extend(story.unsettled.clone());
    problems.extend((!left.is_empty()).then(|| format!("left running: {left:?}")));
    let evidence = evidence(field.home.path(), &problems);
    // The thread that waits for an interruption holds the home too.
    field.home.clear();
    let tally = worn?;
    println!("{} kills ({tally}) in {:.0} s", tally.all(), began.elapsed().as_secs_f64());
    println!("{}", figures(&story));
    for problem in problems.iter().take(20) {
        eprintln!("VIOLATION {problem}");
    }
    evidence.iter().for_each(|line| eprintln!("  {line}"));
    if problems.is_empty() {
        println!("H1 to H10: no violation");
        return Ok(());
    }
    bail!("{} violations, seed {seed}", problems.len())
}

/// What the daemon's log says of the tasks that are found fault with.
fn evidence(home: &Path, problems: &[String]) -> Vec<String> {
    let ids: Vec<&str> = problems
        .iter()
        .take(20)
        .filter_map(|problem| problem.get(problem.find("t-")?..)?.get(..12))
        .collect();
    let logs = std::fs::read_dir(home).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut logs: Vec<_> = logs.filter(|path| path.to_string_lossy().contains("daemon.log")).collect();
    // The oldest has the highest number.
    logs.sort_by(|one, other| other.cmp(one));
    let texts = logs.iter().filter_map(|log| std::fs::read(log).ok());
    let lines = texts.flat_map(|text| {
        let text = String::from_utf8_lossy(&text).into_owned();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    });
    lines.filter(|line| ids.iter().any(|id| line.contains(id))).take(200).collect()
}

/// Everybody at once, until it is time; then everything settles.
fn wear(field: &Field, until: Until, seed: u64) -> Result<Tally> {
    let seed_of = |actor: u64| seed.wrapping_mul(1_000).wrapping_add(actor);
    let (externals, killing) = (&AtomicU64::new(0), &AtomicBool::new(true));
    std::thread::scope(|scope| {
        for number in 0..SUBMITTERS {
            scope.spawn(move || load::submit(field, seed_of(number)));
        }
        for session in field.sessions.numbers() {
            scope.spawn(move || sessions::live(field, session, seed_of(100 + session)));
        }
        for number in 0..EXTERNALS {
            scope.spawn(move || external::track(field, seed_of(200 + number), externals));
        }
        scope.spawn(move || field.receivers.sway(field, seed_of(10)));
        scope.spawn(move || readers::meddle(field, seed_of(11)));
        for number in 20..22 {
            scope.spawn(move || readers::take(field, seed_of(number)));
        }
        let looking = [
            scope.spawn(move || readers::list(field, seed_of(30))),
            scope.spawn(move || readers::wait(field, seed_of(31))),
        ];
        let following: Vec<_> = (0..FOLLOWERS)
            .map(|number| scope.spawn(move || readers::follow(field, seed_of(40 + number))))
            .collect();
        scope.spawn(move || victim::watch(field, killing));
        let tally = victim::kill(field, until, seed);
        killing.store(false, Ordering::Release);
        field.over.store(true, Ordering::Relaxed);
        let mut sightings: Vec<_> = looking.into_iter().filter_map(|thread| thread.join().ok()).collect();
        let settled = books::settle(field).and_then(|()| books::mark_last_event(field));
        if settled.is_err() {
            // The first event is the last: the followers end.
            field.last_event.store(1, Ordering::Relaxed);
        }
        for thread in following {
            let (ids, seen) = thread.join().map_err(|_| anyhow::anyhow!("a follower panicked"))?;
            field.story().streams.push(ids);
            sightings.push(seen);
        }
        field.story().sightings = sightings;
        settled?;
        tally
    })
}

/// What a reader of the result wants to know.
fn figures(story: &Story) -> String {
    let mut ends: BTreeMap<&str, u64> = BTreeMap::new();
    story.books.iter().for_each(|book| *ends.entry(book.status.as_str()).or_default() += 1);
    let mut states: BTreeMap<&str, u64> = BTreeMap::new();
    story.deliveries.iter().for_each(|row| *states.entry(row.state.as_str()).or_default() += 1);
    let notices: std::collections::BTreeSet<_> =
        story.receipts.iter().map(|receipt| &receipt.notice).collect();
    format!(
        "{} submits, {} tasks {ends:?}\n{} deliveries {states:?}; {} requests with {} ids at the receivers; {} notices taken by commands\n\
         {} inbox entries acknowledged, {} perhaps, {} left; {} events, read by {} readers; {} states seen by {} observers\n\
         {} notices of {} kinds; {} tellings to sessions ({} by being woken), {}; {} external tasks, {} completions of them",
        story.submits.len(),
        story.books.len(),
        story.deliveries.len(),
        story.receipts.len(),
        notices.len(),
        story.told.len(),
        story.inbox.acknowledged.len(),
        story.inbox.perhaps.difference(&story.inbox.acknowledged).count(),
        story.inbox.left.len(),
        story.log.len(),
        story.streams.len(),
        story.sightings.iter().map(Vec::len).sum::<usize>(),
        story.sightings.len(),
        story.notices.len(),
        story.notices.values().map(|notice| &notice.about).collect::<std::collections::BTreeSet<_>>().len(),
        story.tellings.len(),
        story.tellings.iter().filter(|telling| telling.life.is_none()).count(),
        checker::telling::doubles(story),
        story.externals.len(),
        story.externals.values().map(|external| external.completions.len()).sum::<usize>(),
    )
}

/// From the command line.
pub(crate) fn main(arguments: &[&str]) -> Result<()> {
    let [program, rest @ ..] = arguments else {
        bail!(
            "usage: homing-bench soak PATH-OF-HOMING [KILLS | --minutes N | --webhooks ROUNDS | --events COUNT] [SEED]"
        )
    };
    let program = PathBuf::from(program).canonicalize()?;
    let number = |text: Option<&&str>, otherwise: u64| {
        text.map_or(Ok(otherwise), |text| text.parse()).context("a number")
    };
    match rest {
        ["--minutes", rest @ ..] => {
            let minutes = number(rest.first(), 30)?;
            run(&program, Until::Time(Duration::from_secs(minutes * 60)), number(rest.get(1), 1)?)
        }
        ["--webhooks", rest @ ..] => {
            let home = guarded(&program, &Arc::default())?;
            println!("{}", home.webhooks_through_kills(number(rest.first(), 200)?, number(rest.get(1), 1)?));
            home.clear();
            Ok(())
        }
        ["--events", rest @ ..] => {
            let storm = Storm {
                events: number(rest.first(), 10_000)?,
                clients: 3,
                kills: 20,
                seed: number(rest.get(1), 1)?,
            };
            let home = guarded(&program, &Arc::default())?;
            println!("{}", home.events_through_kills(storm));
            home.clear();
            Ok(())
        }
        rest => run(&program, Until::Kills(number(rest.first(), 500)?), number(rest.get(1), 1)?),
    }
}
