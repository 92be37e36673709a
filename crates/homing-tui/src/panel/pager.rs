//! A window that moves over lines.

/// Which lines are in it. Kept in range by [`settle`](Self::settle), which each drawing calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pager {
    /// The first line that is shown.
    pub(crate) top: usize,
    /// The first column that is shown.
    pub(crate) left: usize,
    /// Whether the last lines are shown, whatever comes.
    pub(crate) following: bool,
    /// The line that was found last.
    pub(crate) mark: Option<usize>,
    height: usize,
    count: usize,
}

impl Pager {
    /// One that stays at the end.
    pub(crate) const fn following() -> Self {
        Self { top: 0, left: 0, following: true, mark: None, height: 0, count: 0 }
    }

    /// One that begins at the start.
    pub(crate) const fn at_start() -> Self {
        Self { following: false, ..Self::following() }
    }

    /// Fits it to so many lines in a window of this height; `widest` is the length of the longest of them, in a window of this width.
    pub(crate) fn settle(&mut self, count: usize, height: usize, widest: usize, width: usize) {
        (self.count, self.height) = (count, height);
        self.top = if self.following { self.last() } else { self.top.min(self.last()) };
        self.left = self.left.min(widest.saturating_sub(width));
    }

    /// Moves by lines; at the end it follows if it may.
    pub(crate) fn lines(&mut self, by: isize, may_follow: bool) {
        self.top = self.top.saturating_add_signed(by).min(self.last());
        self.following = may_follow && by > 0 && self.top == self.last() || self.following && by >= 0;
    }

    /// Moves by windows.
    pub(crate) fn pages(&mut self, by: isize, may_follow: bool) {
        let page = isize::try_from(self.height.saturating_sub(1).max(1)).unwrap_or(isize::MAX);
        self.lines(by.saturating_mul(page), may_follow);
    }

    /// Moves sideways.
    pub(crate) const fn columns(&mut self, by: isize) {
        self.left = self.left.saturating_add_signed(by);
    }

    /// To the first line.
    pub(crate) const fn home(&mut self) {
        (self.top, self.left, self.following) = (0, 0, false);
    }

    /// To the last lines, and stays there if it may.
    pub(crate) fn end(&mut self, may_follow: bool) {
        (self.top, self.following) = (self.last(), may_follow);
    }

    /// Lines were dropped from the start: what was looked at stays.
    pub(crate) fn dropped(&mut self, count: usize) {
        self.top = self.top.saturating_sub(count);
        self.mark = self.mark.and_then(|mark| mark.checked_sub(count));
    }

    /// Brings a line into the window, a third below its upper edge.
    pub(crate) fn show(&mut self, line: usize) {
        (self.following, self.mark) = (false, Some(line));
        if line < self.top || line >= self.top + self.height.max(1) {
            // There may be more lines by now than when it was drawn: drawing brings it into range.
            self.top = line.saturating_sub(self.height / 3);
        }
    }

    fn last(&self) -> usize {
        self.count.saturating_sub(self.height.max(1))
    }

    /// Whether it is in range, as of the last drawing.
    pub(crate) fn is_sound(&self) -> bool {
        self.top <= self.last()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_follows_until_it_is_moved_up_and_again_at_the_end() {
        let mut pager = Pager::following();
        pager.settle(100, 10, 0, 80);
        assert_eq!(pager.top, 90);
        pager.lines(-5, true);
        pager.settle(120, 10, 0, 80);
        assert_eq!((pager.top, pager.following), (85, false));
        pager.pages(9, true);
        assert!(pager.following);
        pager.settle(200, 10, 0, 80);
        assert_eq!(pager.top, 190);
    }

    #[test]
    fn what_is_looked_at_stays_when_lines_are_dropped() {
        let mut pager = Pager::at_start();
        pager.settle(100, 10, 0, 80);
        pager.lines(50, false);
        pager.dropped(20);
        pager.settle(80, 10, 0, 80);
        assert_eq!(pager.top, 30);
        pager.settle(0, 0, 0, 0);
        assert_eq!((pager.top, pager.left), (0, 0));
    }

    #[test]
    fn a_found_line_comes_into_sight_and_one_in_sight_moves_nothing() {
        let mut pager = Pager::at_start();
        pager.settle(100, 9, 0, 80);
        pager.show(4);
        assert_eq!(pager.top, 0);
        pager.show(50);
        assert_eq!(pager.top, 47);
        pager.show(99);
        pager.settle(100, 9, 0, 80);
        assert_eq!(pager.top, 91);
    }
}
