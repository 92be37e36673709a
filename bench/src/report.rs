//! One table at the end, progress on the way.

use std::time::Duration;

/// One line: what was measured, its baseline, the ratio, and the figure to reach.
#[derive(Debug)]
struct Line {
    what: String,
    figure: String,
    baseline: String,
    ratio: String,
    target: String,
    met: Option<bool>,
}

/// All lines.
#[derive(Debug, Default)]
pub(crate) struct Report {
    lines: Vec<Line>,
}

impl Report {
    /// A figure with a baseline: `ratio` is ours over theirs.
    pub(crate) fn ratio(
        &mut self,
        what: &str,
        figure: &str,
        baseline: &str,
        ratio: f64,
        target: &str,
        met: bool,
    ) {
        self.add(what, figure, baseline, &format!("{ratio:.2}"), target, Some(met));
    }

    /// A figure that stands alone.
    pub(crate) fn figure(&mut self, what: &str, figure: &str, target: &str, met: bool) {
        self.add(what, figure, "", "", target, Some(met));
    }

    /// A figure beside another program's, with nothing to reach.
    pub(crate) fn beside(&mut self, what: &str, figure: &str, baseline: &str, ratio: f64) {
        self.add(what, figure, baseline, &format!("{ratio:.2}"), "", None);
    }

    /// A figure for information.
    pub(crate) fn note(&mut self, what: &str, figure: &str, baseline: &str) {
        self.add(what, figure, baseline, "", "", None);
    }

    fn add(
        &mut self,
        what: &str,
        figure: &str,
        baseline: &str,
        ratio: &str,
        target: &str,
        met: Option<bool>,
    ) {
        eprintln!("  {what}: {figure} {baseline} {ratio}");
        self.lines.push(Line {
            what: what.into(),
            figure: figure.into(),
            baseline: baseline.into(),
            ratio: ratio.into(),
            target: target.into(),
            met,
        });
    }

    /// The table, in Markdown, so that it can go into the documents as it is.
    pub(crate) fn print(&self) {
        println!("| what | homing | baseline | ratio | to reach | |");
        println!("|---|---|---|---|---|---|");
        for line in &self.lines {
            let met = match line.met {
                Some(true) => "met",
                Some(false) => "**missed**",
                None => "",
            };
            println!(
                "| {} | {} | {} | {} | {} | {met} |",
                line.what, line.figure, line.baseline, line.ratio, line.target
            );
        }
    }
}

/// The value below which this share of the samples lies.
pub(crate) fn percentile(samples: &mut [f64], share: f64) -> f64 {
    samples.sort_by(f64::total_cmp);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "an index"
    )]
    let at = ((samples.len() as f64 * share).ceil() as usize).saturating_sub(1);
    samples.get(at).copied().unwrap_or(f64::NAN)
}

/// The middle value.
pub(crate) fn median(samples: &mut [f64]) -> f64 {
    percentile(samples, 0.5)
}

/// Milliseconds.
pub(crate) fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
