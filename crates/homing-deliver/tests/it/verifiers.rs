//! What receivers really run: the published verifiers for Python and for Node, against deliveries of ours.
//!
//! `cargo xtask test` installs both. Where they are missing the tests say so and skip, except under CI, where they fail.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use homing_deliver::{Secret, deliver};
use homing_testkit::{Receiver, Request, Script};
use serde_json::{Value, json};

use crate::support::{OTHER, SECRET, client, hook, message, now};

/// Reads lines of `{secret, headers, body}`; answers each with `ok`, or with `no` and the reason.
const PYTHON: &str = r#"
import json, sys
from standardwebhooks.webhooks import Webhook
for line in sys.stdin:
    case = json.loads(line)
    try:
        Webhook(case["secret"]).verify(case["body"], case["headers"])
        print("ok")
    except Exception as error:
        print("no", type(error).__name__, error)
"#;

const NODE: &str = r#"
const { Webhook } = require("standardwebhooks");
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { secret, headers, body } = JSON.parse(line);
  try {
    new Webhook(secret).verify(body, headers);
    console.log("ok");
  } catch (error) {
    console.log("no", error.name, error.message);
  }
});
"#;

/// Where `cargo xtask test` puts them: beside what cargo builds.
fn installed(what: &str) -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let path = target.join("verifiers").join(what);
    if path.exists() {
        return Some(path);
    }
    let ci = std::env::vars_os().any(|(name, value)| name == "CI" && !value.is_empty());
    assert!(!ci, "{} is not there; `cargo xtask test` installs it", path.display());
    println!("skipped: {} is not there; `cargo xtask test` installs it", path.display());
    None
}

/// What a verifier says to each case.
fn verdicts(mut verifier: Command, cases: &[Value]) -> Vec<String> {
    let mut child = verifier.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    for case in cases {
        writeln!(input, "{case}").unwrap();
    }
    drop(input);
    let output = child.wait_with_output().unwrap();
    let verdicts: Vec<_> = String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect();
    assert_eq!(verdicts.len(), cases.len(), "{verdicts:?}");
    verdicts
}

fn case(secret: &str, request: &Request) -> Value {
    let headers = ["webhook-id", "webhook-timestamp", "webhook-signature"];
    let headers: serde_json::Map<_, _> =
        headers.iter().map(|name| ((*name).to_owned(), request.header(name).into())).collect();
    json!({ "secret": secret, "headers": headers, "body": String::from_utf8(request.body.clone()).unwrap() })
}

/// Deliveries signed by one secret and by two, first and repeated; then the same with something changed.
async fn accepts_ours_and_nothing_else(verifier: Command) {
    let receiver = Receiver::new([Script::status(500), Script::status(200)]);
    let secrets: Vec<_> = [SECRET, OTHER].iter().map(|text| Secret::parse(text).unwrap()).collect();
    for signing in [&secrets[..1], &secrets[..1], &secrets[..]] {
        deliver(&client(), &hook(&receiver), signing, &message(), now()).await;
    }
    let requests = receiver.requests();
    let mut good: Vec<_> = requests.iter().map(|request| case(SECRET, request)).collect();
    good.push(case(OTHER, &requests[2]));
    let mut bad = vec![case(OTHER, &requests[0])];
    let mut changed = requests[0].clone();
    let last = changed.body.iter().rposition(u8::is_ascii_alphabetic).unwrap();
    changed.body[last] ^= 1;
    bad.push(case(SECRET, &changed));
    for (name, value) in
        [("webhook-id", "ntc_2"), ("webhook-timestamp", "1"), ("webhook-signature", "v1,AAAA")]
    {
        let mut changed = case(SECRET, &requests[0]);
        changed["headers"][name] = value.into();
        bad.push(changed);
    }
    let verdicts = verdicts(verifier, &[good.clone(), bad].concat());
    for (index, verdict) in verdicts.iter().enumerate() {
        let expected = if index < good.len() { "ok" } else { "no WebhookVerificationError" };
        assert!(verdict.starts_with(expected), "case {index}: {verdict}");
    }
}

#[tokio::test]
async fn the_python_verifier_accepts_ours_and_nothing_else() {
    if let Some(python) = installed("python/bin/python") {
        let mut verifier = Command::new(python);
        verifier.args(["-c", PYTHON]);
        accepts_ours_and_nothing_else(verifier).await;
    }
}

#[tokio::test]
async fn the_node_verifier_accepts_ours_and_nothing_else() {
    if let Some(modules) = installed("node/node_modules") {
        let mut verifier = Command::new("node");
        verifier.args(["-e", NODE]).env("NODE_PATH", modules);
        accepts_ours_and_nothing_else(verifier).await;
    }
}
