// The daemon's API. Every answer that is no success is a Problem: a sentence, a code, and what to do next.

export class Problem extends Error {
  constructor(status, body) {
    super(body?.detail ?? `the daemon answered ${status}`);
    this.status = status;
    this.code = body?.code ?? "";
    this.advice = body?.advice ?? "";
  }

  /** In one line, with the code. */
  get told() {
    return this.code ? `${this.message} (${this.code})` : this.message;
  }
}

/** What is told of any error. */
export const told = (error) => (error instanceof Problem ? error.told : "the daemon cannot be reached");

async function ask(method, path, { body, headers, signal } = {}) {
  const asked = { method, headers: { accept: "application/json", ...headers }, signal, credentials: "same-origin", cache: "no-store" };
  if (method !== "GET") {
    asked.headers["content-type"] = "application/json";
    if (method === "POST") asked.body = JSON.stringify(body ?? {});
  }
  return checked(await fetch(path, asked));
}

async function checked(answer) {
  if (!answer.ok) throw new Problem(answer.status, await answer.json().catch(() => null));
  return answer;
}

const json = async (...call) => (await ask(...call)).json();
const task = (id, rest = "") => `/v1/tasks/${encodeURIComponent(id)}${rest}`;
const query = (values) => {
  const given = Object.entries(values).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return given.length ? `?${new URLSearchParams(given)}` : "";
};

export const api = {
  status: () => json("GET", "/v1/status"),
  /** The tasks at the head of the list, and the newest event as of which they are so. The page itself asks for this (index.html) before its scripts are there; so the request is spelled as plainly. */
  async first() {
    const answer = await checked(await fetch("/v1/tasks?limit=60", { credentials: "same-origin" }));
    return { as_of: answer.headers.get("homing-as-of"), ...(await answer.json()) };
  },
  list: (values) => json("GET", `/v1/tasks${query(values)}`),
  task: (id) => json("GET", task(id)),
  submit: (spec, key) => json("POST", "/v1/tasks", { body: spec, headers: { "idempotency-key": key } }),
  stop: (id) => json("POST", task(id, "/stop"), { body: { by: "the page" } }),
  pause: (id) => json("POST", task(id, "/pause")),
  resume: (id) => json("POST", task(id, "/resume")),
  rerun: (id, owner, key) => json("POST", task(id, "/rerun"), { body: { owner }, headers: { "idempotency-key": key } }),
  forget: (id) => json("DELETE", task(id)),
  async owners() {
    const all = [];
    let cursor = null;
    do {
      const page = await json("GET", `/v1/inbox${query({ cursor })}`);
      all.push(...page.items);
      cursor = page.next_cursor;
    } while (cursor);
    return all;
  },
  inbox: (owner) => json("GET", `/v1/inbox/${encodeURIComponent(owner)}?limit=500`),
  acknowledge: (owner, ids) => json("POST", `/v1/inbox/${encodeURIComponent(owner)}/ack`, { body: { ids } }),
  deliveries: (values) => json("GET", `/v1/deliveries${query(values)}`),
  redeliver: (id) => json("POST", `/v1/deliveries/${encodeURIComponent(id)}/redeliver`),
  index: (id, offset, limit) => json("GET", task(id, `/output/index?offset=${offset}&limit=${limit}`)),
  download: (id) => task(id, "/output/file"),

  /** A stretch of output: its bytes, and what is before and after it. */
  async output(id, values, signal) {
    const answer = await ask("GET", task(id, `/output${query(values)}`), { signal });
    const head = (name) => Number(answer.headers.get(name));
    return {
      offset: head("homing-offset"), next: head("homing-end"), gap: head("homing-gap"), dropped: head("homing-dropped"),
      complete: answer.headers.get("homing-complete") === "true", bytes: new Uint8Array(await answer.arrayBuffer()),
    };
  },
};

/** A key for a request that may be sent again. */
export const key = () => crypto.randomUUID();
