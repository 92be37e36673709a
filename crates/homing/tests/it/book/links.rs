//! Links lead somewhere: to a file that is there, and to a heading that it has.

use std::path::Path;

use super::{pages, read, root};

/// The targets of the links in a text, outside of fences.
fn targets(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut fenced = false;
    for line in text.lines() {
        if line.starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        for (at, _) in line.match_indices("](") {
            if let Some((target, _)) = line[at + 2..].split_once(')') {
                found.push(target.to_owned());
            }
        }
        for piece in line.split("src=\"").skip(1) {
            found.extend(piece.split_once('"').map(|(target, _)| target.to_owned()));
        }
    }
    found
}

/// A heading as it is called in addresses.
fn anchor(heading: &str) -> String {
    let kept = |letter: char| letter.is_alphanumeric() || letter == '-' || letter == '_' || letter == ' ';
    heading.to_lowercase().chars().filter(|letter| kept(*letter)).collect::<String>().trim().replace(' ', "-")
}

fn anchors(text: &str) -> Vec<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings.map(|line| anchor(line.trim_start_matches('#'))).collect()
}

/// What is wrong with a link of a page.
fn wrong(page: &str, target: &str) -> Option<String> {
    if target.starts_with("http") || target.starts_with("mailto:") {
        return None;
    }
    let (file, heading) = target.split_once('#').unwrap_or((target, ""));
    let folder = Path::new(page).parent().expect("a folder");
    let path = if file.is_empty() { Path::new(page).to_owned() } else { folder.join(file) };
    let absolute = root().join(&path);
    if !absolute.exists() {
        return Some(format!("{page}: {target} is not there"));
    }
    let has =
        || anchors(&std::fs::read_to_string(&absolute).expect("a file")).iter().any(|there| there == heading);
    (!heading.is_empty() && !has()).then(|| format!("{page}: {target} names no heading"))
}

#[test]
fn every_link_leads_somewhere() {
    let mut seen = 0;
    let mut broken = Vec::new();
    let others = ["ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"].map(str::to_owned);
    for page in pages().into_iter().chain(others) {
        for target in targets(&read(&page)) {
            seen += 1;
            broken.extend(wrong(&page, &target));
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
    assert!(seen > 50, "only {seen} links were found");
}

#[test]
fn every_page_can_be_reached_from_the_contents() {
    let contents = targets(&read("docs/README.md"));
    let missing = |page: &String| {
        let name = page.strip_prefix("docs/").unwrap_or("README.md");
        name != "README.md" && !name.starts_with("agents/") && !contents.iter().any(|target| target == name)
    };
    let missing: Vec<_> = pages().into_iter().filter(missing).collect();
    assert!(missing.is_empty(), "docs/README.md does not link to {missing:?}");
}
