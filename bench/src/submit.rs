//! `homing run -- true` as a process, against task-spooler and pueue, with an empty and with a full ledger.

use std::time::Instant;

use anyhow::Result;

use crate::peers::{self, Homing, Peer, Pueue, Spooler};
use crate::report::{Report, median, ms};
use crate::{Bench, listing};

/// Calls in a row of one program, before the next one's turn.
const CALLS: usize = 20;
const ROUNDS: usize = 12;
/// Tasks for the rate of the whole way.
const TASKS: u32 = 200;

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    eprintln!("submit: {ROUNDS} rounds of {CALLS} calls of each command line, by turns");
    let (empty, full) = (bench.home(), bench.fresh());
    listing::fill(&full, 100_000)?;
    let _ = full.daemon_pid();
    let (spooler, pueue) = (Spooler::start(&empty)?, Pueue::start(&empty)?);
    let ours: [&dyn Peer; 2] = [&Homing(&empty), &Homing(&full)];
    let theirs =
        [spooler.as_ref().map(|peer| peer as &dyn Peer), pueue.as_ref().map(|peer| peer as &dyn Peer)];
    let peers: Vec<&dyn Peer> = ours.into_iter().chain(theirs.into_iter().flatten()).collect();

    // By turns: a disk or a neighbour that is slow for a while is slow for all of them.
    let mut samples = vec![Vec::new(); peers.len()];
    for round in 0..=ROUNDS {
        for (peer, samples) in peers.iter().zip(&mut samples) {
            for _ in 0..CALLS {
                let began = Instant::now();
                peers::submit(*peer)?;
                // The first round only warms up.
                if round > 0 {
                    samples.push(ms(began.elapsed()));
                }
            }
            // What one of them has still to do is not to slow down the next.
            peers::wait(*peer)?;
        }
    }
    let mut medians = samples.iter_mut().map(|samples| median(samples));
    let (empty, full) = (medians.next().unwrap_or(f64::NAN), medians.next().unwrap_or(f64::NAN));
    let what = "`homing run -- true`, p50";
    let figure = format!("{empty:.2} ms");
    for (peer, median) in peers.iter().skip(2).zip(medians) {
        let (baseline, ratio) = (format!("{} {median:.2} ms", peer.name()), empty / median);
        if peer.name() == "`tsp`" {
            report.ratio(what, &figure, &baseline, ratio, "at most 3.0", ratio <= 3.0);
        } else {
            report.beside(what, &figure, &baseline, ratio);
        }
    }
    if spooler.is_none() {
        report.note(what, &figure, "tsp is not installed");
    }
    let ratio = full / empty;
    let figure = format!("{full:.2} ms");
    let baseline = format!("empty {empty:.2} ms");
    report.ratio("the same with 100,000 finished tasks", &figure, &baseline, ratio, "below 1.2", ratio < 1.2);

    let own = peers::rate(ours[0], TASKS)?;
    for peer in theirs.into_iter().flatten() {
        let rate = peers::rate(peer, TASKS)?;
        let baseline = format!("{} {rate:.0}/s", peer.name());
        let what = format!("{TASKS} `true` by the command line, to the last end");
        report.beside(&what, &format!("{own:.0}/s"), &baseline, own / rate);
    }
    Ok(())
}
