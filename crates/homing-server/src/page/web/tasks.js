// The tasks that are known here, in the order of the list: live ones first, each newest first.

import { isLive } from "./format.js";

const all = new Map();
const listeners = new Set();
let sorted = [];
/** Tasks whose place in the order may be another. */
const moved = new Set();
let waiting = false;
/** When the last changes were shown, and how long that took, in milliseconds. */
let shown = 0;
let cost = 0;

/** Small texts of a task that a search looks at. */
const words = (task) => [task.name, task.command, task.owner, task.id, task.status, ...Object.entries(task.labels).map(([name, value]) => `${name}=${value}`)]
  .filter(Boolean).join("\n").toLowerCase();

function slim(task) {
  const { env_names: _names, attempts: _attempts, notices: _notices, deliveries: _deliveries, argv: _argv, ...rest } = task;
  rest.live = isLive(task);
  rest.at = Date.parse(rest.live ? task.created_at : (task.ended_at ?? task.created_at));
  rest.words = words(task);
  return rest;
}

/** What a row needs of a task of which only an event is known. */
const BARE = { name: null, command: "", labels: {}, kind: "command", status: "queued", created_at: null, started_at: null, ended_at: null, duration_ms: null, outcome: null, progress: null,
  queued_reason: null, waiting_for_input: false, bare: true };

function changed(id) {
  moved.add(id);
  soon();
}

/** What changes alone is shown at once. Where changes come one after the other they are shown together: the longer showing takes, the less often, so that there is time left for whoever scrolls. */
function soon() {
  if (waiting) return;
  waiting = true;
  setTimeout(() => {
    waiting = false;
    const begun = performance.now();
    for (const listener of listeners) listener();
    shown = performance.now();
    cost = shown - begun;
  }, Math.max(0, shown + Math.min(60, 2 * cost) - performance.now()));
}

const before = (a, b) => (b.live - a.live) || (b.at - a.at) || (a.id < b.id ? 1 : -1);

/** Where a task belongs among others that are in order. */
function place(others, task) {
  let [low, high] = [0, others.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (before(others[middle], task) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

export const tasks = {
  get: (id) => all.get(id),
  get size() { return all.size; },
  onChange: (listener) => listeners.add(listener),
  /** Shows all of it again. */
  touch: soon,
  /** Whether all there are are known: nothing is, before the first answer. */
  whole: false,

  put(task) {
    if (task.kind === "hook") return;
    if (task.forgotten) return tasks.remove(task.id);
    all.set(task.id, slim(task));
    changed(task.id);
  },

  /** What an event says of a task, before it is asked how it is now. */
  hint(id, facts) {
    all.set(id, slim({ ...(all.get(id) ?? { ...BARE, id }), ...facts }));
    changed(id);
  },

  remove(id) {
    if (all.delete(id)) changed(id);
  },

  clear() {
    for (const id of all.keys()) moved.add(id);
    all.clear();
    tasks.whole = false;
    soon();
  },

  /** Every task, in order. */
  ordered() {
    if (moved.size > 100) sorted = [...all.values()].sort(before);
    else if (moved.size) {
      sorted = sorted.filter((task) => !moved.has(task.id));
      for (const task of [...moved].map((id) => all.get(id))) if (task) sorted.splice(place(sorted, task), 0, task);
    }
    moved.clear();
    return sorted;
  },
};
