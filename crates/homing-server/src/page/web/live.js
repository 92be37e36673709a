// What the daemon tells as it happens. The head of the list comes first, with the newest event as of which it is so; the stream goes on from there, and the rest of the list comes by
// pages. What an event says is shown at once, and how the task is now is asked, so that what is shown is never older than the last event. When the stream breaks it is begun again after
// the last event that was heard: nothing is missed, and nobody has to reload.

import { api, Problem } from "./api.js";
import { tasks } from "./tasks.js";

/** A cursor that no log has: it is answered with the tasks and the cursor to go on from. */
const BEGINNING = "9223372036854775807";
const KINDS = ["task.queued", "task.started", "task.stopping", "task.completed", "task.matched", "task.quiet", "task.heartbeat", "task.progress", "task.paused",
  "task.resumed", "task.forgotten", "delivery.delivered", "delivery.superseded", "delivery.dead", "wake.paused", "watch.paused", "daemon.started"];
/** As many changes at once are asked for one by one; of more, a page. */
const ONE_BY_ONE = 24;
const WAITS = [250, 500, 1000, 2000, 4000];

/** After which event the stream goes on; nothing before the first answer. */
let cursor = null;
let source = null;
/** Which attempt to begin or go on this is. */
let turn = 0;
let failures = 0;
let timer = 0;
let loading = false;
/** Where the tasks that are not known yet begin. */
let more = null;
const changed = new Set();
/** Tasks of which an event told another status since they were last asked for. */
const told = new Set();
let asking = false;
const heard = new Set();
const stands = new Set();
let standing = { state: "connecting" };

/** Calls back with each event, after the task it is about was asked for. */
export const onEvent = (listener) => heard.add(listener);
/** Calls back with how the connection is. */
export const onStanding = (listener) => { stands.add(listener); listener(standing); };

function stand(next) {
  standing = next;
  for (const listener of stands) listener(next);
}

function open() {
  clearTimeout(timer);
  source?.close();
  source = null;
  turn += 1;
  if (cursor === null) begin(turn);
  else follow();
}

async function begin(mine) {
  try {
    const head = await api.first();
    if (mine !== turn) return;
    fresh(head, head.as_of ?? BEGINNING);
    follow();
  } catch (error) {
    if (mine === turn) lost(error);
  }
}

/** Tasks to begin with, in the place of whatever is known. */
function fresh({ items, next_cursor: rest }, at) {
  cursor = at;
  tasks.clear();
  for (const task of items) tasks.put(task);
  more = rest;
  tasks.whole = !more;
}

function follow() {
  const mine = new EventSource(`/v1/events?after=${cursor}`);
  source = mine;
  mine.addEventListener("open", () => { if (cursor !== BEGINNING) arrived(); });
  mine.addEventListener("error", () => { if (source === mine) lost(); });
  mine.addEventListener("reset", (event) => {
    fresh(JSON.parse(event.data).tasks, event.lastEventId);
    arrived();
    tell({ type: "reset" });
  });
  for (const kind of KINDS) mine.addEventListener(kind, (event) => { cursor = event.lastEventId; take(JSON.parse(event.data)); });
}

function arrived() {
  failures = 0;
  stand({ state: "live" });
  load();
}

async function lost(error) {
  source?.close();
  source = null;
  const wait = WAITS[Math.min(failures, WAITS.length - 1)];
  failures += 1;
  if (standing.state !== "signed-out") stand({ state: "lost" });
  timer = setTimeout(open, wait);
  // A stream does not say why it broke; another request does.
  const refused = (problem) => problem instanceof Problem && problem.status === 401;
  let why = refused(error) ? "signed-out" : "lost";
  if (!error) {
    try {
      await api.status();
    } catch (problem) {
      if (refused(problem)) why = "signed-out";
    }
  }
  if (standing.state !== "live" && standing.state !== why) stand({ state: why });
}

/** The tasks beyond those that the stream began with, page by page. */
async function load() {
  if (loading) return;
  loading = true;
  try {
    while (more) {
      const asked = more;
      const answer = await api.list({ limit: 1000, cursor: asked });
      if (asked !== more) continue;
      // What an event brought since is newer than the page.
      for (const task of answer.items) if (!tasks.get(task.id)) tasks.put(task);
      more = answer.next_cursor;
      tasks.whole = !more;
      tasks.touch();
    }
  } catch {
    // The stream breaks too; when it is back this goes on.
  }
  loading = false;
}

/** What an event says of its task by itself: another status, or nothing. */
const SAYS = {
  "task.queued": ({ at, owner, data }, known) => known === undefined && { owner, name: data.name, command: data.command, created_at: at },
  "task.started": ({ at }, known) => ["queued", "starting"].includes(known?.status) && { status: "running", started_at: at },
  "task.paused": (_, known) => known?.status === "running" && { status: "paused" },
  "task.resumed": (_, known) => known?.status === "paused" && { status: "running" },
  "task.stopping": (_, known) => known?.live && { status: "stopping" },
  "task.completed": ({ data }, known) => known?.live && data.status && data.ended_at
    && { status: data.status, outcome: data.outcome ?? null, started_at: data.started_at ?? null, ended_at: data.ended_at, duration_ms: data.duration_ms ?? null },
};

function take(event) {
  const id = event.task_id;
  if (id && !event.type.startsWith("delivery.")) {
    if (event.type === "task.forgotten") tasks.remove(id);
    else {
      const facts = SAYS[event.type]?.(event, tasks.get(id));
      if (facts) {
        tasks.hint(id, facts);
        told.add(id);
      }
      changed.add(id);
    }
  }
  if (!asking) settle();
  tell(event);
}

function tell(event) {
  for (const listener of heard) listener(event);
}

/** Asks how what changed is now, until nothing is left to ask. */
async function settle() {
  asking = true;
  while (changed.size) {
    const now = [...changed];
    changed.clear();
    try {
      await refresh(new Set(now));
    } catch {
      // Asked again when the stream is back: an event that could not be followed up must not be forgotten.
      for (const id of now) changed.add(id);
      break;
    }
  }
  asking = false;
}

/** Takes an answer in, unless an event has told more since it was asked for: then it is asked for again. */
export const answered = (task) => { if (!told.has(task.id)) tasks.put(task); };

async function refresh(ids) {
  for (const id of ids) told.delete(id);
  if (ids.size > ONE_BY_ONE) {
    const page = await api.list({ limit: 500 });
    for (const task of page.items) if (ids.delete(task.id)) answered(task);
  }
  const rest = [...ids];
  const worker = async () => {
    for (let id = rest.pop(); id; id = rest.pop()) {
      try {
        answered(await api.task(id));
      } catch (error) {
        if (!(error instanceof Problem) || error.status !== 404) throw error;
        tasks.remove(id);
      }
    }
  };
  await Promise.all([worker(), worker(), worker()]);
}

/** Now, not when it is time. */
export function retry() {
  failures = 0;
  open();
}

/** Begins, and rests while nobody looks: a browser has few connections to one host, and other tabs want theirs. */
export function start() {
  open();
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      clearTimeout(timer);
      turn += 1;
      source?.close();
      source = null;
    } else if (!source) {
      retry();
    }
  });
  onStanding(({ state }) => { if (state === "live" && changed.size && !asking) settle(); });
}
