//! What an agent's words mean for the end of its task. Keeps P2: the kernel's code stays what it was.

use homing_agents::parse::Said;
use homing_model::agent::head;
use homing_model::sanitize::{Colour, Sanitizer};
use homing_model::{Ending, Verdict, answer};
use homing_store::Record;
use homing_store::outbox::Report;

/// So much of the words of an error is told, in bytes.
const LONGEST_ERROR: usize = 2_000;

/// Puts status, reason and answer in order. An agent that reports a failure has failed, whatever its exit code; one that was ended, or ended
/// badly, has no answer, however much it said before.
pub(crate) fn conclude(said: Said, record: &Record, ending: &mut Ending, report: &mut Report) {
    let by_itself = ending.outcome.exit_code.is_some();
    let failed = match ending.verdict {
        Verdict::Succeeded => said.error,
        // Nothing but its stderr says why; of one that a signal ended the signal does.
        Verdict::Failed if by_itself => said.error.or(said.complaint),
        Verdict::Failed | Verdict::Stopped | Verdict::TimedOut | Verdict::StartFailed | Verdict::Lost => None,
    };
    if let Some(error) = failed {
        let error = told(&error, record);
        ending.verdict = Verdict::Failed;
        ending.outcome.reason = Some(answer::reason(Some(&error)));
        report.answer = Some(head(error.trim(), LONGEST_ERROR).to_owned());
    } else if ending.verdict == Verdict::Succeeded {
        report.answer = said.answer.map(|said| answer::kept(told(&said.text, record), said.whole));
    }
    report.agent = Some(said.heard);
}

/// As it may be told anywhere: without what a terminal would obey, and without secrets; before it is cut, so that no half of one is left.
fn told(text: &str, record: &Record) -> String {
    let mut filter = Sanitizer::new(Colour::Strip);
    let mut clean = filter.push(text.as_bytes());
    clean.push_str(&filter.finish());
    record.masks.cover(&mut clean);
    clean
}

#[cfg(test)]
mod tests {
    use homing_model::{Kind, Outcome, Status, Timestamp};

    use super::*;
    use crate::supervisor::live::tests::record;
    use homing_agents::parse::Bounded;

    fn concluded(
        verdict: Verdict,
        code: Option<i32>,
        said: Said,
    ) -> (Verdict, Option<String>, Option<String>) {
        let record = Record { kind: Kind::Agent, ..record(Status::Running) };
        let mut ending = Ending::lost("", Vec::new(), Timestamp::from_millis(0));
        ending.verdict = verdict;
        ending.outcome = Outcome { exit_code: code, ..Outcome::default() };
        let mut report = Report::default();
        conclude(said, &record, &mut ending, &mut report);
        assert_eq!(ending.outcome.exit_code, code, "the kernel's word stays");
        assert!(report.agent.is_some());
        (ending.verdict, ending.outcome.reason, report.answer)
    }

    fn said(answer: Option<&str>, error: Option<&str>, complaint: Option<&str>) -> Said {
        Said {
            answer: answer.map(|text| Bounded { text: text.into(), whole: text.len() }),
            error: error.map(str::to_owned),
            complaint: complaint.map(str::to_owned),
            ..Said::default()
        }
    }

    #[test]
    fn an_answer_is_one_only_where_the_task_succeeded() {
        let all = || said(Some("42"), None, Some("warning"));
        let end = |verdict, code| concluded(verdict, code, all());
        assert_eq!(end(Verdict::Succeeded, Some(0)), (Verdict::Succeeded, None, Some("42".into())));
        let complaint = Some("warning".to_owned());
        assert_eq!(end(Verdict::Failed, Some(1)), (Verdict::Failed, complaint.clone(), complaint));
        assert_eq!(end(Verdict::Failed, None), (Verdict::Failed, None, None), "a signal says why itself");
        for verdict in [Verdict::Stopped, Verdict::TimedOut, Verdict::Lost, Verdict::StartFailed] {
            assert_eq!(end(verdict, Some(0)), (verdict, None, None));
        }
    }

    #[test]
    fn a_reported_error_is_a_failure_whatever_the_code() {
        for (verdict, code) in [(Verdict::Succeeded, 0), (Verdict::Failed, 1)] {
            let (verdict, reason, told) =
                concluded(verdict, Some(code), said(Some("42"), Some("no\ncredit"), None));
            assert_eq!(verdict, Verdict::Failed);
            assert_eq!(reason.as_deref(), Some("no credit"));
            assert_eq!(told.as_deref(), Some("no\ncredit"));
        }
        let (_, reason, told) =
            concluded(Verdict::Failed, Some(1), said(None, None, Some("\u{1b}[31mno\u{1b}[0m")));
        assert_eq!(
            (reason.as_deref(), told.as_deref()),
            (Some("no"), Some("no")),
            "nothing that a terminal obeys"
        );
        let (verdict, ..) = concluded(Verdict::Stopped, Some(0), said(None, Some("no credit"), None));
        assert_eq!(verdict, Verdict::Stopped, "who was stopped was stopped");
    }
}
