//! The event log: all of it so far, or as it grows.

use std::collections::VecDeque;

use homing_api::{EventsReset, Problem};
use homing_model::{Event, EventKind};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::transport::call::Call;
use crate::transport::client::{ATTEMPTS, Client, Sender, pause_after};
use crate::transport::error::Error;
use crate::transport::query::Target;
use crate::transport::sse::Parser;

/// Which events.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventQuery {
    /// After this one; from the oldest that is kept if 0.
    pub after: u64,
    /// Of this owner.
    pub owner: Option<String>,
    /// Of these kinds; any if empty.
    pub kinds: Vec<EventKind>,
}

impl EventQuery {
    fn target(&self) -> Target {
        let kinds = self.kinds.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(",");
        let begin = match self.after {
            0 => Target::new("/v1/events").with("from", "oldest"),
            after => Target::new("/v1/events").with("after", after.to_string()),
        };
        begin.maybe("owner", self.owner.as_deref()).maybe("types", (!kinds.is_empty()).then_some(kinds))
    }
}

/// What a stream of events brings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// An event, as the JSON that the daemon sent: fields that this release does not know are in it too.
    Event {
        /// Its cursor.
        seq: u64,
        /// One line.
        json: String,
    },
    /// The log could not go on from the cursor: what is known has to be built anew from the tasks in this, and the stream goes on after it.
    Reset {
        /// The cursor to go on from.
        seq: u64,
        /// [`EventsReset`], as one line of the JSON that the daemon sent.
        json: String,
    },
}

impl Record {
    /// The event in the words of this release; `None` for a reset.
    ///
    /// # Errors
    /// If it is of a kind that this release does not know.
    pub fn event(&self) -> Result<Option<Event>, Error> {
        match self {
            Self::Event { json, .. } => serde_json::from_str(json)
                .map(Some)
                .map_err(|source| Error::Json { what: "GET /v1/events".to_owned(), source }),
            Self::Reset { .. } => Ok(None),
        }
    }

    /// What to begin anew with; `None` for an event.
    ///
    /// # Errors
    /// If it cannot be understood.
    pub fn reset(&self) -> Result<Option<EventsReset>, Error> {
        match self {
            Self::Reset { json, .. } => serde_json::from_str(json)
                .map(Some)
                .map_err(|source| Error::Json { what: "GET /v1/events".to_owned(), source }),
            Self::Event { .. } => Ok(None),
        }
    }
}

impl Client {
    /// The log up to its newest event, as it comes.
    ///
    /// # Errors
    /// If nobody answered.
    pub async fn events(&self, query: &EventQuery) -> Result<Log, Error> {
        let (response, sender) = self.open(&Call::get(query.target().with("follow", "false"))).await?;
        let trimmed_to = response.headers().get("homing-trimmed-to");
        let trimmed_to = trimmed_to.and_then(|value| value.to_str().ok()?.parse().ok());
        Ok(Log { body: response.into_body(), trimmed_to, _sender: sender })
    }

    /// The log and what is added to it, without end, through restarts of the daemon.
    #[must_use]
    pub fn follow_events(&self, query: EventQuery) -> EventStream {
        EventStream {
            client: self.clone(),
            query,
            ready: VecDeque::new(),
            open: None,
            failures: 0,
            not_before: None,
            standing: watch::Sender::new(false),
        }
    }
}

/// JSON lines as the daemon sends them.
#[derive(Debug)]
pub struct Log {
    body: Incoming,
    trimmed_to: Option<u64>,
    _sender: Sender,
}

impl Log {
    /// Events up to this one are no longer kept, though they were asked for.
    #[must_use]
    pub const fn trimmed_to(&self) -> Option<u64> {
        self.trimmed_to
    }

    /// The next bytes, cut anywhere; `None` at the end.
    ///
    /// # Errors
    /// If the connection broke before the end.
    pub async fn next(&mut self) -> Result<Option<bytes::Bytes>, Error> {
        next_data(&mut self.body).await
    }
}

/// A log that is followed.
#[derive(Debug)]
pub struct EventStream {
    client: Client,
    query: EventQuery,
    ready: VecDeque<Record>,
    open: Option<Connection>,
    failures: u32,
    /// When it may connect again. Kept here and not in whoever waits, so that a wait that is cancelled does not begin anew, and is not skipped either.
    not_before: Option<Instant>,
    /// Whether it is connected.
    standing: watch::Sender<bool>,
}

/// What came of reading.
enum Read {
    /// Something, or nothing that matters.
    More,
    /// The daemon ended the stream.
    End,
    /// With this.
    Problem(Box<Problem>),
}

#[derive(Debug)]
struct Connection {
    body: Incoming,
    parser: Parser,
    _sender: Sender,
}

impl EventStream {
    /// Whether it is connected, as that changes: what was told before may be old while it is not.
    #[must_use]
    pub fn standing(&self) -> watch::Receiver<bool> {
        self.standing.subscribe()
    }

    /// Gives up the connection. The next one is made after a pause that grows with the failures in a row.
    fn close(&mut self) {
        self.open = None;
        self.not_before = Some(Instant::now() + pause_after(self.failures));
        // Only a change is told: whoever waits for one is not woken by each attempt.
        self.standing.send_if_modified(|standing| std::mem::replace(standing, false));
    }

    /// Waits until the pause is over, if there is one.
    async fn rest(&mut self) {
        if let Some(until) = self.not_before {
            sleep_until(until).await;
            self.not_before = None;
        }
    }

    /// The next event. Cancelling it loses nothing.
    ///
    /// # Errors
    /// If the daemon is gone for good, or sent what cannot be understood.
    pub async fn next(&mut self) -> Result<Record, Error> {
        loop {
            if let Some(record) = self.ready.pop_front() {
                return Ok(record);
            }
            self.rest().await;
            match self.read().await {
                Ok(Read::More) => self.failures = 0,
                Ok(Read::End) => {
                    self.failures = 0;
                    self.close();
                }
                Ok(Read::Problem(problem)) => {
                    self.failures = if self.ready.is_empty() { self.failures + 1 } else { 0 };
                    self.close();
                    let error = Error::Problem(problem);
                    if self.failures >= ATTEMPTS && !self.client.worth_another(&error, self.failures) {
                        return Err(error);
                    }
                }
                Err(error) => {
                    self.failures += 1;
                    self.close();
                    if !self.client.worth_another(&error, self.failures) {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Reads one chunk, connecting first if need be. An end of the stream is a reason to connect again; so is a problem, with which the
    /// daemon ended it.
    async fn read(&mut self) -> Result<Read, Error> {
        let connection = match &mut self.open {
            Some(connection) => connection,
            closed @ None => {
                let (response, sender) = self.client.open(&Call::get(self.query.target())).await?;
                self.standing.send_replace(true);
                closed.insert(Connection {
                    body: response.into_body(),
                    parser: Parser::default(),
                    _sender: sender,
                })
            }
        };
        let Some(chunk) = next_data(&mut connection.body).await? else { return Ok(Read::End) };
        for message in connection.parser.push(&chunk) {
            if message.name == "problem" {
                let problem = serde_json::from_str(&message.data)
                    .map_err(|source| Error::Json { what: "GET /v1/events".to_owned(), source })?;
                return Ok(Read::Problem(problem));
            }
            let seq = message.id.parse().map_err(|_| Error::Protocol {
                what: "GET /v1/events".to_owned(),
                why: format!("`{}` is not a cursor", message.id),
            })?;
            self.query.after = seq;
            self.ready.push_back(match message.name.as_str() {
                "reset" => Record::Reset { seq, json: message.data },
                _ => Record::Event { seq, json: message.data },
            });
        }
        Ok(Read::More)
    }
}

async fn next_data(body: &mut Incoming) -> Result<Option<bytes::Bytes>, Error> {
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame.map_err(Error::Broken)?.into_data() {
            return Ok(Some(data));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Fake, Reply};

    #[tokio::test]
    async fn the_stream_goes_on_after_the_last_event_when_it_breaks() {
        let home = tempfile::tempdir().unwrap();
        let fake = Fake::serve(home.path(), |request| match request.target.as_str() {
            "/v1/events?from=oldest" => {
                Reply::stream(["id: 1\ndata: a\n\nid: 4\nda", "ta: b\n\nid: 6\ndata: los"])
            }
            "/v1/events?after=4" => Reply::stream(["id: 6\ndata: c\n\n"]).broken(),
            "/v1/events?after=6" => Reply::stream(["event: reset\nid: 9\ndata: {}\n\n"]),
            _ => Reply::stream(["id: 10\ndata: d\n\n"]),
        });
        let mut stream = Client::new(home.path(), "u").follow_events(EventQuery::default());
        let mut standing = stream.standing();
        assert!(!*standing.borrow_and_update(), "nobody was asked yet");
        let mut seen = Vec::new();
        for _ in 0..5 {
            seen.push(match stream.next().await.unwrap() {
                Record::Event { seq, json } => format!("{seq}{json}"),
                Record::Reset { seq, .. } => format!("{seq}reset"),
            });
        }
        assert_eq!(seen, ["1a", "4b", "6c", "9reset", "10d"]);
        assert!(*standing.borrow_and_update());
        assert_eq!(fake.requests().last().map(|last| last.target.clone()), Some("/v1/events?after=9".into()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_patient_stream_outlasts_a_shortage() {
        let home = tempfile::tempdir().unwrap();
        let count = std::sync::atomic::AtomicU32::new(0);
        let problem = serde_json::to_string(&Problem::new(homing_api::Code::SystemLimit, "full")).unwrap();
        let _fake = Fake::serve(home.path(), move |_| {
            match count.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % (3 * ATTEMPTS) {
                tries if tries + 1 == 3 * ATTEMPTS => Reply::stream(["id: 1\ndata: a\n\n"]),
                tries if tries % 2 == 0 => Reply::json(503, problem.clone()),
                _ => Reply::stream([format!("event: problem\ndata: {problem}\n\n")]),
            }
        });
        let client = Client::new(home.path(), "u");
        assert!(
            client.follow_events(EventQuery::default()).next().await.is_err(),
            "it has nothing to wait for"
        );
        let mut patient = client.patient().follow_events(EventQuery::default());
        assert!(matches!(patient.next().await, Ok(Record::Event { seq: 1, .. })));
    }

    /// As the panel does it: what tells of the connection is waited for at the same time, and wins whenever it has news.
    async fn asked_beside_the_standing(stream: &mut EventStream) -> Result<Record, Error> {
        let mut standing = stream.standing();
        loop {
            tokio::select! {
                biased;
                Ok(()) = standing.changed() => {}
                record = stream.next() => return record,
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_pauses_between_attempts_are_kept_by_whoever_waits_for_something_else_as_well() {
        let home = tempfile::tempdir().unwrap();
        let _fake = Fake::serve(home.path(), |_| Reply::cut());
        let client = Client::new(home.path(), "u");
        // It was there before: its absence is a restart.
        let _ = client.healthy().await;
        let begun = Instant::now();
        let mut stream = client.follow_events(EventQuery::default());
        assert!(asked_beside_the_standing(&mut stream).await.is_err());
        let in_all = (1..ATTEMPTS).map(pause_after).sum::<std::time::Duration>();
        assert!(begun.elapsed() >= in_all, "{:?} of {in_all:?}", begun.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_that_is_cancelled_goes_on_where_it_was() {
        let home = tempfile::tempdir().unwrap();
        let fake = Fake::serve(home.path(), |_| Reply::stream(["id: 1\ndata: a\n\n"]));
        let mut stream = Client::new(home.path(), "u").follow_events(EventQuery::default());
        stream.failures = 6;
        stream.close();
        let (begun, bit) = (Instant::now(), pause_after(6) / 64);
        while begun.elapsed() < pause_after(6) - bit {
            assert!(tokio::time::timeout(bit, stream.next()).await.is_err(), "after {:?}", begun.elapsed());
        }
        assert!(fake.requests().is_empty(), "nobody is asked before the pause is over");
        assert_eq!(stream.next().await.unwrap(), Record::Event { seq: 1, json: "a".into() });
    }

    #[tokio::test]
    async fn a_problem_in_the_stream_is_no_event_and_the_stream_goes_on() {
        let home = tempfile::tempdir().unwrap();
        let problem = serde_json::to_string(&Problem::new(homing_api::Code::Internal, "not now")).unwrap();
        let told = format!("event: problem\ndata: {problem}\n\n");
        let fake = Fake::serve(home.path(), move |request| match request.target.as_str() {
            "/v1/events?from=oldest" => Reply::stream(["id: 1\ndata: a\n\n".to_owned() + &told]),
            "/v1/events?after=1" => Reply::stream(["id: 2\ndata: b\n\n"]),
            _ => Reply::stream([told.clone()]),
        });
        let mut stream = Client::new(home.path(), "u").follow_events(EventQuery::default());
        assert_eq!(stream.next().await.unwrap(), Record::Event { seq: 1, json: "a".into() });
        assert_eq!(stream.next().await.unwrap(), Record::Event { seq: 2, json: "b".into() });
        let Err(Error::Problem(said)) = stream.next().await else { panic!("it does not get better") };
        assert_eq!(said.known(), Some(homing_api::Code::Internal));
        assert!(fake.requests().len() > 3, "it was asked again first");
    }

    #[tokio::test]
    async fn an_event_of_a_later_release_is_passed_on_and_what_follows_is_not_lost() {
        let home = tempfile::tempdir().unwrap();
        let _fake = Fake::serve(home.path(), |_| {
            Reply::stream([
                "event: task.danced\nid: 1\ndata: {\"type\":\"task.danced\"}\n\nid: 2\ndata: x\n\n",
            ])
        });
        let mut stream = Client::new(home.path(), "u").follow_events(EventQuery::default());
        let strange = stream.next().await.unwrap();
        assert_eq!(strange, Record::Event { seq: 1, json: "{\"type\":\"task.danced\"}".into() });
        assert!(strange.event().is_err(), "told apart, and not taken for another");
        assert!(matches!(stream.next().await.unwrap(), Record::Event { seq: 2, .. }));
    }

    #[tokio::test]
    async fn the_log_so_far_comes_as_it_is() {
        let home = tempfile::tempdir().unwrap();
        let fake = Fake::serve(home.path(), |_| Reply::bytes(200, "{\"seq\":1}\n{\"seq\":2}\n"));
        let query = EventQuery { after: 3, owner: Some("me".into()), kinds: vec![EventKind::TaskQueued] };
        let mut log = Client::new(home.path(), "u").events(&query).await.unwrap();
        let mut seen = Vec::new();
        while let Some(bytes) = log.next().await.unwrap() {
            seen.extend_from_slice(&bytes);
        }
        assert_eq!(seen, b"{\"seq\":1}\n{\"seq\":2}\n");
        assert_eq!(fake.requests()[0].target, "/v1/events?after=3&owner=me&types=task.queued&follow=false");
    }
}
