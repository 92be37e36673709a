//! How a browser comes in on the loopback listener: by a code that somebody on the Unix socket asked for, and from then on by a cookie. Keeps P11.
//!
//! # Theory of operation
//!
//! ```text
//! homing web ──POST /v1/page──► a code, in memory, for a minute ([`Codes`])
//! browser    ──GET /signin?code=…──► the code is spent; a cookie, and the way to `/`
//! browser    ──any request, with the cookie──► [`Seal`] judges it
//! ```
//!
//! A code works once, whatever comes of it. The cookie is no entry in a table: it says when it was given and is sealed with the home's token, so
//! it holds through restarts of the daemon, and another token (`homing token rotate`) ends it.
//! The browser is to keep it in memory only (a session cookie). The home has only digests of the
//! cookies that were given ([`GivenCookies`]).
//!
//! A browser sends a cookie to every port of a host, and a code stands in the arguments of the program that opens it: other users of this machine may come
//! to see either. So both are taken only from a connection whose other end belongs to the user who runs the daemon, as the kernel says ([`neighbour`]).
//!
//! Which process calls, and whether it may, is judged for every proof alike ([`Caller`]); only the
//! process that spent a code may be confined when it shows the cookie that it got: a code is made
//! for callers that are not.
//!
//! What can crash where: a daemon that ends takes the codes with it; `homing web` makes another.

mod caller;
mod codes;
mod given;
pub(crate) mod neighbour;
mod seal;

pub(crate) use caller::{Caller, receiver};
pub(crate) use codes::{Codes, VALID};
pub(crate) use given::GivenCookies;
pub(crate) use seal::Seal;

/// Where a code is spent.
pub(crate) const PATH: &str = "/signin";

/// The code in the query of an address, if that is all there is.
pub(crate) fn code(query: Option<&str>) -> Option<&str> {
    query?.strip_prefix("code=").filter(|code| code.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

/// The name of the cookie: browsers do not tell ports apart, and two homes have two.
pub(crate) fn cookie_name(port: u16) -> String {
    format!("homing-{port}")
}

/// The value of the cookie of this name. One that is there twice counts for nothing: two readers might take two different things from it.
pub(crate) fn cookie<'a>(header: &'a str, name: &str) -> Option<&'a str> {
    let mut found = header
        .split(';')
        .filter_map(|pair| pair.trim().split_once('='))
        .filter_map(|(key, value)| (key == name).then_some(value));
    found.next().filter(|_| found.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_the_whole_query_or_there_is_none() {
        assert_eq!(code(Some("code=a1")), Some("a1"));
        for query in [None, Some(""), Some("kode=a1"), Some("code=a1&b=c"), Some("code=a%31")] {
            assert_eq!(code(query), None, "{query:?}");
        }
    }

    #[test]
    fn a_cookie_is_found_among_others_by_its_whole_name_and_only_if_it_is_there_once() {
        assert_eq!(cookie("a=b; homing-80=x.y; homing-8080=z", "homing-80"), Some("x.y"));
        assert_eq!(cookie("homing-8080=z", "homing-80"), None);
        assert_eq!(cookie("homing-80=x; homing-80=y", "homing-80"), None);
        assert_eq!(cookie("", "homing-80"), None);
    }
}
