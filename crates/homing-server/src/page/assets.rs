//! The files of the page: name, kind, bytes, etag; and the release of them all.
//!
//! The page names its files below `/page/RELEASE/`, where RELEASE is the digest of all of them: what a browser has of a release it never asks for
//! again, and another release is another address. Modules name each other by relative addresses, so none of them has to know. Below `/page/`
//! itself, and below a release that is not this one (a page that was open while the daemon was replaced), the same files are asked for again each time.

use std::sync::LazyLock;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, Request};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderValue, IF_NONE_MATCH};
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use homing_model::digest::sha256;

use crate::http::refusal::no_method;

struct Asset {
    path: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
}

macro_rules! assets {
    ($( $path:literal, $kind:ident, $file:literal; )+) => {
        /// Every file; the page itself first.
        static ASSETS: &[Asset] = &[ $( Asset { path: $path, kind: $kind, bytes: include_bytes!($file) }, )+ ];
    };
}

/// Kept by the browser, and asked for again each time: a new release is seen at once.
const AGAIN: &str = "no-cache";
/// Kept by the browser, and not asked for again: its address is that of its bytes.
const KEPT: &str = "private, max-age=31536000, immutable";

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

assets! {
    "/", HTML, "web/index.html";
    "/page/style.css", CSS, "web/style.css";
    "/page/icon.svg", SVG, "web/icon.svg";
    "/page/app.js", SCRIPT, "web/app.js";
    "/page/api.js", SCRIPT, "web/api.js";
    "/page/actions.js", SCRIPT, "web/actions.js";
    "/page/address.js", SCRIPT, "web/address.js";
    "/page/ansi.js", SCRIPT, "web/ansi.js";
    "/page/chunks.js", SCRIPT, "web/chunks.js";
    "/page/deliveries.js", SCRIPT, "web/deliveries.js";
    "/page/detail.js", SCRIPT, "web/detail.js";
    "/page/dom.js", SCRIPT, "web/dom.js";
    "/page/filters.js", SCRIPT, "web/filters.js";
    "/page/format.js", SCRIPT, "web/format.js";
    "/page/inbox.js", SCRIPT, "web/inbox.js";
    "/page/keys.js", SCRIPT, "web/keys.js";
    "/page/list.js", SCRIPT, "web/list.js";
    "/page/live.js", SCRIPT, "web/live.js";
    "/page/output.js", SCRIPT, "web/output.js";
    "/page/search.js", SCRIPT, "web/search.js";
    "/page/submit.js", SCRIPT, "web/submit.js";
    "/page/tasks.js", SCRIPT, "web/tasks.js";
    "/page/timeline.js", SCRIPT, "web/timeline.js";
    "/page/views.js", SCRIPT, "web/views.js";
}

/// The addresses of the page, for whoever checks that each is guarded.
pub fn paths() -> impl Iterator<Item = &'static str> {
    ASSETS.iter().map(|asset| asset.path)
}

/// What of the files is reckoned once.
struct Release {
    /// The digest of all of them.
    name: String,
    /// The page itself, which names its files by the release.
    page: Bytes,
    /// In the order of the table.
    etags: Vec<Option<HeaderValue>>,
}

static RELEASE: LazyLock<Release> = LazyLock::new(|| {
    let digests: Vec<String> = ASSETS.iter().map(|asset| sha256(asset.bytes)).collect();
    let name = sha256(digests.concat().as_bytes())[..16].to_owned();
    let page = String::from_utf8_lossy(ASSETS[0].bytes).replace("\"/page/", &format!("\"/page/{name}/"));
    let etags = digests.iter().enumerate().map(|(number, digest)| {
        let digest = if number == 0 { &name } else { digest };
        HeaderValue::try_from(format!("\"{}\"", &digest[..16])).ok()
    });
    Release { etags: etags.collect(), page: page.into(), name }
});

/// The page beside what there is.
pub(crate) fn mount(mut router: Router) -> Router {
    for (number, asset) in ASSETS.iter().enumerate() {
        let not_so = |method: Method, uri: Uri| async move { no_method(method.as_str(), uri.path()) };
        let served = get(move |request: Request| async move { serve(number, &request, "") });
        router = router.route(asset.path, served.fallback(not_so));
        let Some(file) = asset.path.strip_prefix("/page/") else { continue };
        let served = get(move |Path(release): Path<String>, request: Request| async move {
            serve(number, &request, &release)
        });
        router = router.route(&format!("/page/{{release}}/{file}"), served.fallback(not_so));
    }
    router
}

/// A file, asked for by the address of a release.
fn serve(number: usize, request: &Request, release: &str) -> Response {
    let (asset, etag) = (&ASSETS[number], RELEASE.etags.get(number).cloned().flatten());
    let asked = request.headers().get(IF_NONE_MATCH);
    let mut response = if asked.is_some() && asked == etag.as_ref() {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        let bytes = if number == 0 { RELEASE.page.clone() } else { Bytes::from_static(asset.bytes) };
        ([(CONTENT_TYPE, HeaderValue::from_static(asset.kind))], bytes).into_response()
    };
    let kept = if release == RELEASE.name { KEPT } else { AGAIN };
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static(kept));
    if let Some(etag) = etag {
        response.headers_mut().insert(ETAG, etag);
    }
    response
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// All that a browser loads.
    const BUDGET: usize = 150_000;

    fn text(asset: &Asset) -> &'static str {
        std::str::from_utf8(asset.bytes).unwrap()
    }

    #[test]
    fn all_files_together_stay_within_their_budget() {
        let size: usize = ASSETS.iter().map(|asset| asset.bytes.len()).sum();
        assert!(size <= BUDGET, "{size} bytes");
    }

    #[test]
    fn the_page_shows_what_terminals_show() {
        let escape = |c: char| match u32::from(c) {
            code if code > 0xffff => format!("\\u{{{code:x}}}"),
            code => format!("\\u{code:04x}"),
        };
        let table: String = homing_model::unseen::RANGES
            .iter()
            .map(|(first, last)| match first == last {
                true => escape(*first),
                false => format!("{}-{}", escape(*first), escape(*last)),
            })
            .collect();
        let expected = format!("UNSEEN = /[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f{table}]/gu;");
        let script = include_str!("web/format.js");
        assert!(script.contains(&expected), "the page's list must be {expected}");
    }

    #[test]
    fn every_file_of_the_folder_is_served_and_what_a_file_names_is_there() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/page/web");
        let mut files: Vec<_> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        let mut served: Vec<_> = ASSETS
            .iter()
            .map(|asset| asset.path.strip_prefix("/page/").unwrap_or("index.html").to_owned())
            .collect();
        files.sort_unstable();
        served.sort_unstable();
        assert_eq!(files, served);
        for asset in ASSETS {
            let named =
                text(asset).match_indices("from \"./").map(|(at, from)| &text(asset)[at + from.len()..]);
            for name in named.map(|rest| rest.split('"').next().unwrap()) {
                assert!(served.iter().any(|file| file == name), "{} imports {name}", asset.path);
            }
        }
        // The page names every script, so that none waits for another.
        let page = text(&ASSETS[0]);
        for asset in ASSETS.iter().filter(|asset| asset.kind == SCRIPT) {
            assert!(page.contains(&format!("\"{}\"", asset.path)), "{} is not named", asset.path);
        }
    }

    #[test]
    fn p11_no_file_makes_markup_of_text_or_runs_code_that_is_not_a_file() {
        let forbidden = [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "createContextualFragment",
            "DOMParser",
            "setHTML",
            "srcdoc",
            "eval(",
            "new Function",
            "javascript:",
            "http://",
            "https://",
            "style=\"",
            " onclick=",
        ];
        for asset in ASSETS {
            let allowed = text(asset).replace("http://www.w3.org/2000/svg", "");
            for word in forbidden {
                assert!(!allowed.contains(word), "{} has `{word}`", asset.path);
            }
        }
        let page = text(&ASSETS[0]);
        assert!(
            !page.contains("<style")
                && page.matches("<script").count() == page.matches("<script type=\"module\" src=").count()
        );
    }

    fn ask(number: usize, release: &str, tag: Option<&HeaderValue>) -> Response {
        let mut request = Request::new(axum::body::Body::empty());
        if let Some(tag) = tag {
            request.headers_mut().insert(IF_NONE_MATCH, tag.clone());
        }
        serve(number, &request, release)
    }

    #[tokio::test]
    async fn a_file_is_sent_once_and_then_only_confirmed() {
        let first = ask(0, "", None);
        assert_eq!(
            (first.status(), &first.headers()[CONTENT_TYPE]),
            (StatusCode::OK, &HeaderValue::from_static(HTML))
        );
        let again = ask(0, "", Some(&first.headers()[ETAG]));
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
        assert_eq!(ask(0, "", Some(&HeaderValue::from_static("\"other\""))).status(), StatusCode::OK);
    }

    #[tokio::test]
    async fn the_page_names_its_files_by_their_release_and_only_of_that_one_they_are_kept() {
        let release = RELEASE.name.as_str();
        let page = axum::body::to_bytes(ask(0, "", None).into_body(), BUDGET).await.unwrap();
        let page = std::str::from_utf8(&page).unwrap();
        for (number, asset) in ASSETS.iter().enumerate().skip(1) {
            let file = asset.path.strip_prefix("/page/").unwrap();
            assert!(page.contains(&format!("\"/page/{release}/{file}\"")), "{file}");
            assert!(!page.contains(&format!("\"{}\"", asset.path)), "{file}");
            assert_eq!(ask(number, release, None).headers()[CACHE_CONTROL], KEPT);
            for other in ["", "0123456789abcdef"] {
                assert_eq!(ask(number, other, None).headers()[CACHE_CONTROL], AGAIN);
            }
        }
        assert_eq!(ask(0, "", None).headers()[CACHE_CONTROL], AGAIN);
    }
}
