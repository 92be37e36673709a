//! From a shim's exit record to the ledger's words.

use homing_model::{Ending, Outcome, Survivor, Timestamp, Verdict};
use homing_shim::record::{self, ExitRecord};

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
        },
        started_at,
        ended_at: Timestamp::from_millis(record.ended_at),
        duration_ms: started_at.is_some().then_some(record.duration_ms),
        pid: record.pid,
        output_bytes: record.output_bytes,
        output_dropped: record.output_dropped,
    }
}
