//! What a person asks for, done beside the loop; what came of it is said.

use std::io;
use std::process::{Command, Stdio};

use homing_api::StopRequest;
use homing_client::Client;

use super::feed::why;
use super::news::Out;

/// Stops a task. That it stops is told by its events.
pub(super) async fn stop(client: Client, task: String, by: String, out: Out) {
    let request = StopRequest { by: Some(by), ..StopRequest::default() };
    let text = match client.stop(&task, &request).await {
        Ok(answer) if answer.stopping => format!("stopping {task}"),
        Ok(_) => format!("{task} had ended before"),
        Err(error) => why(error),
    };
    let _ = out.say(text).await;
}

/// Takes what is told of a task out of an inbox.
pub(super) async fn acknowledge(client: Client, task: String, owner: String, out: Out) {
    let text = match client.on_behalf_of(&owner).acknowledge(&owner, vec![task.clone()]).await {
        Ok(answer) if answer.acknowledged.is_empty() => format!("nothing of {task} waits in the inbox"),
        Ok(_) => format!("acknowledged {task}"),
        Err(error) => why(error),
    };
    let _ = out.say(text).await;
}

/// Runs a command of homing's; what it printed first is said.
pub(super) async fn command(mut command: Command, out: Out) {
    command.stdin(Stdio::null());
    let text = match blocking(move || command.output()).await {
        Ok(output) => first_line(if output.status.success() { &output.stdout } else { &output.stderr }),
        Err(error) => format!("it could not be started: {error}"),
    };
    let _ = out.say(text).await;
}

/// Waits for something beside the loop.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(io::Error::other(error)))
}

pub(super) fn first_line(told: &[u8]) -> String {
    String::from_utf8_lossy(told).lines().next().unwrap_or_default().to_owned()
}

/// The last thing that a command said, without the advice below it.
pub(super) fn last_words(told: &[u8]) -> String {
    let told = String::from_utf8_lossy(told);
    told.lines().rfind(|line| !line.is_empty() && !line.starts_with(' ')).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_a_command_said_the_last_counts_and_advice_does_not() {
        let told = b"homing: attached to t-b; ctrl-\\ detaches\nhoming: detached from t-b, which goes on\n  next: more\n";
        assert_eq!(last_words(told), "homing: detached from t-b, which goes on");
        assert_eq!(last_words(b""), "");
        assert_eq!(first_line(told), "homing: attached to t-b; ctrl-\\ detaches");
    }
}
