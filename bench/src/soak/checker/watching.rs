//! H10: what is told of a task while it runs is told before its end, adds up to what it printed, and says nothing that it did not print.

use homing_model::Status;

use super::super::story::{Book, Notice, Story};
use super::COMPLETED;

pub(super) fn counted_and_before_the_end(story: &Story) -> Vec<String> {
    let mut found = Vec::new();
    for book in &story.books {
        let mut notices: Vec<&Notice> =
            story.notices.values().filter(|notice| notice.task == book.id).collect();
        notices.sort_by_key(|notice| notice.seq);
        let after = notices.iter().skip_while(|notice| notice.about != COMPLETED);
        let after = after.filter(|notice| notice.about != COMPLETED);
        found.extend(after.map(|late| format!("{} told of {} after its end", book.id, late.about)));
        let early = notices.iter().filter(|notice| notice.about != COMPLETED);
        let watched = book.plan.hits.is_some();
        if !watched {
            found.extend(early.map(|one| format!("{} told of {}, which nobody wanted", book.id, one.about)));
            continue;
        }
        found.extend(matches(book, &notices));
        found.extend(heartbeats(book, &notices));
    }
    found
}

/// Each line that matches counts once, told or held back.
fn matches(book: &Book, notices: &[&Notice]) -> Option<String> {
    let printed = book.output.split(|byte| *byte == b'\n').filter(|line| line.starts_with(b"hit")).count();
    let told = notices.iter().filter(|notice| notice.about == "task.matched").count();
    let held: u64 = notices.iter().map(|notice| notice.held_back).sum();
    let counted = told as u64 + held;
    let whole = matches!(book.status, Status::Succeeded | Status::Failed) && book.exit_code.is_some();
    let sound = if whole { counted == printed as u64 } else { counted <= printed as u64 };
    (!sound)
        .then(|| format!("{} printed {printed} lines that match, and {counted} count ({told} told)", book.id))
}

/// All heartbeats together are the beginning of what was printed.
fn heartbeats(book: &Book, notices: &[&Notice]) -> Option<String> {
    let beats = notices.iter().filter(|notice| notice.about == "task.heartbeat");
    let said: String = beats.map(|beat| beat.text.as_str()).collect();
    let sound = book.output.starts_with(said.as_bytes());
    (!sound)
        .then(|| format!("{} told of {} bytes by its heartbeats that it did not print", book.id, said.len()))
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::super::tests::{breaks, notice, sound};
    use super::*;

    /// The one task printed four lines that match: one told, one with one held back, and one more with the end.
    fn watched(story: &mut Story) {
        let book = &mut story.books[0];
        book.plan.hits = Some(4);
        book.output = b"hit 1\nhit 2\nhit 3\nhit 4\nout".to_vec();
        book.plan.prints = book.output.clone();
        let one = |about: &str, seq, held_back, text: &str| Notice {
            held_back,
            text: text.into(),
            ..notice("t", about, seq)
        };
        for (id, notice) in [
            ("a", one("task.matched", 1, 0, "hit 1")),
            ("b", one("task.heartbeat", 2, 0, "hit 1\n")),
            ("c", one("task.matched", 3, 1, "hit 3")),
            ("d", one("task.heartbeat", 4, 0, "hit 2\nhi")),
            ("n", one(COMPLETED, 5, 1, "")),
        ] {
            story.notices.insert(id.into(), notice);
            story.inbox.acknowledged.insert(id.into());
        }
    }

    #[test]
    fn h10_a_watch_that_is_late_miscounted_or_unwanted_is_noticed() {
        let mut story = sound();
        watched(&mut story);
        assert_eq!(check(&story), Vec::<String>::new());
        let change = |id: &'static str, doctor: fn(&mut Notice)| {
            move |story: &mut Story| {
                watched(story);
                story.notices.get_mut(id).into_iter().for_each(doctor);
            }
        };
        breaks("H10", change("a", |notice| notice.seq = 6));
        breaks("H10", change("d", |notice| notice.seq = 6));
        breaks("H10", change("c", |notice| notice.held_back = 0));
        breaks("H10", change("n", |notice| notice.held_back = 2));
        breaks("H10", change("d", |notice| notice.text = "hit 1\n".into()));
        breaks("H10", change("b", |notice| notice.text.clear()));
        breaks("H10", |story| {
            watched(story);
            story.books[0].plan.hits = None;
        });
        breaks("H10", |story| {
            watched(story);
            story.notices.remove("a");
        });
        breaks("H5", |story| {
            watched(story);
            story.inbox.acknowledged.remove("a");
        });
    }

    #[test]
    fn h10_what_was_lost_with_its_shim_may_count_less_and_never_more() {
        let lost = |story: &mut Story| {
            watched(story);
            let book = &mut story.books[0];
            (book.status, book.exit_code) = (Status::Lost, None);
            book.reason = Some("supervisor killed".into());
            story.sightings.clear();
            story.killed.under_shims.insert(50);
        };
        let mut less = sound();
        lost(&mut less);
        less.notices.remove("c");
        assert_eq!(check(&less), Vec::<String>::new());
        breaks("H10", |story| {
            lost(story);
            story.notices.get_mut("n").into_iter().for_each(|end| end.held_back = 9);
        });
    }
}
