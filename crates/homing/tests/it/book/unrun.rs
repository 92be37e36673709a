//! The samples that no test runs: listed in docs/README.md, with the reasons, so that none is left out in silence.

use super::fence::Treatment;
use super::{fence, pages, read, root, writing};

const PAGE: &str = "docs/README.md";
const BEGIN: &str = "<!-- samples that no test runs: written by `cargo xtask record` -->\n";
const END: &str = "<!-- end -->\n";

/// One line for each page and reason.
fn list() -> String {
    let mut lines: Vec<(String, String, usize)> = Vec::new();
    for page in pages() {
        for fence in fence::all(&read(&page)) {
            let Treatment::Unrun(reason) = fence.treatment(&page) else { continue };
            match lines.iter_mut().find(|(there, why, _)| *there == page && why == reason) {
                Some((_, _, count)) => *count += 1,
                None => lines.push((page.clone(), reason.to_owned(), 1)),
            }
        }
    }
    let total: usize = lines.iter().map(|(_, _, count)| count).sum();
    let row = |(page, reason, count): &(String, String, usize)| {
        let link = page.strip_prefix("docs/").map_or_else(|| format!("../{page}"), str::to_owned);
        format!("| [{link}]({link}) | {count} | {reason} |\n")
    };
    let rows: String = lines.iter().map(row).collect();
    format!(
        "{total} samples are not run, for these reasons:\n\n| page | samples | why |\n|---|---|---|\n{rows}"
    )
}

#[test]
fn what_no_test_runs_is_listed_with_its_reason() {
    let page = read(PAGE);
    let (before, rest) = page.split_once(BEGIN).expect("the list begins");
    let (kept, after) = rest.split_once(END).expect("the list ends");
    let list = list();
    println!("{list}");
    if writing().is_some() && kept != list {
        std::fs::write(root().join(PAGE), format!("{before}{BEGIN}{list}{END}{after}")).unwrap();
    } else {
        assert_eq!(kept, list, "`cargo xtask record` writes the list in {PAGE} anew");
    }
}
