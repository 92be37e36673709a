//! Every route there is. The router and the OpenAPI document are both made of this table, so neither can lack one.

use homing_api::attach::{AttachEvent, AttachRequest};
use homing_api::{
    AckAnswer, AckRequest, CompleteAnswer, CompleteRequest, EventsReset, GcAnswer, HeartbeatRequest,
    InboxAnswer, InboxOwner, InputAnswer, InputRequest, ListenerInfo, ListenerRequest, OutputChunk,
    OutputGap, Page, PageAnswer, PauseAnswer, ProgressRequest, RedeliverAnswer, ReloadAnswer, RerunRequest,
    RotateAnswer, SignalRequest, StatusAnswer, StopAnswer, StopRequest, TakeRequest, WaitAnswer,
};
use homing_api::{Problem, TaskDetail};
use homing_model::TerminalSize;
use homing_model::binding::{BindRequest, SessionInfo};
use homing_model::{Delivery, Event, Spec, Task};
use serde_json::Value;

use crate::http::call::{LAST_EVENT_ID, OWNER};
use crate::http::route::{Content, Given, Handler, Route, Taken, Verb, schema};
use crate::routes::{
    attach, complete, config_reload, daemon_stop, deliveries, events, follow, gc, health, heartbeat, inbox,
    input, listener, metrics, openapi, output, output_file, output_index, pause, progress, rerun, session,
    signal, status, stop, task, tasks, wait,
};

const TASK: &[Content] = &[Content::Json(schema::<Task>)];
const INBOX: &[Content] = &[Content::Json(schema::<InboxAnswer>)];
const SESSION: &[Content] = &[Content::Json(schema::<SessionInfo>)];
const WAITED: &[Content] = &[Content::Json(schema::<WaitAnswer>)];
const LISTENER: &[Given] = &[Given::new(200, "How it is now.", &[Content::Json(schema::<ListenerInfo>)])];
/// Bodies of a few fields.
const SMALL: usize = 64 * 1024;

/// A route that takes nothing and gives nothing yet.
const fn route(
    verb: Verb,
    path: &'static str,
    name: &'static str,
    about: &'static str,
    handler: Handler,
) -> Route {
    Route { verb, path, name, about, query: &[], headers: &[OWNER], takes: None, gives: &[], handler }
}

/// The table.
pub(crate) static ROUTES: &[Route] = &[
    Route {
        headers: &[OWNER, tasks::IDEMPOTENCY_KEY],
        takes: Some(Taken {
            contents: &[Content::Json(schema::<Spec>)],
            required: true,
            limit: tasks::LIMIT,
        }),
        gives: &[
            Given::new(201, "Accepted: durable, and on its way.", TASK),
            Given::new(200, "It was there before: a live task with the same `key`.", TASK),
        ],
        ..route(Verb::Post, "/v1/tasks", "submit", "Submit a task", |call| Box::pin(tasks::submit(call)))
    },
    Route {
        query: tasks::LIST,
        headers: &[],
        gives: &[Given {
            headers: tasks::HEADERS,
            ..Given::new(200, "A page.", &[Content::Json(schema::<Page<Task>>)])
        }],
        ..route(
            Verb::Get,
            "/v1/tasks",
            "list",
            "List tasks: live ones first, then ended ones, each newest first",
            |call| Box::pin(tasks::list(call)),
        )
    },
    Route {
        gives: &[Given::new(
            200,
            "The task, whole; past retention with `forgotten` and its outcome.",
            &[Content::Json(schema::<TaskDetail>)],
        )],
        ..route(
            Verb::Get,
            "/v1/tasks/{ref}",
            "show",
            "Look at one task, with its attempts, notices and deliveries",
            |call| Box::pin(task::show(call)),
        )
    },
    Route {
        gives: &[Given::new(200, "What is left of it.", TASK)],
        ..route(
            Verb::Delete,
            "/v1/tasks/{ref}",
            "forget",
            "Forget a task that has ended; 409 while it is live",
            |call| Box::pin(task::forget(call)),
        )
    },
    Route {
        query: output::QUERY,
        gives: &[Given { headers: output::HEADERS, ..Given::new(200, "The bytes.", &[Content::Bytes]) }],
        ..route(
            Verb::Get,
            "/v1/tasks/{ref}/output",
            "output",
            "Read a stretch of output; 410 once it is gone",
            |call| Box::pin(output::read(call)),
        )
    },
    Route {
        gives: &[Given {
            headers: output_file::HEADERS,
            ..Given::new(200, "All that is kept of it, up to now, as a file to save.", &[Content::Bytes])
        }],
        ..route(
            Verb::Get,
            "/v1/tasks/{ref}/output/file",
            "output_file",
            "Read all of the output at once; 410 once it is gone",
            |call| Box::pin(output_file::read(call)),
        )
    },
    Route {
        query: output_index::QUERY,
        gives: &[Given::new(
            200,
            "Where the bytes came from.",
            &[Content::Json(schema::<output_index::OutputIndex>)],
        )],
        ..route(
            Verb::Get,
            "/v1/tasks/{ref}/output/index",
            "output_index",
            "Which stream the output came from, and when",
            |call| Box::pin(output_index::read(call)),
        )
    },
    Route {
        query: follow::QUERY,
        headers: &[OWNER, LAST_EVENT_ID],
        gives: &[Given::new(
            200,
            "Output, gaps, and the task at its end. Ids are offsets.",
            &[Content::Events(&[
                ("output", schema::<OutputChunk>),
                ("gap", schema::<OutputGap>),
                ("end", schema::<Task>),
                ("problem", schema::<Problem>),
            ])],
        )],
        ..route(
            Verb::Get,
            "/v1/tasks/{ref}/follow",
            "follow",
            "Follow the output to the end of the task",
            |call| Box::pin(follow::follow(call)),
        )
    },
    Route {
        query: wait::ONE,
        gives: &[
            Given::new(200, "It has ended.", TASK),
            Given::new(202, "It goes on; this is no error.", TASK),
        ],
        ..route(Verb::Get, "/v1/tasks/{ref}/wait", "wait_one", "Wait for a task to end", |call| {
            Box::pin(wait::one(call))
        })
    },
    Route {
        query: wait::SEVERAL,
        gives: &[Given::new(200, "All, or any, have ended.", WAITED), Given::new(202, "Not yet.", WAITED)],
        ..route(Verb::Get, "/v1/wait", "wait", "Wait for all or any of several tasks to end", |call| {
            Box::pin(wait::several(call))
        })
    },
    Route {
        query: stop::QUERY,
        takes: Some(Taken {
            contents: &[Content::Json(schema::<StopRequest>)],
            required: false,
            limit: SMALL,
        }),
        gives: &[Given::new(
            200,
            "Under way, or `stopping` is false: it had ended before.",
            &[Content::Json(schema::<StopAnswer>)],
        )],
        ..route(Verb::Post, "/v1/tasks/{ref}/stop", "stop", "End the whole tree of a task", |call| {
            Box::pin(stop::stop(call))
        })
    },
    Route {
        gives: &[Given::new(
            200,
            "It stands still; `changed` is false where it did before, or had ended.",
            &[Content::Json(schema::<PauseAnswer>)],
        )],
        ..route(
            Verb::Post,
            "/v1/tasks/{ref}/pause",
            "pause",
            "Let the whole tree of a task stand still",
            |call| Box::pin(pause::pause(call)),
        )
    },
    Route {
        gives: &[Given::new(
            200,
            "It goes on; `changed` is false where it did before, or had ended.",
            &[Content::Json(schema::<PauseAnswer>)],
        )],
        ..route(Verb::Post, "/v1/tasks/{ref}/resume", "resume", "Let a paused task go on", |call| {
            Box::pin(pause::resume(call))
        })
    },
    Route {
        takes: Some(Taken {
            contents: &[Content::Json(schema::<SignalRequest>)],
            required: true,
            limit: SMALL,
        }),
        gives: &[Given::new(200, "It was sent.", TASK)],
        ..route(Verb::Post, "/v1/tasks/{ref}/signal", "signal", "Send a signal to a task", |call| {
            Box::pin(signal::signal(call))
        })
    },
    Route {
        query: input::QUERY,
        takes: Some(Taken {
            contents: &[Content::Json(schema::<InputRequest>), Content::Bytes],
            required: true,
            limit: input::LIMIT,
        }),
        gives: &[Given::new(200, "The task took it.", &[Content::Json(schema::<InputAnswer>)])],
        ..route(
            Verb::Post,
            "/v1/tasks/{ref}/input",
            "input",
            "Write to a task's input; at most 1 MiB at once",
            |call| Box::pin(input::write(call)),
        )
    },
    Route {
        query: attach::QUERY,
        gives: &[Given::new(
            101,
            "A WebSocket. Binary frames are bytes, both ways, of a viewer at most 64 KiB each; text frames are these.",
            &[Content::Frames { taken: schema::<AttachRequest>, given: schema::<AttachEvent> }],
        )],
        ..route(
            Verb::Get,
            "/v1/tasks/{ref}/attach",
            "attach",
            "Attach to the terminal of a task: its screen, then what follows; what is sent is typed",
            |call| Box::pin(attach::attach(call)),
        )
    },
    Route {
        takes: Some(Taken {
            contents: &[Content::Json(schema::<TerminalSize>)],
            required: true,
            limit: SMALL,
        }),
        gives: &[Given::new(200, "The size that it has now.", &[Content::Json(schema::<TerminalSize>)])],
        ..route(
            Verb::Post,
            "/v1/tasks/{ref}/resize",
            "resize",
            "Give the terminal of a task a size; while somebody is attached, the smallest viewer decides",
            |call| Box::pin(attach::resize(call)),
        )
    },
    Route {
        takes: Some(Taken {
            contents: &[Content::Json(schema::<ProgressRequest>)],
            required: true,
            limit: SMALL,
        }),
        gives: &[Given::new(200, "It is noted.", TASK)],
        ..route(
            Verb::Post,
            "/v1/tasks/{ref}/progress",
            "progress",
            "Say how far a task of your own is",
            |call| Box::pin(progress::note(call)),
        )
    },
    Route {
        takes: Some(Taken {
            contents: &[Content::Json(schema::<CompleteRequest>)],
            required: false,
            limit: complete::LIMIT,
        }),
        gives: &[Given::new(
            200,
            "It has ended so, or `completed` is false: it had ended before, and that stands.",
            &[Content::Json(schema::<CompleteAnswer>)],
        )],
        ..route(
            Verb::Post,
            "/v1/tasks/{ref}/complete",
            "complete",
            "Say how an external task of the caller's ended; another owner's is 404",
            |call| Box::pin(complete::complete(call)),
        )
    },
    Route {
        takes: Some(Taken {
            contents: &[Content::Json(schema::<HeartbeatRequest>)],
            required: false,
            limit: SMALL,
        }),
        gives: &[Given::new(200, "It was heard; `lease_until` says until when that holds.", TASK)],
        ..route(
            Verb::Post,
            "/v1/tasks/{ref}/heartbeat",
            "heartbeat",
            "Say that an external task of the caller's goes on; another owner's is 404",
            |call| Box::pin(heartbeat::renew(call)),
        )
    },
    Route {
        headers: &[OWNER, tasks::IDEMPOTENCY_KEY],
        takes: Some(Taken {
            contents: &[Content::Json(schema::<RerunRequest>)],
            required: false,
            limit: tasks::LIMIT,
        }),
        gives: &[
            Given::new(201, "The new task, accepted.", TASK),
            Given::new(200, "The task that was there before: a live one with the same key.", TASK),
        ],
        ..route(
            Verb::Post,
            "/v1/tasks/{ref}/rerun",
            "rerun",
            "Run a task again, as a new one; 409 where what is kept of it does not suffice",
            |call| Box::pin(rerun::rerun(call)),
        )
    },
    Route {
        query: inbox::OWNERS,
        headers: &[],
        gives: &[Given::new(
            200,
            "Owners, by name; one with nothing left is not among them.",
            &[Content::Json(schema::<Page<InboxOwner>>)],
        )],
        ..route(Verb::Get, "/v1/inbox", "inbox_owners", "Whose inbox holds something", |call| {
            Box::pin(inbox::owners(call))
        })
    },
    Route {
        query: inbox::QUERY,
        headers: &[],
        gives: &[Given::new(200, "What nobody holds, oldest first.", INBOX)],
        ..route(
            Verb::Get,
            "/v1/inbox/{owner}",
            "inbox",
            "Look into an owner's inbox, which changes nothing, or wait until something is there",
            |call| Box::pin(inbox::peek(call)),
        )
    },
    Route {
        headers: &[],
        takes: Some(Taken {
            contents: &[Content::Json(schema::<TakeRequest>)],
            required: false,
            limit: inbox::LIMIT,
        }),
        gives: &[Given::new(200, "Held for the caller until the lease ends.", INBOX)],
        ..route(
            Verb::Post,
            "/v1/inbox/{owner}/take",
            "take",
            "Take from an owner's inbox under a lease; what is neither acknowledged nor confirmed in time is available again",
            |call| Box::pin(inbox::take(call)),
        )
    },
    Route {
        headers: &[],
        takes: Some(Taken {
            contents: &[Content::Json(schema::<AckRequest>)],
            required: true,
            limit: inbox::LIMIT,
        }),
        gives: &[Given::new(200, "What was there, and is gone.", &[Content::Json(schema::<AckAnswer>)])],
        ..route(
            Verb::Post,
            "/v1/inbox/{owner}/ack",
            "ack",
            "Acknowledge: by the ids of notices, or of tasks",
            |call| Box::pin(inbox::acknowledge(call)),
        )
    },
    Route {
        headers: &[],
        gives: &[Given::new(
            200,
            "The session, or `null` where none is known, or several are.",
            &[Content::Json(schema::<Option<SessionInfo>>)],
        )],
        ..route(
            Verb::Get,
            "/v1/session",
            "session",
            "Which session of an agent the calling process is in, by its ancestors",
            |call| Box::pin(session::own(call)),
        )
    },
    Route {
        headers: &[],
        takes: Some(Taken {
            contents: &[Content::Json(schema::<BindRequest>)],
            required: true,
            limit: SMALL,
        }),
        gives: &[Given::new(200, "It is known.", SESSION)],
        ..route(
            Verb::Post,
            "/v1/sessions",
            "bind_session",
            "Say which session an agent is in; the caller is a hook that it has started",
            |call| Box::pin(session::bind(call)),
        )
    },
    Route {
        headers: &[],
        gives: &[Given::new(200, "Where it is, as far as it is known.", SESSION)],
        ..route(
            Verb::Get,
            "/v1/sessions/{owner}",
            "show_session",
            "Where a session of an agent is, and whether a hook waits for its results",
            |call| Box::pin(session::show(call)),
        )
    },
    Route {
        headers: &[],
        gives: &[Given::new(200, "It is in no process.", &[Content::Json(schema::<Value>)])],
        ..route(
            Verb::Delete,
            "/v1/sessions/{owner}",
            "unbind_session",
            "Say that a session has ended in its process",
            |call| Box::pin(session::unbind(call)),
        )
    },
    Route {
        query: deliveries::QUERY,
        gives: &[Given::new(200, "A page, newest first.", &[Content::Json(schema::<Page<Delivery>>)])],
        ..route(
            Verb::Get,
            "/v1/deliveries",
            "deliveries",
            "What went out, what waits, what is dead",
            |call| Box::pin(deliveries::list(call)),
        )
    },
    Route {
        gives: &[Given::new(200, "On its way again.", &[Content::Json(schema::<RedeliverAnswer>)])],
        ..route(
            Verb::Post,
            "/v1/deliveries/{id}/redeliver",
            "redeliver",
            "Send again: one delivery by its id, all of a task, or all in a state (`dead`)",
            |call| Box::pin(deliveries::redeliver(call)),
        )
    },
    Route {
        query: events::QUERY,
        headers: &[LAST_EVENT_ID],
        gives: &[Given {
            headers: events::HEADERS,
            ..Given::new(
                200,
                "As server-sent events, named by type, or with `follow=false` as JSON lines.",
                &[
                    Content::Events(&[
                        ("*", schema::<Event>),
                        ("reset", schema::<EventsReset>),
                        ("problem", schema::<Problem>),
                    ]),
                    Content::Lines(schema::<Event>),
                ],
            )
        }],
        ..route(Verb::Get, "/v1/events", "events", "The event log, as it is or as it grows", |call| {
            Box::pin(events::read(call))
        })
    },
    Route {
        headers: &[],
        gives: &[Given::new(200, "How it is.", &[Content::Json(schema::<StatusAnswer>)])],
        ..route(Verb::Get, "/v1/status", "status", "How the daemon is", |call| Box::pin(status::show(call)))
    },
    Route {
        headers: &[],
        gives: LISTENER,
        ..route(Verb::Get, "/v1/listener", "listener", "How the loopback listener is", |call| {
            Box::pin(listener::show(call))
        })
    },
    Route {
        headers: &[],
        takes: Some(Taken {
            contents: &[Content::Json(schema::<ListenerRequest>)],
            required: false,
            limit: SMALL,
        }),
        gives: LISTENER,
        ..route(
            Verb::Post,
            "/v1/listener",
            "listener_on",
            "Turn the loopback listener on; remembered, and only for callers on the socket",
            |call| Box::pin(listener::on(call)),
        )
    },
    Route {
        headers: &[],
        gives: LISTENER,
        ..route(
            Verb::Delete,
            "/v1/listener",
            "listener_off",
            "Turn the loopback listener off and cut its connections; only for callers on the socket",
            |call| Box::pin(listener::off(call)),
        )
    },
    Route {
        headers: &[],
        gives: &[Given::new(200, "The old one is worth nothing.", &[Content::Json(schema::<RotateAnswer>)])],
        ..route(
            Verb::Post,
            "/v1/token/rotate",
            "token_rotate",
            "Make another token and cut whoever came in by the old one; only for callers on the socket",
            |call| Box::pin(listener::rotate(call)),
        )
    },
    Route {
        headers: &[],
        gives: &[Given::new(
            200,
            "An address for a browser: good once, for as long as it says.",
            &[Content::Json(schema::<PageAnswer>)],
        )],
        ..route(
            Verb::Post,
            "/v1/page",
            "web",
            "Turn the loopback listener on and make an address that signs a browser in; only for callers on the socket",
            |call| Box::pin(listener::invite(call)),
        )
    },
    Route {
        headers: &[],
        gives: &[Given::new(200, "What was dropped.", &[Content::Json(schema::<GcAnswer>)])],
        ..route(Verb::Post, "/v1/gc", "gc", "Drop what is past its retention now", |call| {
            Box::pin(gc::gc(call))
        })
    },
    Route {
        headers: &[],
        gives: &[Given::new(200, "It is in force.", &[Content::Json(schema::<ReloadAnswer>)])],
        ..route(
            Verb::Post,
            "/v1/config/reload",
            "config_reload",
            "Read config.toml again now; 422 if it is broken, and the last good one stays in force",
            |call| Box::pin(config_reload::reload(call)),
        )
    },
    Route {
        headers: &[],
        gives: &[Given::new(202, "It will.", &[Content::Json(schema::<daemon_stop::DaemonStopAnswer>)])],
        ..route(
            Verb::Post,
            "/v1/daemon/stop",
            "daemon_stop",
            "End the daemon on purpose; tasks run on",
            |call| Box::pin(daemon_stop::stop(call)),
        )
    },
    Route {
        headers: &[],
        gives: &[Given::new(200, "It serves.", &[Content::Json(schema::<health::Health>)])],
        ..route(Verb::Get, "/healthz", "healthy", "Whether anybody serves", |call| {
            Box::pin(health::show(call))
        })
    },
    Route {
        headers: &[],
        gives: &[Given::new(
            200,
            "The text format of Prometheus; docs/metrics.md has every family.",
            &[Content::Text],
        )],
        ..route(Verb::Get, "/metrics", "metrics", "Figures for Prometheus", |call| {
            Box::pin(metrics::show(call))
        })
    },
    Route {
        headers: &[],
        gives: &[Given::new(200, "OpenAPI 3.1.", &[Content::Json(schema::<Value>)])],
        ..route(Verb::Get, "/openapi.json", "openapi", "This document", |call| Box::pin(openapi::show(call)))
    },
];
