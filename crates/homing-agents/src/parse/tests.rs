//! Recorded streams (of Claude Code 2.1.325, Codex 0.166.0, opencode 1.18.33 and Gemini CLI 0.61.0), whole, cut and spoilt.

use homing_model::AgentName;
use homing_model::agent::{Driver, Tokens};
use proptest::prelude::*;

use super::*;

const CLAUDE: &str = include_str!("../claude/streams/success.jsonl");
const CODEX: &str = include_str!("../codex/streams/success.jsonl");
const OPENCODE: &str = include_str!("../opencode/streams/success.jsonl");
const GEMINI: &str = include_str!("../gemini/streams/success.jsonl");
const HELLO: &str = "The tool said hello.";

fn driver(agent: &str) -> Driver {
    Driver::Agent(AgentName::new(agent).unwrap())
}

fn listen(driver: &Driver, stream: &[u8]) -> Said {
    let mut listening = Listening::new(driver);
    listening.stdout(stream);
    listening.finish()
}

fn lines_with(answer: &str, error: Option<&str>) -> Driver {
    Driver::Lines { answer: answer.into(), error: error.map(str::to_owned), session: Some("/session".into()) }
}

fn answer(said: &Said) -> Option<&str> {
    said.answer.as_ref().map(|answer| answer.text.as_str())
}

#[test]
fn every_agent_that_succeeds_gives_its_last_message_and_what_it_took() {
    let claude = listen(&driver("claude"), CLAUDE.as_bytes());
    assert_eq!(claude.heard.session_id.as_deref(), Some("86cdf13b-9232-4361-8416-ce03ab341f08"));
    assert_eq!(claude.heard.tokens, Some(Tokens { input: 20, cached: 0, output: 10 }));
    assert!(claude.heard.cost_usd.is_some_and(|cost| (cost - 0.000_28).abs() < 1e-9));
    let codex = listen(&driver("codex"), CODEX.as_bytes());
    assert_eq!(codex.heard.session_id.as_deref(), Some("01a1e0e0-0f01-7141-ae73-04e100a4fc9a"));
    assert_eq!((codex.heard.turns, codex.heard.cost_usd), (Some(1), None));
    let opencode = listen(&driver("opencode"), OPENCODE.as_bytes());
    assert_eq!(opencode.heard.session_id.as_deref(), Some("ses_e1f1effacffedhjylqg0r1jyoh"));
    assert_eq!(opencode.heard.tokens, Some(Tokens { input: 20, cached: 0, output: 10 }), "of both steps");
    let gemini = listen(&driver("gemini"), GEMINI.as_bytes());
    assert_eq!(gemini.heard.tokens, Some(Tokens { input: 70, cached: 0, output: 35 }));
    assert_eq!((claude.heard.turns, opencode.heard.turns, gemini.heard.turns), (Some(2), Some(2), Some(1)));
    for said in [claude, codex, opencode, gemini] {
        assert_eq!((answer(&said), said.error.as_deref()), (Some(HELLO), None));
    }
}

#[test]
fn every_agent_that_fails_says_why() {
    let why = |driver: &Driver, stream: &str| {
        let said = listen(driver, stream.as_bytes());
        (said.error.unwrap_or_default(), said.heard.session_id.is_some())
    };
    let unreachable = why(&driver("claude"), include_str!("../claude/streams/unreachable.jsonl"));
    assert!(unreachable.0.starts_with("API Error: Connection refused") && unreachable.1, "{unreachable:?}");
    let turns = why(&driver("claude"), include_str!("../claude/streams/max-turns.jsonl")).0;
    assert!(turns.contains("maximum number of turns"), "{turns}");
    let unknown = why(&driver("claude"), include_str!("../claude/streams/unknown-session.jsonl")).0;
    assert!(unknown.starts_with("No conversation found with session ID"), "{unknown}");
    assert_eq!(
        why(&driver("codex"), include_str!("../codex/streams/error.jsonl")),
        ("mock says no".into(), true)
    );
    assert_eq!(
        why(&driver("opencode"), include_str!("../opencode/streams/error.jsonl")),
        ("mock says no".into(), true)
    );
    assert_eq!(
        why(&driver("gemini"), include_str!("../gemini/streams/error.jsonl")),
        ("mock says no".into(), true)
    );
}

#[test]
fn an_error_is_no_answer_and_what_goes_on_after_it_takes_it_back() {
    let unreachable = listen(&driver("claude"), include_bytes!("../claude/streams/unreachable.jsonl"));
    assert_eq!(answer(&unreachable), None, "Claude Code's own words are no answer");
    let twice = [include_str!("../claude/streams/unreachable.jsonl"), CLAUDE].concat();
    let said = listen(&driver("claude"), twice.as_bytes());
    assert_eq!((answer(&said), said.error.as_deref()), (Some(HELLO), None), "the last result counts");
    let said = listen(
        &driver("claude"),
        [CLAUDE, include_str!("../claude/streams/max-turns.jsonl")].concat().as_bytes(),
    );
    assert!(said.error.is_some());
    let retried = "{\"type\":\"error\",\"message\":\"Reconnecting... 1/5\"}\n".to_owned() + CODEX;
    assert_eq!(listen(&driver("codex"), retried.as_bytes()).error, None);
    let broken = "{\"type\":\"turn.started\"}\n{\"type\":\"error\",\"message\":\"gone\"}\n";
    assert_eq!(
        listen(&driver("codex"), broken.as_bytes()).error.as_deref(),
        Some("gone"),
        "nothing came of it"
    );
}

#[test]
fn sub_agents_within_claude_give_no_answer_but_show_what_they_are_at() {
    let within = |text: &str| {
        format!(
            "{{\"type\":\"assistant\",\"parent_tool_use_id\":\"toolu_1\",\"message\":{{\"id\":\"m9\",\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}]}}}}\n"
        )
    };
    let half: String = CLAUDE.lines().take(4).map(|line| format!("{line}\n")).collect();
    let said = listen(&driver("claude"), (half + &within("I looked.")).as_bytes());
    assert_eq!((answer(&said), said.heard.doing.as_deref()), (Some(HELLO), Some("I looked.")));
    assert_eq!(said.heard.turns, Some(2));
}

#[test]
fn a_message_in_several_parts_is_one() {
    let part = |id: &str, text: &str| {
        format!(
            "{{\"type\":\"assistant\",\"message\":{{\"id\":\"{id}\",\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}]}}}}\n"
        )
    };
    let stream = part("m1", "old") + &part("m2", "one") + &part("m2", "two");
    let said = listen(&driver("claude"), stream.as_bytes());
    assert_eq!((answer(&said), said.heard.turns), (Some("one\ntwo"), Some(2)));
}

#[test]
fn a_message_of_gemini_that_comes_in_pieces_is_whole_and_ends_where_something_else_comes() {
    let piece = |text: &str| {
        format!("{{\"type\":\"message\",\"role\":\"assistant\",\"content\":\"{text}\",\"delta\":true}}\n")
    };
    let tool = "{\"type\":\"tool_use\",\"tool_name\":\"ls\",\"parameters\":{}}\n";
    let stream = piece("I ") + &piece("look.") + tool + &piece(" ") + &piece("It ") + &piece("is.");
    let said = listen(&driver("gemini"), stream.as_bytes());
    assert_eq!((answer(&said), said.heard.turns), (Some("It is."), Some(2)));
}

#[test]
fn tools_are_shown_by_what_they_are_about() {
    let mut listening = Listening::new(&driver("claude"));
    for line in CLAUDE.lines().take(2) {
        listening.stdout(format!("{line}\n").as_bytes());
    }
    assert_eq!(listening.said().heard.doing.as_deref(), Some("Bash: echo hello-from-tool"));
    assert_eq!(listening.said().heard.turns, Some(1));
    let mut codex = Listening::new(&driver("codex"));
    codex.stdout(CODEX.lines().take(6).map(|line| format!("{line}\n")).collect::<String>().as_bytes());
    assert!(codex.said().heard.doing.as_deref().is_some_and(|doing| doing.starts_with("/bin/bash -lc")));
}

#[test]
fn pointers_find_the_answer_of_any_command() {
    let driver = lines_with("/out/text", Some("/failed"));
    let said = |stream: &str| listen(&driver, stream.as_bytes());
    let last = said(
        "noise\n{\"session\":\"abc\",\"out\":{\"text\":\"one\"}}\n{\"out\":{\"text\":\"two\"}}\n{\"out\":1}\n",
    );
    assert_eq!((answer(&last), last.heard.session_id.as_deref()), (Some("two"), Some("abc")));
    assert_eq!(answer(&said("{\"out\":{\"text\":{\"a\":1}}}")), Some("{\"a\":1}"));
    assert_eq!(said("{\"failed\":\"no\"}").error.as_deref(), Some("no"));
    assert_eq!(said("{\"failed\":true,\"out\":{\"text\":\"why\"}}").error.as_deref(), Some("why"));
    assert_eq!(said("{\"failed\":true}").error.as_deref(), Some("the agent reported an error"));
    let taken_back = said("{\"failed\":\"no\"}\n{\"failed\":false,\"out\":{\"text\":\"x\"}}\n");
    assert_eq!((answer(&taken_back), taken_back.error.as_deref()), (Some("x"), None));
    for odd in ["-rf", "a b", "../x", "", "a\\nb"] {
        let named = said(&format!("{{\"session\":\"{odd}\"}}"));
        assert_eq!(named.heard.session_id, None, "{odd} is no session");
    }
}

#[test]
fn stdout_is_an_answer_without_what_a_terminal_would_obey() {
    let said = listen(&Driver::Stdout, b"\x1b[31mred\x1b[0m\nand \xff blue\n\n");
    assert_eq!(answer(&said), Some("red\nand \u{fffd} blue"));
    assert_eq!(said.heard.doing.as_deref(), Some("and \u{fffd} blue"));
    assert_eq!(answer(&listen(&Driver::Stdout, b"")), None);
    let mut cut = Listening::new(&Driver::Stdout);
    cut.stdout(b"begin");
    cut.gap(7);
    cut.stdout(b"end");
    assert_eq!(answer(&cut.finish()), Some("begin\n[7 bytes were not kept]\nend"));
    let mut long = Listening::new(&Driver::Stdout);
    for _ in 0..50 {
        long.stdout(&vec![b'x'; 1 << 20]);
    }
    let said = long.finish().answer.unwrap();
    assert_eq!((said.text.len(), said.whole), (homing_model::answer::LONGEST, 50 << 20));
}

#[test]
fn a_line_of_fifty_mebibytes_hides_nothing_that_comes_after_it() {
    let mut listening = Listening::new(&driver("claude"));
    let (before, after) = CLAUDE.split_at(CLAUDE.find("{\"type\":\"user\"").unwrap());
    listening.stdout(before.as_bytes());
    listening.stdout(b"{\"type\":\"user\",\"message\":\"");
    for _ in 0..50 {
        listening.stdout(&vec![b'x'; 1 << 20]);
    }
    listening.stdout(b"\"}\n");
    listening.stdout(after.as_bytes());
    assert_eq!(answer(&listening.finish()), Some(HELLO));
    const { assert!(lines::LONGEST < 50 << 20) };
}

#[test]
fn garbage_between_the_lines_is_passed_over() {
    let noisy = |stream: &str| -> Vec<u8> {
        let garbage: &[u8] = b"npm warn \xff\xfe{\n{\"type\":\n{}\n[1]\n\"x\"\nnull\n{\"type\":7,\"item\":[]}\n{\"type\":\"later\"}\n";
        stream.lines().flat_map(|line| [line.as_bytes(), b"\n", garbage].concat()).collect()
    };
    for (driver, stream) in
        [(driver("claude"), CLAUDE), (driver("codex"), CODEX), (driver("opencode"), OPENCODE)]
    {
        let (clean, said) = (listen(&driver, stream.as_bytes()), listen(&driver, &noisy(stream)));
        assert_eq!(said, clean, "{driver:?}");
    }
}

proptest! {
    #[test]
    fn where_a_stream_is_cut_into_pieces_makes_no_difference(which in 0..4_usize, cuts: Vec<prop::sample::Index>) {
        let (driver, stream) = [
            (driver("claude"), CLAUDE), (driver("codex"), CODEX), (driver("opencode"), OPENCODE), (driver("gemini"), GEMINI),
        ][which].clone();
        let stream = stream.as_bytes();
        let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        at.extend([0, stream.len()]);
        at.sort_unstable();
        let mut listening = Listening::new(&driver);
        for pair in at.windows(2) {
            listening.stdout(&stream[pair[0]..pair[1]]);
        }
        prop_assert_eq!(listening.finish(), listen(&driver, stream));
    }

    #[test]
    fn a_stream_that_breaks_off_anywhere_gives_what_was_said_and_nothing_else(which in 0..4_usize, end: prop::sample::Index) {
        let (driver, stream) = [
            (driver("claude"), CLAUDE), (driver("codex"), CODEX), (driver("opencode"), OPENCODE), (driver("gemini"), GEMINI),
        ][which].clone();
        let said = listen(&driver, &stream.as_bytes()[..end.index(stream.len())]);
        prop_assert_eq!(said.error, None);
        let told = said.answer.map(|answer| answer.text).unwrap_or_default();
        prop_assert!(["", HELLO].contains(&told.as_str()), "{}", told);
    }

    #[test]
    fn no_line_panics(line in "\\{\"type\":\"(assistant|result|item\\.completed|text|message|error|turn\\.failed)\",\"[a-z_]{1,12}\":(null|1|\"x\"|\\[\\]|\\{\\}|true)\\}") {
        for driver in registry::names().map(driver) {
            let _ = listen(&driver, line.as_bytes());
        }
        let _ = listen(&lines_with("/type", Some("/error")), line.as_bytes());
    }
}
