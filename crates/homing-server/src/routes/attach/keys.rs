//! Cursor keys in the form that the program asked for.
//!
//! A terminal has two: `ESC [ A`, and `ESC O A` once a program has asked for application keys, as editors and readline do. Who types at a
//! terminal need not know; who sends keys by name has no terminal, so the daemon, whose model knows what was asked for, stands in for it.

use homing_engine::Engine;
use homing_model::TaskId;

use super::feeder;
use super::stage::Stages;

/// The last letters of keys that have two forms: the arrows, End and Home.
const CURSOR: &[u8] = b"ABCDFH";

/// Keys in their usual form, as the program on a task's terminal wants them. Where that cannot be known they stay as they are.
pub(crate) async fn as_asked_for(
    engine: &Engine,
    stages: &Stages,
    id: &TaskId,
    mut keys: Vec<u8>,
) -> Vec<u8> {
    if !has_cursor_keys(&keys) || engine.has_terminal(id).await.is_err() {
        return keys;
    }
    let application = match stages.picture(id) {
        Some(picture) => picture.screen.application_cursor(),
        None => {
            let seen = feeder::glance(engine.clone(), id.clone()).await;
            seen.is_ok_and(|picture| picture.screen.application_cursor())
        }
    };
    if application {
        apply(&mut keys);
    }
    keys
}

fn is_cursor_key(bytes: &[u8]) -> bool {
    matches!(bytes, [0x1b, b'[', last] if CURSOR.contains(last))
}

fn has_cursor_keys(keys: &[u8]) -> bool {
    keys.windows(3).any(is_cursor_key)
}

fn apply(keys: &mut [u8]) {
    for at in 0..keys.len().saturating_sub(2) {
        if let Some(key) = keys.get_mut(at..at + 3).filter(|key| is_cursor_key(key)) {
            key[1] = b'O';
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_cursor_keys_have_another_form() {
        let mut keys = b"x\x1b[A\x1b[B\x1b[5~\x1b[1;5C\x1b[Z\x1b[H\x1b[".to_vec();
        assert!(has_cursor_keys(&keys));
        apply(&mut keys);
        assert_eq!(keys, b"x\x1bOA\x1bOB\x1b[5~\x1b[1;5C\x1b[Z\x1bOH\x1b[");
        assert!(!has_cursor_keys(b"plain\x1b[5~\x1bOA"));
    }
}
