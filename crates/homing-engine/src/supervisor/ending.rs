//! From a shim's exit record to the ledger's words.

use homing_model::{Ending, Outcome, StartError, Survivor, Timestamp, Verdict};
use homing_shim::output;
use homing_shim::record::{self, ExitRecord};
use homing_store::Record;

use crate::engine::Inner;

/// What a shim recorded, in the ledger's words.
pub(crate) fn ending(record: ExitRecord) -> Ending {
    let verdict = match record.verdict {
        record::Verdict::Exited if record.exit_code == Some(0) => Verdict::Succeeded,
        record::Verdict::Exited => Verdict::Failed,
        record::Verdict::Stopped => Verdict::Stopped,
        record::Verdict::TimedOut => Verdict::TimedOut,
        record::Verdict::StartFailed => Verdict::StartFailed,
    };
    let started_at = record.started_at.map(Timestamp::from_millis);
    Ending {
        verdict,
        outcome: Outcome {
            exit_code: record.exit_code,
            signal: record.signal,
            reason: record.reason,
            stopped_by: record.stopped_by,
            survivors: record.survivors.into_iter().map(|s| Survivor { pid: s.pid, name: s.name }).collect(),
            max_rss_bytes: record.max_rss_bytes,
            cpu_ms: record.cpu_ms,
            start_error: record.start_error.map(|error| match error {
                record::StartError::NotFound => StartError::NotFound,
                record::StartError::NotExecutable => StartError::NotExecutable,
                record::StartError::Other => StartError::Other,
            }),
        },
        started_at,
        ended_at: Timestamp::from_millis(record.ended_at),
        duration_ms: started_at.is_some().then_some(record.duration_ms),
        pid: record.pid,
        output_bytes: record.output_bytes,
        output_dropped: record.output_dropped,
    }
}

/// An end that nobody saw. What the attempt had printed until then is there all the same.
pub(crate) fn lost(inner: &Inner, task: &Record, reason: &str, survivors: Vec<Survivor>) -> Ending {
    let mut ending = Ending::lost(reason, survivors, inner.now());
    let extent = inner.home.open_attempt(&task.attempt()).and_then(output::extent);
    if let Ok(extent) = extent {
        ending.output_bytes = extent.end;
        ending.output_dropped = extent.end.saturating_sub(extent.kept);
    }
    ending
}

/// The record of an attempt that this daemon declares never to run.
pub(crate) fn never_started(task: &Record, ending: &Ending) -> ExitRecord {
    let verdict = match ending.verdict {
        Verdict::Stopped => record::Verdict::Stopped,
        Verdict::StartFailed | Verdict::Succeeded | Verdict::Failed | Verdict::TimedOut | Verdict::Lost => {
            record::Verdict::StartFailed
        }
    };
    ExitRecord {
        task: task.id.to_string(),
        attempt: task.attempt,
        nonce: 0,
        boot_id: task.boot_id.clone(),
        verdict,
        exit_code: None,
        signal: None,
        reason: ending.outcome.reason.as_ref().map(|reason| reason.chars().take(300).collect()),
        stopped_by: task.stop.as_ref().map(|stop| stop.by.chars().take(200).collect()),
        survivors: Vec::new(),
        pid: None,
        started_at: None,
        ended_at: ending.ended_at.as_millis(),
        duration_ms: 0,
        max_rss_bytes: 0,
        cpu_ms: 0,
        output_bytes: 0,
        output_dropped: 0,
        start_error: (verdict == record::Verdict::StartFailed).then_some(record::StartError::Other),
        inputs: None,
    }
}
