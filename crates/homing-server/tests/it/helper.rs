//! What tests need a program for: keeper and shim of an engine in a test, and a caller that is confined or somebody else.

use std::error::Error;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

fn main() -> Result<(), Box<dyn Error>> {
    homing_shim::dispatch();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [how, socket] = arguments.as_slice() else { return Err("expected: plain|confined SOCKET".into()) };
    if how == "confined" {
        rustix::thread::set_no_new_privs(true)?;
    }
    let mut stream = UnixStream::connect(socket)?;
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: homing\r\nconnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    std::io::stdout().write_all(answer.as_bytes())?;
    Ok(())
}
