//! Where things are: from a size to rectangles that never leave it, down to no size at all.

use ratatui::layout::{Position, Rect};

/// From this height of the middle on, the list shares it with what a task printed.
const SHARED: u16 = 7;

/// The places of everything; what has no room has no size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Areas {
    pub(crate) whole: Rect,
    pub(crate) header: Rect,
    /// The names of the columns.
    pub(crate) heads: Rect,
    pub(crate) list: Rect,
    /// The line that says what is below.
    pub(crate) title: Rect,
    pub(crate) pane: Rect,
    pub(crate) footer: Rect,
}

impl Areas {
    /// Of a place; `zoomed` if one task has it all.
    pub(crate) fn of(whole: Rect, zoomed: bool) -> Self {
        let mut left = whole;
        let mut cut = |height: u16| {
            let height = height.min(left.height);
            let taken = Rect { height, ..left };
            left = Rect { y: left.y + height, height: left.height - height, ..left };
            taken
        };
        let header = cut(u16::from(whole.height >= 3));
        let middle = whole.height - header.height - u16::from(whole.height >= 2);
        let mut areas = Self { whole, header, ..Self::default() };
        let shared = middle >= SHARED;
        if zoomed {
            areas.title = cut(u16::from(middle >= 2));
            areas.pane = cut(middle - areas.title.height);
        } else {
            let upper = if shared { (middle * 2 / 5).max(4) } else { middle };
            areas.heads = cut(u16::from(shared));
            areas.list = cut(upper - areas.heads.height);
            areas.title = cut(u16::from(shared));
            areas.pane = cut(middle - upper - areas.title.height);
        }
        areas.footer = cut(whole.height - header.height - middle);
        areas
    }

    /// Whether a place is in what a task printed, or on the line above it.
    pub(crate) fn in_pane(&self, at: Position) -> bool {
        self.pane.contains(at) || self.title.contains(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_is_shared_out_without_rest_or_overlap() {
        for height in 0..80 {
            for zoomed in [false, true] {
                let whole = Rect::new(3, 5, 40, height);
                let areas = Areas::of(whole, zoomed);
                let parts = [areas.header, areas.heads, areas.list, areas.title, areas.pane, areas.footer];
                assert_eq!(parts.iter().map(|part| part.height).sum::<u16>(), height, "{height} {areas:?}");
                let mut y = whole.y;
                for part in parts.iter().filter(|part| part.height > 0) {
                    assert_eq!((part.x, part.y, part.width), (3, y, 40), "{height} {areas:?}");
                    y += part.height;
                }
                if height > 0 {
                    assert!(areas.list.height + areas.pane.height > 0, "something is always shown: {height}");
                }
            }
        }
    }
}
