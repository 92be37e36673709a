//! The transcripts of Claude Code: `projects/FOLDER/SESSION.jsonl`.
//!
//! That a message is in it says that the session has it, and not that a turn began with it: Claude Code writes what it was given before it asks its
//! model, and where that fails a line of its own that says so. Only what the model said after it is an answer. What waits for its turn is in it as
//! well (`queue-operation`), and says nothing: a process that is killed then takes it along, and whoever goes on with the session has not got it. Nor
//! does what Claude Code notes for itself (`last-prompt`): that comes also after a turn that failed.

use std::path::Path;

use homing_model::turn::MARK;
use serde_json::Value;

use crate::wake::told::Line;
use crate::wake::transcript::{Format, Transcript};

/// The transcript of a session.
pub(super) fn find(folder: &Path, id: &str) -> Option<Transcript> {
    let projects = std::fs::read_dir(folder.join("projects")).ok()?.flatten();
    let name = format!("{id}.jsonl");
    Transcript::open(projects.map(|project| project.path().join(&name)), id, Format { judge, is_note })
}

/// What a line says of us, if it does.
fn judge(session: &str, line: &str) -> Option<Line> {
    let (marked, said) = (line.contains(MARK), line.contains("\"assistant\""));
    if !marked && !said {
        return None;
    }
    let found = serde_json::from_str::<Value>(line).unwrap_or_default();
    let elsewhere = found["sessionId"].as_str().is_some_and(|named| named != session);
    match found["type"].as_str() {
        // What sub-agents say within, and what was copied out of another session.
        Some("assistant") if found["isSidechain"] == true || elsewhere => None,
        Some("assistant")
            if found["isApiErrorMessage"] == true || found["message"]["model"] == "<synthetic>" =>
        {
            Some(Line::Trouble)
        }
        Some("assistant") => Some(Line::Answer),
        // All else is for itself, and was said before or not at all.
        Some("user" | "attachment") => marked.then_some(Line::Ours),
        _ => None,
    }
}

/// Lines by which Claude Code says that something waits for its turn, or does so no more, and what it was given last.
const NOTES: [&str; 2] = ["queue-operation", "last-prompt"];

fn is_note(line: &Value) -> bool {
    NOTES.iter().any(|note| line["type"] == *note)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;
    use std::time::Duration;

    use homing_model::NoticeId;

    use super::*;
    use crate::wake::told::Told;
    use crate::wake::transcript::PIECE;

    /// A transcript that begins with this text, and what more is added by.
    fn begun(text: &str) -> (tempfile::TempDir, Transcript, File) {
        let folder = tempfile::tempdir().unwrap();
        assert!(find(folder.path(), "s1").is_none());
        let project = folder.path().join("projects/-w");
        std::fs::create_dir_all(&project).unwrap();
        let path = project.join("s1.jsonl");
        std::fs::write(&path, text).unwrap();
        let transcript = find(folder.path(), "s1").unwrap();
        (folder, transcript, File::options().append(true).open(&path).unwrap())
    }

    #[test]
    fn only_what_is_added_counts_also_in_two_pieces() {
        let (_folder, mut transcript, mut file) = begun("n-2222222222\n");
        assert!(!transcript.has("n-2222222222", Duration::ZERO).unwrap(), "it was there before");
        file.write_all(b"text n-2222").unwrap();
        assert!(!transcript.has("n-2222222222", Duration::from_millis(1)).unwrap());
        file.write_all(b"222222 more\n").unwrap();
        assert!(transcript.has("n-2222222222", Duration::from_secs(20)).unwrap());
    }

    #[test]
    fn what_waits_in_the_queue_of_a_session_is_not_told_yet() {
        let (_folder, mut transcript, mut file) = begun("");
        let mut has = |lines: &str| {
            file.write_all(lines.as_bytes()).unwrap();
            transcript.has("n-2222222222", Duration::ZERO).unwrap()
        };
        let queued = |operation: &str| {
            let line = serde_json::json!({ "type": "queue-operation", "operation": operation, "content": format!("{MARK} (notice n-2222222222)") });
            format!("{line}\n")
        };
        assert!(!has(&queued("enqueue")));
        assert!(!has(&queued("remove")), "that it was taken out says not where it went");
        let taken = serde_json::json!({ "type": "attachment", "attachment": { "type": "queued_command", "prompt": "n-2222222222" } });
        assert!(has(&format!("{}{taken}\n", queued("remove"))));
    }

    #[test]
    fn of_a_line_without_an_end_no_more_is_held_than_a_piece_and_what_follows_is_seen() {
        let (_folder, mut transcript, mut file) = begun("");
        let piece = usize::try_from(PIECE).unwrap();
        for _ in 0..4 {
            file.write_all(&vec![b'x'; piece]).unwrap();
            assert!(!transcript.has("n-2222222222", Duration::from_millis(1)).unwrap());
            assert!(transcript.rest.len() <= piece);
        }
        file.write_all(b" n-2222222222\n").unwrap();
        assert!(
            !transcript.has("n-2222222222", Duration::from_millis(1)).unwrap(),
            "no line of ours is so long"
        );
        file.write_all(b"{\"content\":\"n-2222222222\"}\n").unwrap();
        assert!(transcript.has("n-2222222222", Duration::from_secs(20)).unwrap());
    }

    #[test]
    fn what_was_told_before_is_found_where_it_was_told_by_us() {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().join("projects/-w");
        std::fs::create_dir_all(&project).unwrap();
        let text =
            format!("{{\"type\":\"user\",\"content\":\"{MARK} 2 (notice n-2222222222)\"}}\nn-3333333333\n");
        std::fs::write(project.join("s1.jsonl"), text).unwrap();
        let mut transcript = find(folder.path(), "s1").unwrap();
        let [told, printed, other] =
            ["n-2222222222", "n-3333333333", "n-4444444444"].map(|id| id.parse::<NoticeId>().unwrap());
        let found = transcript.told(&[told.clone(), printed, other]).unwrap();
        assert_eq!(found, [(told, Told::Unanswered)]);
        assert!(!transcript.has("n-2222222222", Duration::ZERO).unwrap(), "it was there before");
    }

    #[test]
    fn what_was_told_was_answered_once_the_model_of_this_session_went_on() {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().join("projects/-w");
        std::fs::create_dir_all(&project).unwrap();
        let id: NoticeId = "n-2222222222".parse().unwrap();
        let ours =
            format!(r#"{{"type":"user","sessionId":"s1","message":{{"content":"{MARK} (notice {id})"}}}}"#);
        let queued =
            format!(r#"{{"type":"queue-operation","operation":"enqueue","content":"{MARK} (notice {id})"}}"#);
        let last = format!(r#"{{"type":"last-prompt","lastPrompt":"{MARK} (notice {id})"}}"#);
        let answer = r#"{"type":"assistant","sessionId":"s1","message":{"model":"claude","content":[]}}"#;
        let error = r#"{"type":"assistant","isApiErrorMessage":true,"sessionId":"s1","message":{"model":"<synthetic>"}}"#;
        let within =
            r#"{"type":"assistant","isSidechain":true,"sessionId":"s1","message":{"model":"claude"}}"#;
        let elsewhere = r#"{"type":"assistant","sessionId":"s2","message":{"model":"claude"}}"#;
        let user = r#"{"type":"user","sessionId":"s1","message":{"content":"an \"assistant\" is asked"}}"#;
        for (lines, expected) in [
            (vec![answer], None),
            (vec![&queued, answer], None),
            (vec![answer, &ours], Some(Told::Unanswered)),
            (vec![&ours, within, elsewhere, user, "{"], Some(Told::Unanswered)),
            (vec![&ours, error], Some(Told::Failed)),
            (vec![&queued, &ours, error, &last], Some(Told::Failed)),
            (vec![&last], None),
            (vec![&ours, error, &ours], Some(Told::Unanswered)),
            (vec![&ours, user, answer], Some(Told::Answered)),
            (vec![&ours, error, answer], Some(Told::Answered)),
            (vec![&ours, answer, error, &ours], Some(Told::Answered)),
        ] {
            std::fs::write(project.join("s1.jsonl"), lines.join("\n")).unwrap();
            let told = find(folder.path(), "s1").unwrap().told(std::slice::from_ref(&id)).unwrap();
            let expected: Vec<_> = expected.map(|told| (id.clone(), told)).into_iter().collect();
            assert_eq!(told, expected, "{lines:?}");
        }
    }
}
