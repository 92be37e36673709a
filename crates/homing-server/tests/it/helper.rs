//! What tests need a program for: keeper and shim of an engine in a test, and a caller that is confined or somebody else.

use std::error::Error;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Command;

fn main() -> Result<(), Box<dyn Error>> {
    homing_shim::dispatch();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["hand", socket, answer] => return hand(socket, answer),
        ["speak", parent, answer] => return speak(parent.parse()?, answer),
        ["ask", socket, questions, answers] => return ask(socket, questions, answers),
        _ => {}
    }
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

/// Connects, leaves the connection to a child, and is gone before anything was said.
fn hand(socket: &str, answer: &str) -> Result<(), Box<dyn Error>> {
    let stream = UnixStream::connect(socket)?;
    let mut child = Command::new(std::env::current_exe()?);
    child.args(["speak", &std::process::id().to_string(), answer]).stdin(OwnedFd::from(stream));
    drop(child.spawn()?);
    Ok(())
}

/// Speaks on its standard input once its parent is gone.
fn speak(parent: i32, answer: &str) -> Result<(), Box<dyn Error>> {
    while rustix::process::getppid().is_some_and(|now| now.as_raw_nonzero().get() == parent) {
        std::thread::yield_now();
    }
    let mut stream = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    stream.write_all(b"POST /v1/gc HTTP/1.1\r\nhost: homing\r\nconnection: close\r\n\r\n")?;
    let mut said = String::new();
    let _ = stream.read_to_string(&mut said);
    let draft = format!("{answer}.new");
    std::fs::write(&draft, said)?;
    Ok(std::fs::rename(draft, answer)?)
}

/// Sends each line (method, target and body, with a tab between them) and writes down what was answered, as one line.
fn ask(socket: &str, questions: &str, answers: &str) -> Result<(), Box<dyn Error>> {
    let mut said = String::new();
    for line in std::fs::read_to_string(questions)?.lines() {
        let [method, target, body] = line.split('\t').collect::<Vec<_>>()[..] else {
            return Err(line.into());
        };
        let mut stream = UnixStream::connect(socket)?;
        let length = body.len();
        write!(
            stream,
            "{method} {target} HTTP/1.1\r\nhost: homing\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        said.push_str(&answer.replace(['\r', '\n'], " "));
        said.push('\n');
    }
    let draft = format!("{answers}.new");
    std::fs::write(&draft, said)?;
    Ok(std::fs::rename(draft, answers)?)
}
