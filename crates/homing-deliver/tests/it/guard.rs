//! The table of addresses, from outside: first and last of each range, the neighbours, and every way to hide one address in another.

use std::net::IpAddr;

use homing_deliver::guard::{Class, Refusal, classify, effective};
use homing_deliver::{Allow, Policy};
use proptest::prelude::*;

const TABLE: &[(Class, &[&str])] = &[
    (
        Class::Public,
        &[
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "168.63.129.15",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "191.255.255.255",
            "192.0.1.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2606:4700::1111",
            "2001:200::1",
            "2003::1",
            "2000::",
            "3ffe:ffff::1",
            "64:ff9b::1.1.1.1",
            "::ffff:1.1.1.1",
        ],
    ),
    (
        Class::Loopback,
        &["127.0.0.1", "127.0.0.0", "127.255.255.255", "::1", "::ffff:127.0.0.1", "64:ff9b::127.0.0.1"],
    ),
    (
        Class::Private,
        &[
            "10.0.0.0",
            "10.255.255.255",
            "172.16.0.0",
            "172.31.255.255",
            "192.168.0.0",
            "192.168.255.255",
            "fc00::",
            "fd00:ec2::254",
            "fdff:ffff::1",
            "fec0::1",
            "64:ff9b:1::1",
            "64:ff9b:1:ffff::10.0.0.1",
            "::ffff:10.1.2.3",
            "::ffff:c0a8:101",
            "64:ff9b::10.0.0.1",
        ],
    ),
    (Class::Shared, &["100.64.0.0", "100.127.255.255", "100.100.100.200", "::ffff:100.64.0.1"]),
    (
        Class::LinkLocal,
        &[
            "169.254.0.0",
            "169.254.169.254",
            "169.254.255.255",
            "168.63.129.16",
            "fe80::1",
            "febf::1",
            "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
        ],
    ),
    (Class::Unspecified, &["0.0.0.0", "0.255.255.255", "::", "::ffff:0.0.0.0"]),
    (Class::Multicast, &["224.0.0.0", "239.255.255.255", "255.255.255.255", "ff00::", "ff02::1"]),
    (
        Class::Documentation,
        &["192.0.2.1", "198.51.100.1", "203.0.113.1", "2001:db8::1", "3fff::1", "3fff:fff::1"],
    ),
    (Class::Benchmarking, &["198.18.0.0", "198.19.255.255", "2001:2::1"]),
    (
        Class::Tunnel,
        &["2002:7f00:1::", "2002::1", "2001::1", "2001:0:ffff::1", "::127.0.0.1", "::2", "192.88.99.1"],
    ),
    (
        Class::Reserved,
        &[
            "192.0.0.0",
            "192.0.0.192",
            "240.0.0.0",
            "255.255.255.254",
            "2001:1::1",
            "2001:20::1",
            "100::1",
            "4000::1",
            "5f00::1",
            "fe00::1",
            "1::1",
            "64:ff9c::1",
        ],
    ),
];

#[test]
fn every_range_is_known_to_its_last_address() {
    for (class, addresses) in TABLE {
        for text in *addresses {
            let address: IpAddr = text.parse().unwrap();
            assert_eq!(classify(address), *class, "{text}");
        }
    }
}

/// What is decided about an address on port 443, asked for by a name.
fn decide(policy: &Policy, address: &str, loopback: bool) -> Result<(), Refusal> {
    policy.decide("name.example", (address.parse::<IpAddr>().unwrap(), 443).into(), loopback)
}

#[test]
fn p11_only_public_addresses_are_open_by_themselves() {
    for (class, addresses) in TABLE {
        for address in *addresses {
            assert_eq!(
                decide(&Policy::default(), address, false).is_ok(),
                *class == Class::Public,
                "{address}"
            );
            let here = matches!(class, Class::Public | Class::Loopback);
            assert_eq!(decide(&Policy::default(), address, true).is_ok(), here, "{address} on this machine");
        }
    }
}

#[test]
fn an_entry_opens_what_it_names_and_nothing_else() {
    let allow = |entry: &str| Policy { allow: vec![entry.parse::<Allow>().unwrap()], own: None };
    assert_eq!(decide(&allow("10.0.0.0/8"), "10.9.8.7", false), Ok(()));
    assert_eq!(decide(&allow("10.0.0.0/8"), "::ffff:10.9.8.7", false), Ok(()));
    assert!(decide(&allow("10.0.0.0/8"), "192.168.0.1", false).is_err());
    assert_eq!(decide(&allow("name.example:443"), "192.168.0.1", false), Ok(()));
    assert!(decide(&allow("name.example:444"), "192.168.0.1", false).is_err());
    assert!(decide(&allow("other.example:443"), "192.168.0.1", false).is_err());
    assert!(
        decide(&allow("0.0.0.0/0"), "0.0.0.0", false).is_err(),
        "nobody receives there, whatever is allowed"
    );
    assert!(decide(&allow("::/0"), "ff02::1", false).is_err());
}

#[test]
fn a_refusal_says_what_to_write_where() {
    let message = decide(&Policy::default(), "192.168.7.7", false).unwrap_err().to_string();
    assert_eq!(
        message,
        "192.168.7.7 is a private address; if it is meant, add \"192.168.7.7/32\" or \"name.example:443\" to `allow` \
         under [webhook] in config.toml"
    );
    let allow = vec!["192.168.7.7/32".parse().unwrap()];
    assert_eq!(decide(&Policy { allow, own: None }, "192.168.7.7", false), Ok(()), "the advice works");
}

#[test]
fn our_own_listener_is_closed_even_to_an_entry() {
    let policy = |own: &str| Policy {
        allow: vec!["0.0.0.0/0".parse().unwrap(), "::/0".parse().unwrap()],
        own: Some(own.parse().unwrap()),
    };
    for address in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "0.0.0.0"] {
        assert!(matches!(decide(&policy("127.0.0.1:443"), address, true), Err(Refusal::Own(_))), "{address}");
    }
    assert_eq!(decide(&policy("127.0.0.1:444"), "127.0.0.1", true), Ok(()), "another port");
    assert_eq!(decide(&policy("127.0.0.1:443"), "10.0.0.1", false), Ok(()), "another machine");
    assert!(decide(&policy("0.0.0.0:443"), "10.0.0.1", false).is_err(), "perhaps an address of this machine");
}

proptest! {
    #[test]
    fn every_address_has_a_class_and_a_mapped_one_has_that_of_what_it_carries(bits: u32, wide: u128) {
        let v4 = std::net::Ipv4Addr::from(bits);
        let class = classify(v4.into());
        prop_assert_eq!(classify(v4.to_ipv6_mapped().into()), class);
        prop_assert_eq!(effective(v4.to_ipv6_mapped().into()), IpAddr::V4(v4));
        let _ = classify(std::net::Ipv6Addr::from(wide).into());
    }

    /// The standard library's own, coarser knowledge never contradicts the table.
    #[test]
    fn what_the_standard_library_knows_to_be_special_is_not_public(bits: u32) {
        let v4 = std::net::Ipv4Addr::from(bits);
        let special = v4.is_private() || v4.is_loopback() || v4.is_link_local() || v4.is_multicast()
            || v4.is_broadcast() || v4.is_documentation() || v4.is_unspecified();
        prop_assert!(!(special && classify(v4.into()) == Class::Public));
    }
}
