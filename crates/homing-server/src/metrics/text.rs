//! The text format of Prometheus, version 0.0.4.

use std::fmt::Write as _;

use homing_model::meter::Reading;

/// What it is served as.
pub(crate) const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Microseconds in a second.
const MICROS: u64 = 1_000_000;

/// What a family of samples is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// It goes up and down.
    Gauge,
    /// It goes up, until the daemon is another.
    Counter,
    /// How often a value was at most each of some bounds.
    Histogram,
}

/// A page that grows.
#[derive(Debug, Default)]
pub(super) struct Exposition {
    out: String,
    family: &'static str,
}

impl Exposition {
    /// Begins a family; the samples that follow are its.
    pub(super) fn family(&mut self, name: &'static str, kind: Kind, help: &'static str) {
        let kind = match kind {
            Kind::Gauge => "gauge",
            Kind::Counter => "counter",
            Kind::Histogram => "histogram",
        };
        self.family = name;
        self.push(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
    }

    /// One sample.
    pub(super) fn sample(&mut self, labels: &[(&str, &str)], value: u64) {
        self.line("", labels, &value.to_string());
    }

    /// One sample that is `value` parts of which there are `of` in one.
    pub(super) fn scaled(&mut self, labels: &[(&str, &str)], value: u64, of: u64) {
        self.line("", labels, &fraction(value, of));
    }

    /// The samples of a histogram of times.
    pub(super) fn times(&mut self, reading: &Reading) {
        self.histogram(reading, MICROS);
    }

    /// The samples of a histogram of numbers.
    pub(super) fn sizes(&mut self, reading: &Reading) {
        self.histogram(reading, 1);
    }

    /// The page.
    pub(super) fn text(self) -> String {
        self.out
    }

    fn histogram(&mut self, reading: &Reading, of: u64) {
        let mut so_far = 0;
        for (bound, count) in &reading.buckets {
            so_far += count;
            self.line("_bucket", &[("le", &fraction(*bound, of))], &so_far.to_string());
        }
        let count = reading.count();
        self.line("_bucket", &[("le", "+Inf")], &count.to_string());
        self.line("_sum", &[], &fraction(reading.sum, of));
        self.line("_count", &[], &count.to_string());
    }

    fn line(&mut self, suffix: &str, labels: &[(&str, &str)], value: &str) {
        let family = self.family;
        self.push(format_args!("{family}{suffix}"));
        for (place, (name, text)) in labels.iter().enumerate() {
            let before = if place == 0 { '{' } else { ',' };
            self.push(format_args!("{before}{name}=\"{}\"", escaped(text)));
        }
        self.push(format_args!("{} {value}\n", if labels.is_empty() { "" } else { "}" }));
    }

    fn push(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.out.write_fmt(text);
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// A decimal fraction, exact and without what it does not need.
fn fraction(value: u64, of: u64) -> String {
    let digits = of.ilog10() as usize;
    if digits == 0 {
        return value.to_string();
    }
    let text = format!("{}.{:0digits$}", value / of, value % of);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_exact_and_labels_are_escaped() {
        assert_eq!(fraction(200, MICROS), "0.0002");
        assert_eq!((fraction(60_000_000, MICROS), fraction(0, 1_000)), ("60".to_owned(), "0".to_owned()));
        assert_eq!((fraction(1_500, 1_000), fraction(100, 1)), ("1.5".to_owned(), "100".to_owned()));
        assert_eq!(escaped("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
    }
}
