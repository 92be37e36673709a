//! H9: of those who complete an external task the first counts, only one is told that it was, and nobody completes what is another's.

use homing_model::Status;

use super::super::story::{Book, External, Story};

pub(super) fn the_first_word_counts(story: &Story) -> Vec<String> {
    let mut found = Vec::new();
    for book in story.books.iter().filter(|book| book.plan.external) {
        let Some(external) = story.externals.get(&book.number) else {
            found.push(format!("{} is external, and nobody tracked it", book.id));
            continue;
        };
        let why = judge(story, book, external);
        found
            .extend(why.map(|why| format!("{} (number {}) is {}: {why}", book.id, book.number, book.status)));
        if external.by_stranger {
            found.push(format!("{} was completed by a stranger", book.id));
        }
    }
    found
}

fn judge(story: &Story, book: &Book, external: &External) -> Option<String> {
    let counted: Vec<&str> = external
        .completions
        .iter()
        .filter(|(_, counted)| *counted == Some(true))
        .map(|(answer, _)| answer.as_str())
        .collect();
    if counted.len() > 1 {
        return Some(format!("several were told that theirs counts: {counted:?}"));
    }
    let answer = book.answer.as_deref().unwrap_or_default();
    match (book.status, counted.first()) {
        (Status::Succeeded, Some(first)) => {
            (*first != answer).then(|| format!("{first:?} counted, and it has {answer:?}"))
        }
        (Status::Succeeded, None) => {
            // Somebody did not hear that it was his.
            let may = |(said, counted): &(String, Option<bool>)| said == answer && counted.is_none();
            (!external.completions.iter().any(may)).then(|| format!("nobody may have said {answer:?}"))
        }
        (status, Some(first)) => Some(format!("{first:?} counted, and it is {status}")),
        (Status::Lost, None) => (!external.may_be_lost).then(|| {
            let reason = book.reason.as_deref().unwrap_or("no reason");
            format!("it was heard of all the time ({reason})")
        }),
        (Status::Stopped, None) => {
            (!story.stopped.contains(&book.id)).then(|| "nobody stopped it".to_owned())
        }
        (status, None) => Some(format!("nothing makes it {status}")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::super::tests::{breaks, sound};
    use super::*;

    /// The one task is somebody else's, has this state and answer, and these completed it.
    fn external(story: &mut Story, status: Status, answer: &str, said: &[(&str, Option<bool>)]) {
        let completions = said.iter().map(|(said, counted)| ((*said).to_owned(), *counted)).collect();
        story.externals.insert(1, External { completions, ..External::default() });
        story.sightings.clear();
        story.runs.clear();
        let book = &mut story.books[0];
        (book.status, book.exit_code, book.plan.external) = (status, None, true);
        (book.answer, book.output, book.plan.prints) = (Some(answer.to_owned()), Vec::new(), Vec::new());
    }

    #[test]
    fn h9_a_completion_that_did_not_come_first_and_counts_is_noticed() {
        let (yes, no) = (Some(true), Some(false));
        breaks("H9", |story| external(story, Status::Succeeded, "b", &[("a", yes), ("b", no)]));
        breaks("H9", |story| external(story, Status::Succeeded, "a", &[("a", yes), ("b", yes)]));
        breaks("H9", |story| external(story, Status::Succeeded, "a", &[("a", no), ("b", no)]));
        breaks("H9", |story| external(story, Status::Succeeded, "c", &[("a", None)]));
        breaks("H9", |story| external(story, Status::Lost, "", &[("a", yes)]));
        breaks("H9", |story| external(story, Status::Lost, "", &[("a", no)]));
        breaks("H9", |story| external(story, Status::Stopped, "", &[("a", no)]));
        breaks("H9", |story| external(story, Status::Failed, "", &[("a", no)]));
        breaks("H9", |story| {
            external(story, Status::Succeeded, "a", &[("a", yes)]);
            story.externals.entry(1).or_default().by_stranger = true;
        });
        breaks("H9", |story| {
            external(story, Status::Succeeded, "a", &[("a", yes)]);
            story.externals.clear();
        });
    }

    #[test]
    fn h9_what_may_be_is_not() {
        let sounds: [fn(&mut Story); 4] = [
            |story| external(story, Status::Succeeded, "a", &[("a", Some(true)), ("b", Some(false))]),
            |story| external(story, Status::Succeeded, "b", &[("a", Some(false)), ("b", None)]),
            |story| {
                external(story, Status::Lost, "", &[]);
                story.externals.entry(1).or_default().may_be_lost = true;
            },
            |story| {
                external(story, Status::Stopped, "", &[("a", Some(false))]);
                story.stopped.insert("t".into());
            },
        ];
        for doctor in sounds {
            let mut story = sound();
            doctor(&mut story);
            assert_eq!(check(&story), Vec::<String>::new());
        }
    }
}
