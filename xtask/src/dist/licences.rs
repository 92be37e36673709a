//! The licences of what is linked into the program, with their texts: THIRD-PARTY-LICENSES.txt.
//!
//! Made from the sources that are compiled, each time anew, so that it cannot be out of date. A crate that is published without the text of its
//! licence has it in `packaging/licences`; one that has it nowhere fails `cargo xtask deny`, and with it the tests. A text that several crates have in
//! common is there once.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::packages::Package;

/// How files with such texts begin, whatever the case.
const NAMES: [&str; 6] = ["license", "licence", "copying", "copyright", "notice", "unlicense"];
/// How files end that are about something else.
const OTHERS: [&str; 8] = ["rs", "c", "h", "py", "json", "toml", "html", "yml"];
/// Folders whose contents are not in the program.
const APART: [&str; 4] = ["tests", "benches", "examples", "target"];

/// A file and what it says.
type Text = (String, String);

/// The texts that come with a package, by their paths in it.
pub(crate) fn texts(root: &Path, package: &Package) -> Result<Vec<Text>> {
    let mut found = Vec::new();
    collect(&package.folder, "", &mut found).with_context(|| format!("the sources of {}", package.name))?;
    if found.is_empty() {
        let ours = format!("packaging/licences/{}.txt", package.name);
        if let Ok(text) = std::fs::read_to_string(root.join(&ours)) {
            found.push(("LICENSE, from its repository".to_owned(), text));
        }
    }
    found.sort();
    Ok(found)
}

fn collect(folder: &Path, within: &str, found: &mut Vec<Text>) -> Result<()> {
    for entry in
        std::fs::read_dir(folder).with_context(|| format!("{} could not be read", folder.display()))?
    {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let kind = entry.file_type()?;
        if kind.is_dir() && !APART.contains(&name.as_str()) && !name.starts_with('.') {
            collect(&entry.path(), &format!("{within}{name}/"), found)?;
        } else if kind.is_file() && is_licence(&name) {
            let text = std::fs::read(entry.path()).with_context(|| format!("{}", entry.path().display()))?;
            found.push((format!("{within}{name}"), String::from_utf8_lossy(&text).into_owned()));
        }
    }
    Ok(())
}

fn is_licence(name: &str) -> bool {
    let name = name.to_lowercase();
    let extension = Path::new(&name).extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    NAMES.iter().any(|begin| name.starts_with(begin)) && !OTHERS.contains(&extension)
}

/// The whole file.
pub(crate) fn gather(root: &Path, packages: &[Package]) -> Result<String> {
    let besides = std::fs::read_to_string(root.join("packaging/licences/besides.txt"))
        .context("packaging/licences/besides.txt could not be read")?;
    let mut texts_of = Vec::new();
    for package in packages {
        let found = texts(root, package)?;
        ensure!(!found.is_empty(), "{} comes without the text of its licence", package.name);
        texts_of.push((package, found));
    }
    Ok(render(&besides, &texts_of))
}

fn render(besides: &str, texts_of: &[(&Package, Vec<Text>)]) -> String {
    let mut page =
        "homing is under the MIT or the Apache-2.0 licence, as you choose. It is linked with what others\n\
                    wrote, or made with it, which is listed here; the texts follow.\n\n"
            .to_owned();
    let mut shared: BTreeMap<String, (&str, Vec<String>)> = BTreeMap::new();
    for (package, texts) in texts_of {
        let Package { name, version, license, .. } = package;
        let _ = writeln!(page, "{name} {version}: {}", license.as_deref().unwrap_or("see its text"));
        for (file, text) in texts {
            let key = text.split_whitespace().collect::<Vec<_>>().join(" ");
            shared.entry(key).or_insert((text, Vec::new())).1.push(format!("{name} {version} ({file})"));
        }
    }
    let _ = write!(page, "\n{besides}");
    let mut texts: Vec<_> = shared.into_values().collect();
    texts.sort_by(|one, other| one.1.cmp(&other.1));
    for (text, whose) in texts {
        let rule = "=".repeat(80);
        let text = text.replace('\r', "");
        let _ = write!(page, "\n{rule}\n{}\n{rule}\n\n{}\n", whose.join("\n"), text.trim_matches('\n'));
    }
    page
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn a_file_is_known_by_its_name() {
        for name in [
            "LICENSE",
            "LICENSE-MIT",
            "license.md",
            "COPYING",
            "UNLICENSE",
            "LICENSE.httprouter",
            "NOTICE.txt",
        ] {
            assert!(is_licence(name), "{name}");
        }
        for name in ["README.md", "licence.rs", "license_header.py", "lib.rs", "LICENSES.html"] {
            assert!(!is_licence(name), "{name}");
        }
    }

    #[test]
    fn a_text_that_two_have_is_there_once_and_names_both() {
        let package = |name: &str| Package {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            license: Some("MIT".to_owned()),
            folder: PathBuf::new(),
            source: None,
        };
        let (one, two) = (package("one"), package("two"));
        let text = |file: &str, text: &str| vec![(file.to_owned(), text.to_owned())];
        let page = render(
            "BESIDES\n",
            &[(&one, text("LICENSE", "Do as\nyou like.\n")), (&two, text("COPYING", "Do as you\r\nlike."))],
        );
        assert_eq!(page.matches("you like.").count() + page.matches("you\nlike.").count(), 1, "{page}");
        assert!(page.contains("one 1.0.0 (LICENSE)\ntwo 1.0.0 (COPYING)\n"), "{page}");
        assert!(page.contains("one 1.0.0: MIT\ntwo 1.0.0: MIT\n") && page.contains("\nBESIDES\n"), "{page}");
    }

    #[test]
    fn what_is_not_in_the_program_is_left_out() {
        let scratch = crate::dist::scratch::Scratch::new("licences").unwrap();
        for (path, text) in [
            ("LICENSE", "a"),
            ("third_party/x/LICENSE", "b"),
            ("tests/LICENSE", "c"),
            ("src/license.rs", "d"),
        ] {
            let path = scratch.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let mut found = Vec::new();
        collect(scratch.path(), "", &mut found).unwrap();
        found.sort();
        let names: Vec<_> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["LICENSE", "third_party/x/LICENSE"]);
    }
}
