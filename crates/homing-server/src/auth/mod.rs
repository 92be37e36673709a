//! Authentication of callers on the loopback listener.

pub(crate) mod request_auth;
pub(crate) mod signin;
pub mod token;
