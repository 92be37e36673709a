//! docs/troubleshooting.md knows every code, and none that is not there.

use std::collections::BTreeSet;

use homing_api::Code;
use regex::Regex;

use super::read;

#[test]
fn troubleshooting_has_every_code_and_no_other() {
    let page = read("docs/troubleshooting.md");
    let codes = Regex::new(r"\[(HM\d{4})\]").unwrap();
    let named: BTreeSet<_> = codes.captures_iter(&page).map(|found| found[1].to_owned()).collect();
    let known: BTreeSet<_> = Code::ALL.iter().map(|code| code.code().to_owned()).collect();
    assert_eq!(named, known);
}

#[test]
fn every_code_is_explained_in_sentences_that_say_what_to_do() {
    let home = crate::home();
    for code in Code::ALL {
        let said = home.cli(["explain", code.code()]).ok().text();
        let advice = said.split_once("next: ").unwrap_or_else(|| panic!("{said}")).1;
        assert!(advice.trim_end().ends_with('.') && advice.len() > 20, "{said}");
        assert!(said.contains(code.title()) && said.contains(code.slug()), "{said}");
    }
}
