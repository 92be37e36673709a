//! `POST /v1/tasks/{ref}/input`: bytes for the task to read.

use axum::http::header::CONTENT_TYPE;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use homing_api::{Code, InputAnswer, InputRequest};
use homing_model::nesting::TaskAccess;

use crate::http::answer::{Answer, json};
use crate::http::call::Call;
use crate::http::refusal::Refusal;
use crate::http::route::{Kind, Parameter};
use crate::routes::attach;

/// The most input at once.
const MOST: usize = homing_engine::MAX_INPUT_PIECE;

/// The largest body: the same bytes take more room in JSON.
pub(crate) const LIMIT: usize = 8 << 20;

const PIECE: Parameter = Parameter::new(
    "piece",
    Kind::ANY_NUMBER,
    "A number that no other piece of input has. Where no answer came, the same piece may be sent again with it: what was taken of it before \
     does not come twice, and is counted in the answer.",
);

/// For raw bytes, which have no room for a flag.
pub(crate) const QUERY: &[Parameter] = &[
    Parameter::new("eof", Kind::Flag, "Close the input afterwards."),
    PIECE,
    Parameter::new(
        "keys",
        Kind::Flag,
        "These are keys: cursor keys in their usual form (`ESC [ A`) are sent in the other one (`ESC O A`) where the program on the task's \
         terminal has asked for it.",
    ),
];

/// Serves it.
pub(crate) async fn write(call: Call) -> Answer {
    let (data, eof) = if is_raw(&call) { (call.body.to_vec(), false) } else { decode(call.json()?)? };
    if data.len() > MOST {
        return Err(Refusal::new(Code::TooLarge, format!("the input is larger than {MOST} bytes")));
    }
    let eof = eof || call.query.flag("eof").unwrap_or(false);
    let id = call.task(TaskAccess::Control).await?;
    let data = if call.query.flag("keys").unwrap_or(false) {
        attach::as_asked_for(&call.app.engine, &call.app.stages, &id, data).await
    } else {
        data
    };
    // Not to the end: who has gone must not keep others waiting for a task that does not read.
    let engine = &call.app.engine;
    let written = match call.query.number(PIECE.name) {
        Some(piece) => engine.input_piece(&id, data, eof, piece).await?,
        None => engine.input(&id, data, eof).await?,
    };
    json(&InputAnswer { written })
}

fn is_raw(call: &Call) -> bool {
    let kind = call.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/octet-stream")
}

fn decode(request: InputRequest) -> Result<(Vec<u8>, bool), Refusal> {
    let data = match (request.text, request.base64) {
        (Some(_), Some(_)) => return Err(Refusal::invalid("`text` and `base64` are both given: choose one")),
        (Some(text), None) => text.into_bytes(),
        (None, Some(encoded)) => {
            STANDARD.decode(encoded).map_err(|error| Refusal::invalid(format!("`base64`: {error}")))?
        }
        (None, None) if request.eof => Vec::new(),
        (None, None) => return Err(Refusal::invalid("no input: give `text`, `base64` or `eof`")),
    };
    Ok((data, request.eof))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_is_text_or_base64_or_the_end() {
        let request = |text: Option<&str>, base64: Option<&str>, eof| InputRequest {
            text: text.map(str::to_owned),
            base64: base64.map(str::to_owned),
            eof,
        };
        assert_eq!(decode(request(Some("hé"), None, false)).unwrap(), ("hé".as_bytes().to_vec(), false));
        assert_eq!(decode(request(None, Some("/wA="), true)).unwrap(), (vec![0xff, 0], true));
        assert_eq!(decode(request(None, None, true)).unwrap(), (vec![], true));
        for wrong in [
            request(None, None, false),
            request(Some("a"), Some("YQ=="), false),
            request(None, Some("%"), false),
        ] {
            assert_eq!(decode(wrong).unwrap_err().problem().code, "HM0003");
        }
    }
}
