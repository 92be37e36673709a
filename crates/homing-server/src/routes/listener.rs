//! `/v1/listener`: the loopback listener, turned on and off; `/v1/token/rotate`: what opens it; `/v1/page`: the way of a browser through it. Only who is on the socket changes any of it.

use homing_api::{Code, ListenerRequest, Problem, RotateAnswer};

use crate::http::answer::{Answer, json};
use crate::http::call::{Call, Peer};
use crate::http::refusal::Refusal;

/// `GET /v1/listener`.
pub(crate) async fn show(call: Call) -> Answer {
    json(&call.app.listener.info().await?)
}

/// `POST /v1/listener`. An empty body asks for nothing special.
pub(crate) async fn on(call: Call) -> Answer {
    let request = if call.body.trim_ascii().is_empty() {
        ListenerRequest::default()
    } else {
        call.json::<ListenerRequest>()?
    };
    on_the_socket(&call)?;
    json(&call.app.listener.on(request.port).await?)
}

/// `DELETE /v1/listener`.
pub(crate) async fn off(call: Call) -> Answer {
    on_the_socket(&call)?;
    json(&call.app.listener.off().await?)
}

/// `POST /v1/token/rotate`.
pub(crate) async fn rotate(call: Call) -> Answer {
    on_the_socket(&call)?;
    call.app.listener.rotate().await?;
    json(&RotateAnswer { rotated: true })
}

/// `POST /v1/page`.
pub(crate) async fn invite(call: Call) -> Answer {
    on_the_socket(&call)?;
    json(&call.app.listener.invite().await?)
}

/// Who has a token cannot lock out its owner.
fn on_the_socket(call: &Call) -> Result<(), Refusal> {
    match call.peer {
        Peer::Local { .. } => call.may_configure(),
        Peer::Network => Err(Refusal::from(Problem {
            advice: "Send it to the Unix socket instead: `homing token` and `homing web` do.".to_owned(),
            ..Problem::new(Code::Forbidden, "the listener and its token are changed on the Unix socket alone")
        })),
    }
}
