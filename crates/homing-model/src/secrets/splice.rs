//! Masking what a task is launched from, so that a launch can undo it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::mask::{Masks, marker};
use crate::spec::{Spec, Stdin};
use crate::text::OsText;

/// A value that a marker stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    field: Field,
    /// Where the marker begins.
    at: usize,
    name: String,
    /// Only these bytes of the value: where they begin, and how many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    part: Option<(usize, usize)>,
}

/// What of a spec a command gets to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Field {
    Argv(usize),
    Shell,
    Cwd,
    Stdin,
}

impl Masks {
    /// Puts markers into everything of a spec that is kept and shown, and keeps the places where a launch needs the values.
    ///
    /// Targets of notices stay as they are: they are needed for as long as something is on its way.
    pub fn cover_spec(&mut self, spec: &mut Spec) {
        if self.is_empty() {
            return;
        }
        let mut places = Vec::new();
        for (field, text) in fields(spec) {
            self.splice(field, text, &mut places);
        }
        for text in [&mut spec.name, &mut spec.description, &mut spec.prompt]
            .into_iter()
            .flatten()
            .chain(spec.labels.values_mut())
        {
            self.cover(text);
        }
        if let Some(key) = &mut spec.key {
            self.cover_apart(key);
        }
        self.places = places;
    }

    fn splice(&self, field: Field, text: &mut OsText, places: &mut Vec<Place>) {
        let bytes = text.as_bytes();
        let found = self.find(bytes);
        if found.is_empty() {
            return;
        }
        let mut masked = Vec::with_capacity(bytes.len());
        let mut covered = 0;
        for found in found {
            if found.end <= covered {
                continue;
            }
            masked.extend_from_slice(bytes.get(covered..found.start).unwrap_or_default());
            let skip = covered.saturating_sub(found.start);
            let length = found.end - found.start - skip;
            let part = match found.line {
                None if skip == 0 => None,
                line => Some((line.unwrap_or(0) + skip, length)),
            };
            places.push(Place { field, at: masked.len(), name: found.name.to_owned(), part });
            masked.extend_from_slice(marker(found.name).as_bytes());
            covered = found.end;
        }
        masked.extend_from_slice(bytes.get(covered..).unwrap_or_default());
        *text = masked.into();
    }

    /// The spec as it was given, for a launch. The name of the variable whose value is needed and is not there, or no longer the same, if there
    /// is one: a command is never run with a marker in it.
    ///
    /// # Errors
    /// That name.
    pub fn restore(&self, spec: &Spec, values: &BTreeMap<String, OsText>) -> Result<Spec, String> {
        let mut spec = spec.clone();
        // From the end, so that what comes before keeps its place.
        for place in self.places.iter().rev() {
            let missing = || place.name.clone();
            let value = values.get(&place.name).ok_or_else(missing)?.as_bytes();
            let value = match place.part {
                None => value,
                Some((from, length)) => value.get(from..from.saturating_add(length)).ok_or_else(missing)?,
            };
            let (_, text) =
                fields(&mut spec).into_iter().find(|(field, _)| *field == place.field).ok_or_else(missing)?;
            let marker = marker(&place.name);
            let end = place.at.saturating_add(marker.len());
            if text.as_bytes().get(place.at..end) != Some(marker.as_bytes()) {
                return Err(place.name.clone());
            }
            let mut bytes = std::mem::take(text).into_bytes();
            bytes.splice(place.at..end, value.iter().copied());
            *text = bytes.into();
        }
        Ok(spec)
    }

    /// The spec as it was given, for another task with values that may differ. A value that only happens to have the same name does not get into
    /// the command line: it is the one that stood there, or one that `given` says was given for it.
    ///
    /// # Errors
    /// The name of the variable whose value is not there.
    pub fn restore_anew(
        &self,
        spec: &Spec,
        values: &BTreeMap<String, OsText>,
        given: impl Fn(&str) -> bool,
    ) -> Result<Spec, String> {
        for place in &self.places {
            let value = values.get(&place.name).ok_or_else(|| place.name.clone())?;
            let replaced = place.part.is_none() && given(&place.name);
            if !replaced && !self.knows(&place.name, value.as_bytes()) {
                return Err(place.name.clone());
            }
        }
        self.restore(spec, values)
    }

    /// Whether a launch has to put values back.
    #[must_use]
    pub fn is_spliced(&self) -> bool {
        !self.places.is_empty()
    }
}

fn fields(spec: &mut Spec) -> Vec<(Field, &mut OsText)> {
    let mut fields: Vec<_> =
        spec.argv.iter_mut().enumerate().map(|(index, text)| (Field::Argv(index), text)).collect();
    fields.extend(spec.shell.as_mut().map(|text| (Field::Shell, text)));
    fields.extend(spec.cwd.as_mut().map(|text| (Field::Cwd, text)));
    if let Stdin::File(path) = &mut spec.stdin {
        fields.push((Field::Stdin, path));
    }
    fields
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Values = BTreeMap<String, OsText>;

    fn masked(spec: &Spec, values: &Values) -> (Masks, Spec) {
        let mut masks = Masks::new(3, values, |_| true);
        let mut stored = spec.clone();
        masks.cover_spec(&mut stored);
        (masks, stored)
    }

    #[test]
    fn everything_that_is_shown_is_masked_and_a_launch_gets_it_back() {
        let values = Values::from([("T".into(), "hunter2".into())]);
        let spec = Spec {
            argv: vec!["curl".into(), "-H".into(), "X: hunter2!".into(), "[secret T]".into()],
            cwd: Some("/tmp/hunter2".into()),
            stdin: Stdin::File("/in/hunter2".into()),
            name: Some("n hunter2".into()),
            description: Some("hunter2".into()),
            labels: BTreeMap::from([("l".into(), "hunter2".into())]),
            key: Some("hunter2".into()),
            ..Spec::default()
        };
        let (masks, stored) = masked(&spec, &values);
        let json = serde_json::to_string(&(&masks, &stored)).unwrap();
        assert!(!json.contains("hunter2"), "{json}");
        let restored = masks.restore(&stored, &values).unwrap();
        assert_eq!((restored.argv, restored.cwd, restored.stdin), (spec.argv, spec.cwd, spec.stdin));
        assert_eq!(masks.restore(&stored, &Values::new()), Err("T".into()));
        // A file that says something else by now.
        let changed = Values::from([("T".into(), "another".into())]);
        assert_eq!(masks.restore(&stored, &changed).unwrap().argv[2], "X: another!".into());
    }

    proptest! {
        #[test]
        fn a_launch_gets_every_byte_as_it_was(
            one in "[ab]{4,7}", two in "[abc]{4,6}", argv in proptest::collection::vec("[abc ]{0,30}", 1..5), bytes: Vec<u8>
        ) {
            let values = Values::from([("ONE".into(), one.as_str().into()), ("TWO".into(), two.as_str().into())]);
            let mut argv: Vec<OsText> = argv.into_iter().map(OsText::from).collect();
            argv.push([bytes.as_slice(), one.as_bytes(), bytes.as_slice()].concat().into());
            let spec = Spec { argv, ..Spec::default() };
            let (masks, stored) = masked(&spec, &values);
            for text in &stored.argv {
                let shown = text.lossy();
                prop_assert!(!shown.contains(&one) && !shown.contains(&two), "{shown}");
            }
            prop_assert_eq!(masks.restore(&stored, &values).unwrap(), spec);
        }
    }
}
