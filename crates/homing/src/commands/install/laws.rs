//! What holds for every file, however it is written.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::edit::{Block, Edit, Members, Whose};
use super::jsonc;

/// What may stand between two things in a file.
const BETWEEN: [&str; 10] =
    ["", " ", "\n", "\n  ", "\n\t\t", " // , } ]\n", "/* \" , { */", "\r\n    ", "  /* x\n */ ", "\n\n"];

/// Something between two things; answers whether a comma may follow that need not be there.
fn between(noise: &mut dyn Iterator<Item = u8>, out: &mut String) -> bool {
    let pick = usize::from(noise.next().unwrap_or(0));
    out.push_str(BETWEEN[pick % BETWEEN.len()]);
    pick >= 128
}

/// A value, written with whatever comes between.
fn written(value: &Value, noise: &mut dyn Iterator<Item = u8>, out: &mut String) {
    let (open, close, items): (_, _, Vec<(Option<&String>, &Value)>) = match value {
        Value::Object(members) => ('{', '}', members.iter().map(|(key, value)| (Some(key), value)).collect()),
        Value::Array(elements) => ('[', ']', elements.iter().map(|value| (None, value)).collect()),
        scalar => return out.push_str(&scalar.to_string()),
    };
    out.push(open);
    let count = items.len();
    for (index, (key, value)) in items.into_iter().enumerate() {
        between(noise, out);
        if let Some(key) = key {
            out.push_str(&Value::from(key.as_str()).to_string());
            between(noise, out);
            out.push(':');
            between(noise, out);
        }
        written(value, noise, out);
        if between(noise, out) || index + 1 < count {
            out.push(',');
        }
    }
    between(noise, out);
    out.push(close);
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[ -~äß\"\\\\\n]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            members("[a-z]{1,3}", inner).prop_map(Value::Object),
        ]
    })
}

fn members(
    key: &'static str,
    value: impl Strategy<Value = Value>,
) -> impl Strategy<Value = Map<String, Value>> {
    prop::collection::btree_map(key, value, 0..4).prop_map(|members| members.into_iter().collect())
}

/// A configuration: anything, and perhaps servers and hooks of somebody else's.
fn any_configuration() -> impl Strategy<Value = Value> {
    let group = Just(json!({ "hooks": [{ "type": "command", "command": "theirs" }] }));
    let groups = prop::collection::vec(group, 0..3).prop_map(Value::from);
    let hooks = members("Stop|Other", groups).prop_map(Value::Object);
    let servers = members("[a-z]{1,3}", any_value()).prop_map(Value::Object);
    (members("[a-z]{1,3}", any_value()), prop::option::of(servers), prop::option::of(hooks)).prop_map(
        |(mut all, servers, hooks)| {
            all.extend(servers.map(|servers| ("mcpServers".to_owned(), servers)));
            all.extend(hooks.map(|hooks| ("hooks".to_owned(), hooks)));
            Value::Object(all)
        },
    )
}

fn edit() -> Edit {
    let command =
        |event: &str| json!({ "type": "command", "command": format!("/a/homing hook claude {event}") });
    Edit::Members(Members {
        path: "settings.json".into(),
        agent: "claude",
        members: vec![(&["mcpServers", "homing"], json!({ "command": "/a/homing", "args": ["mcp"] }))],
        hooks: vec![
            ("Stop", json!({ "hooks": [command("Stop"), command("rewake")] })),
            ("SessionStart", json!({ "hooks": [command("SessionStart")] })),
        ],
    })
}

fn value(text: &str) -> Value {
    jsonc::read(text).unwrap()
}

/// Whether all of a text is in another, in its order.
fn is_within(part: &str, whole: &str) -> bool {
    let mut rest = whole.chars();
    part.chars().all(|wanted| rest.any(|found| found == wanted))
}

proptest! {
    #[test]
    fn whatever_a_file_says_stays_and_comes_back(configuration in any_configuration(), noise in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut text = String::new();
        written(&configuration, &mut noise.into_iter(), &mut text);
        prop_assert_eq!(&value(&text), &configuration, "{}", text);
        let with = edit().put_in(Some(&text), Whose::Ours).unwrap();
        let mut expected = value(&with);
        prop_assert_eq!(&expected["mcpServers"]["homing"]["command"], "/a/homing");
        prop_assert_eq!(&edit().put_in(Some(&with), Whose::Ours).unwrap(), &with, "twice is once");
        prop_assert!(is_within(text.replace([' ', '\t', '\r', '\n'], "").as_str(), &with), "{} in {}", text, with);
        // All but ours is what it was.
        expected["mcpServers"].as_object_mut().unwrap().remove("homing");
        expected["hooks"].as_object_mut().unwrap().remove("SessionStart");
        let stop = expected["hooks"]["Stop"].as_array_mut().unwrap();
        prop_assert_eq!(stop.pop().unwrap()["hooks"].as_array().unwrap().len(), 2);
        let without = edit().take_out(&with, Some(&text), Whose::Ours).unwrap();
        prop_assert_eq!(&value(&without), &configuration, "{} from {}", without, with);
        // And to the byte, but for the blanks between brackets that held nothing.
        prop_assert!(is_within(&without, &text) , "{:?} is not in {:?}", without, text);
        let squeezed = |text: &str| text.replace([' ', '\t', '\r', '\n'], "");
        prop_assert_eq!(squeezed(&without), squeezed(&text));
    }

    #[test]
    fn a_file_in_which_nothing_is_empty_comes_back_to_the_byte(noise in prop::collection::vec(any::<u8>(), 0..100)) {
        let configuration = json!({
            "a": [1, { "b": null }],
            "mcpServers": { "other": { "command": "x" } },
            "hooks": { "Stop": [{ "hooks": [{ "type": "command", "command": "theirs" }] }], "SessionStart": [{ "hooks": [] }] },
            "z": "last",
        });
        let mut text = String::new();
        written(&configuration, &mut noise.into_iter(), &mut text);
        let with = edit().put_in(Some(&text), Whose::Ours).unwrap();
        prop_assert_eq!(edit().take_out(&with, None, Whose::Ours).unwrap(), text);
    }

    #[test]
    fn a_table_is_put_in_and_taken_out_of_any_toml(lines in prop::collection::vec((0..4, "[a-z \"\\[]{0,9}"), 0..8), end in any::<bool>()) {
        let lines: Vec<_> = lines.iter().enumerate().map(|(n, (kind, words))| match kind {
            0 => format!("key{n} = {n} # {words}"),
            1 => format!("[t{n}.x] #{words}"),
            2 => format!("  # {words}"),
            _ => String::new(),
        }).collect();
        let text = lines.join("\n") + if end { "\n" } else { "" };
        let block = Block {
            path: "config.toml".into(),
            table: &["mcp_servers", "homing"],
            block: "[mcp_servers.homing]\ncommand = \"homing\"\n".to_owned(),
        };
        let edit = Edit::Block(block);
        let with = edit.put_in(Some(&text), Whose::Ours).unwrap();
        prop_assert!(with.starts_with(&text));
        prop_assert_eq!(&edit.put_in(Some(&with), Whose::Ours).unwrap(), &with);
        let table: toml::Table = toml::from_str(&with).unwrap();
        prop_assert_eq!(table["mcp_servers"]["homing"]["command"].as_str(), Some("homing"));
        let without = edit.take_out(&with, Some(&text), Whose::Ours).unwrap();
        prop_assert_eq!(without.trim_end_matches('\n'), text.trim_end_matches('\n'));
    }
}

#[test]
fn a_file_is_edited_in_its_own_manner() {
    for (before, after) in [
        ("", "{\n  \"mcp\": {\n    \"homing\": {\n      \"x\": 1\n    }\n  }\n}\n"),
        ("{}", "{\n  \"mcp\": {\n    \"homing\": {\n      \"x\": 1\n    }\n  }\n}"),
        ("{ \"a\": 1 }\n", "{ \"a\": 1, \"mcp\": {\"homing\":{\"x\":1}} }\n"),
        (
            "{\n\t\"a\": 1 // one\n}\n",
            "{\n\t\"a\": 1, // one\n\t\"mcp\": {\n\t\t\"homing\": {\n\t\t\t\"x\": 1\n\t\t}\n\t}\n}\n",
        ),
        (
            "{\r\n    \"mcp\": {\r\n        \"o\": [],\r\n    },\r\n}",
            "{\r\n    \"mcp\": {\r\n        \"o\": [],\r\n        \"homing\": {\r\n            \"x\": 1\r\n        },\r\n    },\r\n}",
        ),
        (
            "{\n  \"mcp\": {\n    // none yet\n  }\n}\n",
            "{\n  \"mcp\": {\n    // none yet\n    \"homing\": {\n      \"x\": 1\n    }\n  }\n}\n",
        ),
    ] {
        let edit = Edit::Members(Members {
            path: "x".into(),
            agent: "opencode",
            members: vec![(&["mcp", "homing"], json!({ "x": 1 }))],
            hooks: Vec::new(),
        });
        assert_eq!(edit.put_in(Some(before), Whose::Ours).as_deref(), Ok(after));
        let left = edit.take_out(after, Some(before), Whose::Ours).unwrap();
        assert!(left == before || edit.is_blank(&left), "{left:?}");
    }
}

#[test]
fn what_belongs_to_somebody_else_is_left_alone() {
    let refused = |text: &str| edit().put_in(Some(text), Whose::Ours).unwrap_err().to_string();
    assert_eq!(refused("[]"), "`the whole file` is not an object");
    assert_eq!(refused("{\"mcpServers\": []}"), "`mcpServers` is not an object");
    assert_eq!(refused("{\"hooks\": {\"Stop\": {}}}"), "`hooks.Stop` is not a list");
    assert!(refused("{\"a\": 1 \"b\": 2}").starts_with("line 1, column 9: expected comma"));
    // A group that holds a handler of ours and one of theirs keeps theirs; a command that is only called alike is no handler of ours.
    let mixed = json!({ "hooks": { "Stop": [
        { "hooks": [{ "command": "theirs" }, { "command": "'/b c/homing' hook claude Stop" }, { "command": "x/homings hook claude Stop" }] },
        { "hooks": [{ "command": "homing --home /h hook claude Stop" }] },
    ] } });
    let text = serde_json::to_string_pretty(&mixed).unwrap();
    let left = value(&edit().take_out(&text, None, Whose::Ours).unwrap());
    assert_eq!(
        left,
        json!({ "hooks": { "Stop": [{ "hooks": [{ "command": "theirs" }, { "command": "x/homings hook claude Stop" }] }] } })
    );
}
