// One task: how it is, what it printed, what was told of it and where that went.

import { actions, buttons } from "./actions.js";
import { api, Problem, told } from "./api.js";
import { go, read } from "./address.js";
import { table as deliveries } from "./deliveries.js";
import { el, fill, say, sign } from "./dom.js";
import { bytes, clock, duration, isLive, line, lines, ran, sentence, title, word } from "./format.js";
import { answered, onEvent, onStanding } from "./live.js";
import { viewer } from "./output.js";
import { tasks } from "./tasks.js";

const TABS = [["output", "Output"], ["about", "Details"], ["notices", "Notices"]];

const pair = (name, ...value) => (value.flat(Infinity).some((part) => part !== "" && part !== null && part !== undefined)
  ? [el("dt", {}, name), el("dd", {}, value.filter((part) => part !== null && part !== undefined))] : []);

function facts(task) {
  const outcome = task.outcome;
  const waited = task.started_at ? Date.parse(task.started_at) - Date.parse(task.created_at) : null;
  return el("dl", { class: "facts" },
    pair("Status", sentence(task)),
    pair("Command", el("code", {}, line(task.command))),
    pair("Folder", task.cwd ? el("code", {}, line(task.cwd)) : ""),
    pair("Description", line(task.description)),
    pair("Owner", line(task.owner)),
    pair("Labels", Object.entries(task.labels).map(([name, value]) => el("button", {
      type: "button", class: "tag", title: "Only tasks with this label", on: { click: () => go({ view: "tasks", label: `${name}=${value}` }) },
    }, line(`${name}=${value}`)))),
    pair("Progress", task.progress ? [task.progress.percent === null ? "" : `${Math.round(task.progress.percent)} % `, line(task.progress.text)] : ""),
    pair("Accepted", clock(task.created_at)),
    pair("Started", clock(task.started_at), waited > 50 ? ` after ${duration(waited)}` : ""),
    pair("Ended", clock(task.ended_at)),
    pair("Ran", duration(ran(task))),
    pair("Exit code", outcome?.exit_code ?? ""),
    pair("Signal", outcome?.signal ?? ""),
    pair("Survivors", (outcome?.survivors ?? []).map((one) => `${one.pid} ${line(one.name)}`).join(", ")),
    pair("Memory, peak", outcome?.max_rss_bytes ? bytes(outcome.max_rss_bytes) : ""),
    pair("Processor time", outcome?.cpu_ms ? duration(outcome.cpu_ms) : ""),
    pair("Output", task.kind === "external" ? "" : `${bytes(task.output.bytes)}${task.output.dropped ? `, ${bytes(task.output.dropped)} of it no longer kept` : ""}`),
    pair("Output file", task.output.path ? el("code", {}, line(task.output.path)) : ""),
    pair("Time limit", task.timeout_ms ? duration(task.timeout_ms) : ""),
    pair("Watched for", task.watch.map(line).join(", ")),
    pair("Told", `${task.notify.on}: ${task.notify.targets.map(line).join(", ") || "nobody"}`),
    pair("Process", task.pid ?? ""),
    pair("Started by", task.parent ? el("a", { href: `/?task=${encodeURIComponent(task.parent)}`, "data-task": task.parent }, task.parent) : ""),
    pair("Agent", task.agent ? line([task.agent.name, task.agent.session_id].filter(Boolean).join(" ")) : ""),
    pair("Variables", task.env_names?.length ? el("details", {}, el("summary", {}, `${task.env_names.length} names`), el("p", { class: "mono" }, line(task.env_names.join(" ")))) : ""),
    pair("Id", el("code", {}, task.id)));
}

function attempts(task) {
  if (!(task.attempts?.length > 1)) return null;
  const rows = task.attempts.map((attempt) => el("tr", {}, el("td", {}, attempt.number), el("td", {}, sign(attempt.status), ` ${sentence(attempt)}`),
    el("td", {}, clock(attempt.started_at)), el("td", {}, duration(attempt.duration_ms))));
  return [el("h3", {}, "Attempts"), el("table", {}, el("thead", {}, el("tr", {}, ["No.", "How it ended", "Started", "Ran"].map((name) => el("th", { scope: "col" }, name)))),
    el("tbody", {}, rows))];
}

const INBOX = { none: "not in the inbox", waiting: "waits in the inbox", held: "held", acknowledged: "acknowledged" };

function notices(task, again) {
  const told = task.notices ?? [];
  const rows = told.map((notice) => el("tr", {}, el("td", {}, line(notice.type ?? "damaged")), el("td", {}, clock(notice.at)), el("td", {}, INBOX[notice.inbox] ?? notice.inbox),
    el("td", {}, notice.inbox === "waiting" && el("button", { type: "button", on: { click: async () => { await actions.acknowledge(task.owner, [notice.id]); again(); } } }, "Acknowledge"))));
  return el("div", { class: "told" },
    told.length ? el("table", {}, el("thead", {}, el("tr", {}, ["Notice", "When", "Inbox"].map((name) => el("th", { scope: "col" }, name)), el("td", {}))), el("tbody", {}, rows))
      : el("p", { class: "dim" }, isLive(task) ? "Nothing was told of it yet." : "Nothing was told of it."),
    task.deliveries?.length ? [el("h3", {}, "Deliveries"), deliveries(task.deliveries, { again, task: false })] : null);
}

/** The right side of the page. */
export function detail() {
  const back = el("button", { type: "button", class: "back", "aria-label": "Close the task", title: "Close (Esc)", on: { click: () => go({ task: "", tab: "" }) } }, "\u00d7");
  const heading = el("h2", { tabindex: "-1" });
  const badge = el("p", { class: "badge", role: "status" });
  const acts = el("div", { class: "buttons" });
  const tabs = TABS.map(([name, text]) => el("button", {
    type: "button", role: "tab", id: `tab-${name}`, "aria-controls": "panel", on: { click: () => go({ tab: name }, { replace: true }), keydown: arrow },
  }, text));
  const panel = el("div", { class: "panel", id: "panel", role: "tabpanel", tabindex: "0" });
  const answer = el("section", { class: "answer", "aria-label": "Answer", hidden: true });
  const node = el("article", { class: "detail" },
    el("header", { class: "head" }, el("div", { class: "heading" }, heading, back), el("div", { class: "state" }, badge, acts)), answer,
    el("div", { class: "tabs", role: "tablist", "aria-label": "About this task" }, tabs), panel);
  let id = "";
  let whole = null;
  let output = null;
  let asked = 0;
  let drawn = "";

  function arrow(event) {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    const next = tabs[(tabs.indexOf(event.target) + by + tabs.length) % tabs.length];
    next.focus();
    next.click();
  }

  async function load() {
    const mine = ++asked;
    const wanted = id;
    try {
      const found = await api.task(wanted);
      if (mine !== asked || wanted !== id) return;
      whole = found;
      if (!found.forgotten) answered(found);
      draw();
    } catch (error) {
      if (mine !== asked || wanted !== id || !(error instanceof Problem)) return;
      // Signed out, or a daemon that is on its way: that says nothing of the task, and what is shown stays.
      if (error.status === 401 || error.status >= 500) return;
      close();
      badge.dataset.state = "";
      say(heading, wanted);
      fill(badge, told(error));
      fill(panel, el("p", { class: "empty" }, error.advice));
    }
  }

  /** The newest that is known: what came by an event, with the lists of the whole one. */
  function task() {
    const known = tasks.get(id)?.bare ? undefined : tasks.get(id);
    if (!whole || whole.id !== id) return known;
    return known ? { ...whole, ...known } : whole;
  }

  function draw() {
    const shown = task();
    if (!shown) return;
    say(heading, title(shown));
    const long = ran(shown);
    const state = `${shown.id} ${sentence(shown)}`;
    if (badge.dataset.state !== state) {
      badge.dataset.state = state;
      fill(badge, el("span", { class: `pill s-${shown.status}` }, sign(shown.status), word(shown.status)),
        el("span", { class: "why" }, sentence(shown) === word(shown.status) ? "" : sentence(shown).slice(word(shown.status).length).replace(/^[,:] /, "")),
        el("span", { class: "long" }));
      fill(acts, shown.forgotten ? [] : buttons(shown));
      document.title = `${title(shown)} \u2013 ${word(shown.status)}`;
    }
    say(badge.querySelector(".long"), long === null ? "" : duration(long));
    answer.hidden = !shown.answer;
    if (shown.answer) fill(answer, el("h3", {}, shown.answer_state === "ok" ? "Answer" : "No answer"), el("p", {}, lines(shown.answer)));
    const tab = TABS.find(([name]) => name === read().tab)?.[0] ?? (shown.kind === "external" ? "about" : "output");
    for (const [at, [name]] of TABS.entries()) {
      tabs[at].setAttribute("aria-selected", String(name === tab));
      tabs[at].tabIndex = name === tab ? 0 : -1;
      tabs[at].hidden = name === "output" && shown.kind === "external";
    }
    panel.setAttribute("aria-labelledby", `tab-${tab}`);
    panel.classList.toggle("flush", tab === "output");
    if (tab === "output") showOutput(shown);
    else {
      close();
      // Drawn again only where something is another: what somebody reads or has selected stays.
      const now = `${tab} ${JSON.stringify(whole ? { ...shown, words: 0 } : null)} ${tab === "about" && shown.live ? Math.floor(Date.now() / 1000) : ""}`;
      if (now === drawn) return;
      drawn = now;
      if (tab === "about") fill(panel, facts(shown), attempts(shown));
      else fill(panel, notices(shown, load));
    }
  }

  function showOutput(shown) {
    drawn = "";
    if (shown.forgotten) {
      close();
      fill(panel, el("p", { class: "empty" }, "This task is past its retention: its outcome is kept, its output is not."));
    } else if (output?.id !== shown.id) {
      close();
      output = viewer(shown);
      fill(panel, output.node);
      output.start();
    } else output.update(shown);
  }

  function close() {
    output?.close();
    output = null;
  }

  tasks.onChange(() => { if (id && node.isConnected) draw(); });
  onEvent((event) => { if (id && (event.task_id === id || event.type === "reset")) load(); });
  onStanding(({ state }) => { if (state === "live" && id && !whole) load(); });
  setInterval(() => { if (id && !document.hidden && task()?.live) draw(); }, 1000);

  return {
    node,
    show(wanted) {
      if (wanted !== id) {
        close();
        [id, whole, drawn] = [wanted, null, ""];
        badge.dataset.state = "";
        fill(badge);
        fill(acts);
        fill(panel);
        answer.hidden = true;
        if (!wanted) { document.title = "homing"; return; }
        say(heading, wanted);
        load();
      }
      if (id) draw();
    },
    current: () => (id ? task() : null),
    output: () => output,
    focus: () => heading.focus(),
  };
}
