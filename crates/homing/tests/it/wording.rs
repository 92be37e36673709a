//! What makes no sense is told to a person at a terminal, not to a program that sends requests.

/// Words that belong to the other surface.
const FOREIGN: &[&str] = &[
    "/v1/",
    "openapi",
    "body",
    "GET ",
    "POST ",
    "DELETE ",
    "header",
    "parameter",
    "field",
    "_ms`",
    "_bytes`",
    "argv",
];

#[test]
fn what_fits_several_tasks_is_told_by_what_was_typed() {
    let home = super::home();
    for _ in 0..6 {
        let _ = home.submit(&["--name", "twin"], "exec sleep 1000");
    }
    let named = home.cli(["show", "twin"]);
    assert!(named.stderr.contains("`twin` fits several tasks: t-"), "{}", named.stderr);
    assert!(named.stderr.contains(" and more (HM0002)"), "{}", named.stderr);
    assert!(
        named.stderr.contains("\n  next: Several live tasks have this name: give an id"),
        "{}",
        named.stderr
    );
    // Of so many ids two begin alike.
    let mut ids: Vec<String> = Vec::new();
    let start = loop {
        let id = home.submit(&[], "true");
        if ids.iter().any(|other| other[..3] == id[..3]) {
            break id[..3].to_owned();
        }
        ids.push(id);
    };
    let started = home.cli(["show", &start]);
    assert!(started.stderr.contains("\n  next: Give more characters of the id"), "{}", started.stderr);
}

#[test]
fn a_home_that_is_not_there_is_not_made_to_look_into_it() {
    let home = super::home();
    for words in
        [&["show", "x"][..], &["output", "x"], &["stop", "x"], &["forget", "x"], &["input", "x", "y"]]
    {
        let ran = home.cli(words);
        assert_eq!(ran.code, 4, "{words:?}: {}", ran.stderr);
        assert!(ran.stderr.starts_with("homing: there is no home at /"), "{words:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("(HM0001)\n  next: "), "{}", ran.stderr);
    }
    assert_eq!(home.cli(["wait", "x"]).code, 125);
    assert_eq!(
        home.cli(["list", "--json"]).ok().json(),
        serde_json::json!({ "items": [], "next_cursor": null })
    );
    assert!(home.cli(["list"]).ok().stderr.contains("there is no home at /"));
    assert!(!home.path().exists());
}

#[test]
fn with_json_a_problem_is_one_object_on_stderr() {
    let home = super::home();
    let _ = home.submit(&[], "true");
    for (words, code, says) in [
        (&["show", "--json", "nope"][..], "HM0001", "nope"),
        (&["list", "--json", "--limmit", "3"], "HM0003", "--limmit"),
        (&["forget", "--json", "nope"], "HM0001", "nope"),
    ] {
        let ran = home.cli(words);
        assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
        let problem: serde_json::Value = serde_json::from_str(&ran.stderr).unwrap();
        assert_eq!(problem["code"], code, "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains(says), "{problem}");
        assert!(!problem["advice"].as_str().unwrap().is_empty(), "{problem}");
    }
}

#[test]
fn nothing_typed_is_answered_in_the_words_of_http() {
    let home = super::home();
    let live = home.submit(&["--name", "live"], "exec sleep 1000");
    let (long, longer) = ("x".repeat(5_000), "x".repeat(100_000));
    let lines: &[&[&str]] = &[
        &["show", ""],
        &["show", &longer],
        &["show", "a/b?c=d"],
        &["output", ""],
        &["output", &live, "--offset", "-1"],
        &["output", &live, "--tail", "x"],
        &["wait", ""],
        &["wait", "live", "--timeout", "soon"],
        &["stop", ""],
        &["stop", "live", "--signal", "NOPE"],
        &["stop", "live", "--signal", "99"],
        &["input", "", "x"],
        &["input", "live", "x"],
        &["forget", ""],
        &["forget", "live"],
        &["list", "--owner", ""],
        &["list", "--owner", &longer],
        &["list", "--label", "x"],
        &["list", "--label", "=x"],
        &["list", "--label", "a=b", "--label", "a=c"],
        &["list", "--limit", "0"],
        &["events", "--after", "x"],
        &["events", "--after", "-1"],
        &["events", "--owner", ""],
        &["run", "-c", ""],
        &["run", "--", ""],
        &["run", "--owner", "", "--", "true"],
        &["run", "--owner", &long, "--", "true"],
        &["run", "--name", "a\nb", "--", "true"],
        &["run", "--key", "", "--", "true"],
        &["run", "--label", "=x", "--", "true"],
        &["run", "--label", "x", "--", "true"],
        &["run", "--env", "=x", "--", "true"],
        &["run", "--stdin", "", "--", "true"],
        &["run", "--timeout", "0s", "--", "true"],
        &["run", "--max-output", "1", "--", "true"],
        &["run", "--secret", "A=@/no/such/file", "--", "true"],
        &["run", "--secret", "HOMING_X=y", "--", "true"],
    ];
    for line in lines {
        let shown: Vec<_> = line.iter().map(|word| word.get(..20).unwrap_or(word)).collect();
        let told = home.cli(*line);
        assert_ne!(told.code, 0, "{shown:?}");
        assert!(
            told.stderr.contains("(HM0") && told.stderr.contains("\n  next: "),
            "{shown:?}: {}",
            told.stderr
        );
        for word in FOREIGN {
            assert!(!told.stderr.contains(word), "{shown:?} is told with `{word}`: {}", told.stderr);
        }
    }
}

#[test]
fn an_owner_of_the_environment_that_cannot_be_one_is_named_as_such() {
    let home = super::home();
    let _ = home.daemon_pid();
    let told = |owner: &str, words: &[&str]| {
        let output = home.command().env("HOMING_OWNER", owner).args(words).output().unwrap();
        assert!(!output.status.success(), "{words:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let text = told("a\nb", &["run", "--", "true"]);
    assert!(text.contains("(HOMING_OWNER) contains control characters (HM0003)"), "{text}");
    let text = told(&"x".repeat(100_000), &["list"]);
    assert!(text.contains("too long") && text.contains("HOMING_OWNER"), "{text}");
}

#[test]
fn a_long_program_name_is_cut_in_the_warning() {
    let home = super::home();
    let ran = home.cli(["run", "--", &"x".repeat(100_000)]);
    assert!(ran.stderr.contains("it will probably not start: `xxx"), "{}", ran.stderr);
    assert!(ran.stderr.len() < 1_000, "{} bytes", ran.stderr.len());
    let line = home.cli(["run", &"echo x; ".repeat(10_000)]);
    assert!(line.code == 2 && line.stderr.contains("(HM0028)"), "{}", line.stderr);
    assert!(line.stderr.len() < 1_000, "{} bytes", line.stderr.len());
}

#[test]
fn a_secret_too_short_to_be_masked_is_named() {
    let home = super::home();
    let ran = home.cli(["run", "--secret", "PIN=123", "--secret", "KEY=1234", "--", "true"]).ok();
    assert!(ran.stderr.contains("the secret `PIN` has fewer than 4 bytes"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("KEY"), "{}", ran.stderr);
}
