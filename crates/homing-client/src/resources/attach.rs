//! A viewer of a task's terminal: bytes both ways, and a few words beside them.
//!
//! An attachment lasts as long as its connection. When that breaks ([`Error::is_disconnect`]) the task's terminal is as it was: whoever
//! attaches again gets the whole screen. What was sent and not yet said to be taken ([`AttachEvent::Input`]) may or may not have arrived, and is
//! never repeated here.

use std::io;

use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use homing_api::attach::{AttachEvent, AttachRequest, LARGEST_FRAME};
use homing_model::TerminalSize;
use http::header::{CONNECTION, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY};
use http::header::{SEC_WEBSOCKET_VERSION, UPGRADE};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use crate::transport::call::Call;
use crate::transport::client::Client;
use crate::transport::error::Error;
use crate::transport::query::Target;

/// The most bytes that are sent in one frame.
const PIECE: usize = 16 * 1024;
const _: () = assert!(PIECE <= LARGEST_FRAME);
/// The largest frame that is taken: a whole screen of the largest size comes in pieces smaller than this.
const LARGEST: usize = 4 << 20;

type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// Something from the terminal.
#[derive(Debug)]
pub enum Seen {
    /// For the viewer's own terminal, as it is.
    Bytes(Bytes),
    /// A word beside them.
    Event(AttachEvent),
}

/// What is shown.
#[derive(Debug)]
pub struct Screen(SplitStream<Socket>);

/// What is typed.
#[derive(Debug)]
pub struct Keys(SplitSink<Socket, Message>);

impl Client {
    /// Attaches to the terminal of a task. A viewer without a size has no part in deciding the task's.
    ///
    /// # Errors
    /// If there is no such task, it has ended or has no terminal, or nobody answered.
    pub async fn attach(&self, reference: &str, size: Option<TerminalSize>) -> Result<(Screen, Keys), Error> {
        let target = Target::task(reference, "/attach")
            .maybe("cols", size.map(|size| size.cols))
            .maybe("rows", size.map(|size| size.rows));
        let key = generate_key();
        let answered = |response: &http::Response<hyper::body::Incoming>| {
            let accepted = response.headers().get(SEC_WEBSOCKET_ACCEPT).map(HeaderValue::as_bytes);
            accepted == Some(derive_accept_key(key.as_bytes()).as_bytes())
        };
        let headers = [
            (CONNECTION, HeaderValue::from_static("Upgrade")),
            (UPGRADE, HeaderValue::from_static("websocket")),
            (SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13")),
            (SEC_WEBSOCKET_KEY, HeaderValue::try_from(key.as_str()).unwrap_or(HeaderValue::from_static(""))),
        ];
        let call = Call::get(target);
        let response = self.upgrade(&call, headers).await?;
        if !answered(&response) {
            return Err(Error::Protocol { what: call.what(), why: "it is no WebSocket".to_owned() });
        }
        let upgraded = hyper::upgrade::on(response).await.map_err(Error::Broken)?;
        let config = WebSocketConfig::default()
            .read_buffer_size(32 * 1024)
            .write_buffer_size(0)
            .max_message_size(Some(LARGEST))
            .max_frame_size(Some(LARGEST));
        let socket = Socket::from_raw_socket(TokioIo::new(upgraded), Role::Client, Some(config)).await;
        let (keys, screen) = socket.split();
        Ok((Screen(screen), Keys(keys)))
    }
}

impl Client {
    /// Gives the terminal of a task a size; answers with the one that it has then. While somebody is attached, the smallest viewer decides.
    ///
    /// # Errors
    /// If it has no terminal or has ended, the size makes no sense, or nobody answered.
    pub async fn resize(&self, reference: &str, size: TerminalSize) -> Result<TerminalSize, Error> {
        let call = Call::post(Target::task(reference, "/resize")).json(&size)?;
        self.send(&call).await?.json()
    }
}

fn lost(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Lost(io::Error::other(error))
}

impl Screen {
    /// What comes next; none if the daemon has closed the connection, after the end or because it leaves.
    ///
    /// # Errors
    /// If the connection broke, or what came cannot be understood.
    pub async fn next(&mut self) -> Result<Option<Seen>, Error> {
        loop {
            return match self.0.next().await {
                Some(Ok(Message::Binary(bytes))) => Ok(Some(Seen::Bytes(bytes))),
                Some(Ok(Message::Text(text))) => match serde_json::from_str(text.as_str()) {
                    Ok(event) => Ok(Some(Seen::Event(event))),
                    // A word of a later release.
                    Err(_) => continue,
                },
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => continue,
                Some(Ok(Message::Close(_))) | None => Ok(None),
                Some(Err(error)) => Err(lost(error)),
            };
        }
    }
}

impl Keys {
    /// Types these bytes.
    ///
    /// # Errors
    /// If the connection broke: the last of them may or may not have arrived.
    pub async fn send(&mut self, mut bytes: Bytes) -> Result<(), Error> {
        while !bytes.is_empty() {
            let piece = bytes.split_to(bytes.len().min(PIECE));
            self.0.send(Message::Binary(piece)).await.map_err(lost)?;
        }
        Ok(())
    }

    /// Asks for something.
    ///
    /// # Errors
    /// If the connection broke.
    pub async fn ask(&mut self, request: AttachRequest) -> Result<(), Error> {
        let text = serde_json::to_string(&request).map_err(lost)?;
        self.0.send(Message::text(text)).await.map_err(lost)
    }

    /// Says goodbye.
    pub async fn close(&mut self) {
        // Who is gone need not hear it.
        let _ = self.0.close().await;
    }
}
