//! Looks for the keys that detach among those that are typed.

use crate::terminal::keys::Key;

/// Holds back what may become them.
#[derive(Debug)]
pub(crate) struct Detach {
    keys: Vec<Key>,
    held: Vec<u8>,
}

enum Fit {
    Whole,
    Begun,
    Not,
}

impl Detach {
    pub(super) fn new(keys: Vec<Key>) -> Self {
        Self { keys, held: Vec::new() }
    }

    /// What is for the task of what was typed, and whether the keys were among it; what came behind them is for nobody.
    pub(crate) fn typed(&mut self, bytes: &[u8]) -> (Vec<u8>, bool) {
        self.held.extend_from_slice(bytes);
        let mut at = 0;
        while let Some(rest) = self.held.get(at..).filter(|rest| !rest.is_empty()) {
            match fit(&self.keys, rest) {
                Fit::Whole => {
                    self.held.truncate(at);
                    return (std::mem::take(&mut self.held), true);
                }
                Fit::Begun => break,
                Fit::Not => at += 1,
            }
        }
        let rest = self.held.split_off(at);
        (std::mem::replace(&mut self.held, rest), false)
    }
}

fn fit(keys: &[Key], bytes: &[u8]) -> Fit {
    let Some((key, rest)) = keys.split_first() else { return Fit::Whole };
    if bytes.is_empty() {
        return Fit::Begun;
    }
    let forms = std::iter::once(&key.bytes).chain(&key.others);
    match forms.filter_map(|form| bytes.strip_prefix(form.as_slice())).next() {
        Some(after) => fit(rest, after),
        // A key whose bytes are several may come in two pieces. One that a terminal tells apart comes whole: a lone Esc is not held back.
        None if key.bytes.starts_with(bytes) && bytes != b"\x1b" => Fit::Begun,
        None => Fit::Not,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detach(keys: &str) -> Detach {
        Detach::new(crate::terminal::keys::parse(keys).unwrap())
    }

    #[test]
    fn one_key_detaches_wherever_it_comes() {
        let mut one = detach("ctrl-\\");
        assert_eq!(one.typed(b"abc"), (b"abc".to_vec(), false));
        assert_eq!(one.typed(b"\x1b"), (b"\x1b".to_vec(), false));
        assert_eq!(one.typed(b"a\x1cb"), (b"a".to_vec(), true));
    }

    #[test]
    fn several_keys_detach_only_together_and_nothing_else_is_lost() {
        let mut two = detach("ctrl-p,ctrl-q");
        assert_eq!(two.typed(b"a\x10"), (b"a".to_vec(), false));
        assert_eq!(two.typed(b"b"), (b"\x10b".to_vec(), false));
        assert_eq!(two.typed(b"\x10\x10"), (b"\x10".to_vec(), false));
        assert_eq!(two.typed(b"\x11rest"), (Vec::new(), true));
    }

    #[test]
    fn the_keys_are_known_in_the_spelling_of_a_program_that_asked_for_another() {
        for bytes in [&b"\x1b[27;5;92~"[..], b"\x1b[92;5u"] {
            assert_eq!(detach("ctrl-\\").typed(bytes), (Vec::new(), true));
        }
    }
}
