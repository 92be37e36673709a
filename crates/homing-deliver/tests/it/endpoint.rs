//! What may be a webhook's address, why not, and how it is shown.

use homing_deliver::{Caller, Endpoint, Policy, Refusal};
use proptest::prelude::*;

fn parse(url: &str) -> Result<Endpoint, Refusal> {
    Endpoint::parse(url, Caller::Local, &Policy::default())
}

fn open(url: &str, entries: &[&str]) -> Result<Endpoint, Refusal> {
    let allow = entries.iter().map(|entry| entry.parse().unwrap()).collect();
    Endpoint::parse(url, Caller::Network, &Policy { allow, own: None })
}

#[test]
fn public_https_and_local_http_are_taken() {
    for url in [
        "https://hooks.example.com",
        "https://hooks.example.com/a/b?c=d",
        "HTTPS://Hooks.Example.COM:8443/",
        "https://1.1.1.1/",
        "https://[2606:4700::1111]/x",
        "https://xn--bcher-kva.example/",
        "https://a_b.example/",
        "http://127.0.0.1:8080/hook",
        "http://localhost:8080",
        "http://app.localhost:3000/",
        "http://[::1]:9/",
        "https://127.0.0.1:8443/",
        "http://127.8.9.1:80/",
        "https://example.com./",
    ] {
        assert!(parse(url).is_ok(), "{url}: {:?}", parse(url));
    }
}

#[test]
fn p11_no_spelling_of_an_inner_address_is_taken() {
    for url in [
        "https://10.0.0.1/",
        "https://192.168.1.1:8443/",
        "https://169.254.169.254/latest/meta-data/",
        "https://[fe80::1]/",
        "https://[fd00::1]/",
        "https://[::ffff:10.0.0.1]/",
        "https://[::ffff:a9fe:a9fe]/",
        "https://[64:ff9b::10.0.0.1]/",
        "https://[2002:a00:1::]/",
        "https://0.0.0.0/",
        "https://[::]/",
        "https://100.64.0.1/",
        "https://224.0.0.1/",
        "https://255.255.255.255/",
        "https://192.0.2.1/",
        "https://198.18.0.1/",
        // Spellings that some resolvers read as addresses.
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0x7f.1/",
        "http://127.1/",
        "http://0177.0.0.1/",
        "http://127.0.0.1.0x1/",
        "https://10.1/",
        "https://167772161/",
        "https://012.0.0.1/",
        "https://10.0.0.1./",
        "https://example.123/",
        "https://[fe80::1%25eth0]/",
        "https://%31%30.0.0.1/",
        "https://１０.0.0.1/",
    ] {
        assert!(parse(url).is_err(), "{url}");
    }
}

#[test]
fn malformed_ones_are_refused_and_say_why() {
    let message = |url: &str| parse(url).unwrap_err().to_string();
    assert!(message("ftp://example.com/").contains("not ftp"), "{}", message("ftp://example.com/"));
    assert!(message("https://user:canary@example.com/").contains("user or password"));
    assert!(!message("https://user:canary@example.com/?canary").contains("canary"));
    assert!(message("https://example.com/#part").contains("fragment"));
    assert!(message("http://example.com/").contains("https://example.com"));
    assert!(message(&format!("https://example.com/{}", "a".repeat(5_000))).contains("longer"));
    for url in [
        "",
        "example.com",
        "/path",
        "https://",
        "https:///x",
        "https://a b/",
        "https://a/\n",
        "https://example.com:0/",
        "https://example.com:99999/",
        "https://example.com:x/",
        "https://exa mple.com",
        "https://a..b/",
        "https://bücher.example/",
        "https://a/ü",
        "https://.example/",
        "https:example.com",
        "//example.com/x",
    ] {
        assert!(parse(url).is_err(), "{url:?}");
    }
}

#[test]
fn loopback_is_for_local_callers_and_for_entries() {
    let network = |url: &str| Endpoint::parse(url, Caller::Network, &Policy::default());
    for url in
        ["http://127.0.0.1:8080/", "http://localhost:8080/", "https://[::1]/", "https://app.localhost/"]
    {
        assert!(parse(url).is_ok() && network(url).is_err(), "{url}");
    }
    assert!(open("http://127.0.0.1:8080/", &["127.0.0.1:8080"]).is_ok());
    assert!(open("http://127.0.0.1:8081/", &["127.0.0.1:8080"]).is_err());
    assert!(open("http://localhost:8080/", &["localhost:8080"]).is_ok());
}

#[test]
fn http_beyond_this_machine_needs_an_entry() {
    assert!(open("http://10.0.0.1:8080/", &["10.0.0.0/8"]).is_ok());
    assert!(open("http://nas.lan:8080/", &["nas.lan:8080"]).is_ok());
    assert!(matches!(open("http://nas.lan:8081/", &["nas.lan:8080"]), Err(Refusal::Unencrypted { .. })));
    assert!(
        matches!(open("http://nas.lan:8080/", &["10.0.0.0/8"]), Err(Refusal::Unencrypted { .. })),
        "it may be anywhere"
    );
}

#[test]
fn an_endpoint_that_is_closed_later_is_refused_later() {
    let endpoint = open("https://10.0.0.1/", &["10.0.0.0/8"]).unwrap();
    assert!(endpoint.check(&Policy::default()).is_err());
}

#[test]
fn what_is_shown_has_no_query_and_no_token() {
    let shown = |url: &str| parse(url).unwrap().to_string();
    assert_eq!(shown("https://example.com/hook?token=canary"), "https://example.com/hook?…");
    assert_eq!(shown("https://example.com:443"), "https://example.com/");
    assert_eq!(shown("https://example.com:8443/a/b/"), "https://example.com:8443/a/b/");
    assert_eq!(
        shown("https://hooks.slack.com/services/T000/B000/canarycanarycanary"),
        "https://hooks.slack.com/services/T000/B000/…"
    );
    let debug = format!("{:?}", parse("https://example.com/?token=canary").unwrap());
    assert!(!debug.contains("canary"), "{debug}");
}

proptest! {
    #[test]
    fn no_text_panics(text in ".*", host in "[a-z0-9.:\\[\\]%@x-]{0,24}", rest in "[ -~]{0,24}") {
        let _ = parse(&text);
        for scheme in ["http", "https"] {
            if let Ok(endpoint) = parse(&format!("{scheme}://{host}/{rest}")) {
                let _ = endpoint.to_string();
            }
        }
    }
}
