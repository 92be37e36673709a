//! The size of the task's terminal. The kernel tells the programs in its foreground (SIGWINCH) whenever it changes.

use rustix::event::PollFlags;
use rustix::termios::{Winsize, tcgetwinsize, tcsetwinsize};

use super::service::Service;

impl Service {
    /// Gives the terminal a size; answers with the one that it has then, and from which byte of the output on. What was printed before
    /// is taken before, so that it counts to the old size; the new one is noted before anything is taken that was printed for it.
    pub(super) fn resize(&mut self, cols: u16, rows: u16) -> (u64, (u16, u16)) {
        self.take_output([PollFlags::IN; 2]);
        let offset = self.output.total();
        let Some(terminal) = self.sources.iter().find(|source| source.is_terminal()) else {
            return (offset, (0, 0));
        };
        let before = tcgetwinsize(&terminal.fd).map(|size| (size.ws_col, size.ws_row));
        if cols > 0 && rows > 0 && before != Ok((cols, rows)) {
            self.sizes.note(&self.folder, offset, (cols, rows));
            let size = Winsize { ws_row: rows, ws_col: cols, ws_xpixel: 0, ws_ypixel: 0 };
            if tcsetwinsize(&terminal.fd, size).is_ok() {
                return (offset, (cols, rows));
            }
            // It did not come to that: what was noted is taken back.
            if let Ok(before) = before {
                self.sizes.note(&self.folder, offset, before);
            }
        }
        (offset, before.unwrap_or_default())
    }
}
