//! opencode: by the HTTP interface of its server, where no plugin of homing waits in the process. The server must know the session, the session
//! must be idle, and 204 says that it has the prompt. It takes the same prompt twice: what an attempt before this one may have said, with its
//! answer coming too late for it, is looked for among the session's messages first.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use homing_model::{Notice, NoticeId, Session, turn};
use homing_sys::plain;
use http::{HeaderValue, Method, StatusCode, header};
use serde_json::{Value, json};

use crate::wake::{Readiness, Surroundings, Verdict, WakeRequest};

/// Why a session waits that only the plugin reaches.
const NO_SERVER: &str = "opencode listens nowhere (`--port`), and homing's plugin is not waiting in the session; it is delivered with its \
                         next prompt";
/// A file of the home with the server's password, if it has one (`OPENCODE_SERVER_PASSWORD`): a line, for its owner alone.
const PASSWORD: &str = "opencode.password";
/// No password is longer.
const LONGEST: u64 = 4 * 1024;
/// So many messages are read for what was said before; the second where the first are too large.
const RECENT: [u32; 2] = [100, 5];

async fn ask(
    session: &Session,
    method: Method,
    path: &str,
    body: Option<&Value>,
    surroundings: &Surroundings,
) -> Result<http::Response<Vec<u8>>, String> {
    let url = session.url.as_deref().ok_or(NO_SERVER)?;
    let client = surroundings.http.as_ref().ok_or("there is no HTTP client here")?;
    let mut request = http::Request::builder().method(method).uri(format!("{url}{path}"));
    let password = plain::small(&surroundings.home.join(PASSWORD), LONGEST).ok();
    if let Some(password) = password.and_then(|text| String::from_utf8(text).ok()) {
        let value = format!("Basic {}", STANDARD.encode(format!("opencode:{}", password.trim_end())));
        let mut value = HeaderValue::try_from(value).map_err(|_| format!("{PASSWORD} holds no password"))?;
        value.set_sensitive(true);
        request = request.header(header::AUTHORIZATION, value);
    }
    if body.is_some() {
        request = request.header(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    let body = body.map(Value::to_string).unwrap_or_default();
    client.send(request.body(Bytes::from(body)).map_err(|error| error.to_string())?).await
}

pub(super) async fn readiness(session: &Session, surroundings: &Surroundings) -> Readiness {
    match state(session, surroundings).await {
        Ok(readiness) => readiness,
        Err(why) => Readiness::Closed(why),
    }
}

/// Whether the server has the session, and the session time.
async fn state(session: &Session, surroundings: &Surroundings) -> Result<Readiness, String> {
    let found = ask(session, Method::GET, &format!("/session/{}", session.id), None, surroundings).await?;
    match found.status() {
        StatusCode::OK => {}
        StatusCode::UNAUTHORIZED => {
            return Err(format!(
                "opencode wants a password: put it into {}, mode 0600",
                surroundings.home.join(PASSWORD).display()
            ));
        }
        StatusCode::NOT_FOUND => return Err("opencode does not know the session".to_owned()),
        status => return Err(format!("opencode answers {status}")),
    }
    if !String::from_utf8_lossy(found.body()).contains(&format!("\"{}\"", session.id)) {
        return Err("what answers is not opencode, or answers for another session".to_owned());
    }
    let status = ask(session, Method::GET, "/session/status", None, surroundings).await?;
    let all = match serde_json::from_slice::<Value>(status.body()) {
        Ok(all) if status.status() == StatusCode::OK && all.is_object() => all,
        // Who is not known to have time is not spoken to.
        _ => return Err(format!("opencode does not say which sessions are at work ({})", status.status())),
    };
    // Idle sessions need not be in the list.
    Ok(match all[&session.id]["type"].as_str() {
        Some("idle") | None => Readiness::Ready,
        Some(_) => Readiness::Busy("the session is in the middle of a turn".to_owned()),
    })
}

/// The session's last messages, oldest first: fewer of them where many are too large for an answer.
async fn messages(session: &Session, surroundings: &Surroundings) -> Result<Vec<Value>, String> {
    let mut why = String::new();
    for limit in RECENT {
        let path = format!("/session/{}/message?limit={limit}", session.id);
        match ask(session, Method::GET, &path, None, surroundings).await {
            Ok(answer) => match serde_json::from_slice(answer.body()) {
                Ok(messages) if answer.status() == StatusCode::OK => return Ok(messages),
                _ => why = format!("opencode does not show the session's messages ({})", answer.status()),
            },
            Err(error) => why = error,
        }
    }
    Err(why)
}

/// What is not among these messages of the session.
fn untold(messages: &[Value], request: WakeRequest<'_>) -> Vec<Notice> {
    let texts: Vec<&str> = prompts(messages)
        .filter_map(|message| message["parts"].as_array())
        .flatten()
        .filter_map(|part| part["text"].as_str())
        .collect();
    let ours =
        |id: &NoticeId| texts.iter().any(|text| text.contains(turn::MARK) && text.contains(id.as_str()));
    let knows = |notice: &&Notice| request.tried.contains(&notice.id) && ours(&notice.id);
    request.notices.iter().filter(|notice| !knows(notice)).cloned().collect()
}

/// Those of the messages that came as prompts.
fn prompts(messages: &[Value]) -> impl DoubleEndedIterator<Item = &Value> {
    messages.iter().filter(|message| message["info"]["role"] == "user")
}

/// The text as a prompt like the one before it. Left to the server it would go to the default agent,
/// which may do what that one may not. After a turn of many steps, each of them a message, only
/// answers may be left: they name their agent and model too.
fn prompt(messages: &[Value], text: &str) -> Value {
    let mut prompt = json!({ "parts": [{ "type": "text", "text": text }] });
    let Some(last) = prompts(messages).next_back().or_else(|| messages.last()).map(|last| &last["info"])
    else {
        return prompt;
    };
    let mut model = last["model"].clone();
    if last["modelID"].is_string() {
        model = json!({ "providerID": last["providerID"], "modelID": last["modelID"] });
    }
    // The variant of a prompt is kept with its model.
    let variant = model["variant"].clone();
    let fields = [("agent", last["agent"].clone()), ("model", model), ("variant", variant)];
    for (field, value) in fields.into_iter().filter(|(_, value)| !value.is_null()) {
        prompt[field] = value;
    }
    prompt
}

pub(super) async fn wake(
    session: &Session,
    request: WakeRequest<'_>,
    surroundings: &Surroundings,
) -> Verdict {
    match readiness(session, surroundings).await {
        Readiness::Ready => {}
        Readiness::Busy(why) | Readiness::Closed(why) => return Verdict::NotNow(why),
    }
    let messages = match messages(session, surroundings).await {
        Ok(messages) => messages,
        Err(why) => return Verdict::NotNow(why),
    };
    let news = untold(&messages, request);
    if news.is_empty() {
        return Verdict::Delivered(
            "it is among the session's messages since an attempt before this one".to_owned(),
        );
    }
    let prompt = prompt(&messages, &turn::compose(&news, 0).text);
    let path = format!("/session/{}/prompt_async", session.id);
    match ask(session, Method::POST, &path, Some(&prompt), surroundings).await {
        Ok(answer) if answer.status().is_success() => {
            Verdict::Delivered(format!("prompt_async of opencode answered {}", answer.status().as_u16()))
        }
        Ok(answer) => Verdict::Failed(format!("prompt_async of opencode answered {}", answer.status())),
        Err(why) => Verdict::Failed(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_without_one_before_it_is_like_the_last_answer() {
        let info = json!({ "role": "assistant", "agent": "plan", "providerID": "p", "modelID": "m" });
        let prompt = prompt(&[json!({ "info": info, "parts": [] })], "x");
        assert_eq!(prompt["agent"], "plan");
        assert_eq!(prompt["model"], json!({ "providerID": "p", "modelID": "m" }));
        assert_eq!(prompt["variant"], Value::Null);
    }
}
