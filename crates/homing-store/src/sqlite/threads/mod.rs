//! The two threads that own the connections.

pub(crate) mod cursor;
pub(crate) mod failure;
pub(crate) mod reader;
pub(crate) mod writer;
