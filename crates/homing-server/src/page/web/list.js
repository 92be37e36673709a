// The list of tasks. Only what is in sight has elements, however many tasks there are.

import { go, read } from "./address.js";
import { el, say, sign } from "./dom.js";
import { ago, duration, line, number, ran, title, word } from "./format.js";
import { bar, chosen } from "./filters.js";
import { onStanding } from "./live.js";
import { tasks } from "./tasks.js";

const ROW = 48;
const BEYOND = 6;

function row() {
  const parts = {
    sign: el("span", { class: "place" }), title: el("span", { class: "title" }), command: el("span", { class: "command" }), about: el("span", { class: "about" }),
    status: el("span", { class: "status" }), time: el("span", { class: "time" }),
  };
  const node = el("div", { class: "row", role: "option" }, parts.sign, el("span", { class: "what" }, parts.title, parts.command), parts.status, parts.about, parts.time);
  return { node, parts, id: "", shown: "" };
}

/** What stands under a task's name. */
function about(task) {
  const labels = Object.entries(task.labels).map(([name, value]) => `${name}=${value}`);
  const parts = [task.owner, ...labels, ago(task.at)];
  if (task.progress && task.live) parts.unshift([task.progress.percent === null ? "" : `${Math.round(task.progress.percent)} %`, task.progress.text ?? ""].filter(Boolean).join(" "));
  if (task.waiting_for_input) parts.unshift("waits for input");
  if (task.queued_reason && task.status === "queued") parts.unshift(task.queued_reason);
  return parts.filter(Boolean).map(line).join(" \u00b7 ");
}

function draw(row, task, place, count, selected) {
  const { node, parts } = row;
  if (row.id !== task.id || row.status !== task.status) {
    parts.sign.replaceChildren(sign(task.status));
    node.dataset.id = task.id;
    node.id = `row-${task.id}`;
    parts.status.className = `status s-${task.status}`;
  }
  [row.id, row.status] = [task.id, task.status];
  const code = task.outcome?.exit_code;
  say(parts.title, title(task));
  say(parts.command, task.name ? line(task.command) : "");
  say(parts.status, task.status === "failed" && code ? `exit ${code}` : word(task.status));
  say(parts.about, about(task));
  say(parts.time, duration(ran(task)));
  node.style.transform = `translateY(${place * ROW}px)`;
  node.setAttribute("aria-selected", String(selected));
  node.setAttribute("aria-setsize", count);
  node.setAttribute("aria-posinset", place + 1);
}

/** The list with its filters. */
export function list() {
  const filters = bar();
  const layer = el("div", { class: "rows", role: "presentation" });
  const box = el("div", { class: "list", id: "list", role: "listbox", tabindex: "0", "aria-label": "Tasks", on: { scroll: () => draft(), keydown: key, click } }, layer);
  const empty = el("p", { class: "empty", hidden: true });
  const node = el("div", { class: "view-list" }, filters.node, box, empty);
  let shown = [];
  let rows = [];
  let waiting = 0;
  let cursor = 0;
  let standing = "connecting";

  function draft() {
    waiting ||= requestAnimationFrame(() => { waiting = 0; paint(); });
  }

  function paint() {
    const first = Math.max(0, Math.floor(box.scrollTop / ROW) - BEYOND);
    const last = Math.min(shown.length, Math.ceil((box.scrollTop + box.clientHeight) / ROW) + BEYOND);
    const wanted = new Set(shown.slice(first, last).map((task) => task.id));
    const kept = new Map(rows.filter((row) => wanted.has(row.id)).map((row) => [row.id, row]));
    const spare = rows.filter((row) => !wanted.has(row.id));
    const selected = read().task;
    const next = [];
    for (let place = first; place < last; place += 1) {
      const task = shown[place];
      const taken = kept.get(task.id) ?? spare.pop() ?? row();
      draw(taken, task, place, shown.length, task.id === selected);
      if (!taken.node.isConnected) layer.append(taken.node);
      next.push(taken);
    }
    for (const row of spare) row.node.remove();
    rows = next;
    const active = shown[cursor];
    if (active && wanted.has(active.id)) box.setAttribute("aria-activedescendant", `row-${active.id}`);
    else box.removeAttribute("aria-activedescendant");
  }

  /** Why nothing is shown. Before all tasks are known nobody can say that there are none. */
  function nothing() {
    if (tasks.whole) return tasks.size ? "No task fits these filters." : "Nothing ran here yet. \u201cNew task\u201d starts something; so does `homing run` in a terminal.";
    if (standing === "lost") return "Connection lost, retrying. The tasks are shown once the daemon answers.";
    return standing === "signed-out" ? "Signed out: the tasks are shown once this browser is signed in." : "Loading the tasks";
  }

  function show() {
    if (!node.isConnected) return;
    filters.show();
    shown = chosen();
    const selected = read().task;
    const at = shown.findIndex((task) => task.id === selected);
    cursor = at >= 0 ? at : Math.min(cursor, Math.max(0, shown.length - 1));
    layer.style.height = `${shown.length * ROW}px`;
    empty.hidden = shown.length > 0;
    say(empty, nothing());
    box.dataset.count = shown.length;
    box.setAttribute("aria-label", `Tasks, ${number(shown.length)}`);
    paint();
  }

  function reveal(place) {
    const top = place * ROW;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + ROW > box.scrollTop + box.clientHeight) box.scrollTop = top + ROW - box.clientHeight;
  }

  /** Goes to another task of the list, and shows it. */
  function move(by) {
    if (!shown.length) return;
    const selected = read().task;
    const from = shown.findIndex((task) => task.id === selected);
    cursor = from < 0 ? (by > 0 ? 0 : shown.length - 1) : Math.min(shown.length - 1, Math.max(0, from + by));
    reveal(cursor);
    go({ task: shown[cursor].id }, { replace: Boolean(selected) });
  }

  function key(event) {
    const page = Math.max(1, Math.floor(box.clientHeight / ROW) - 1);
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -shown.length, End: shown.length }[event.key];
    if (by === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    move(by);
  }

  function click(event) {
    const found = event.target.closest?.(".row");
    if (found) go({ task: found.dataset.id });
  }

  tasks.onChange(show);
  onStanding(({ state }) => { standing = state; show(); });
  new ResizeObserver(draft).observe(box);
  setInterval(() => { if (node.isConnected && !document.hidden) paint(); }, 1000);
  return { node, show, move, focus: () => box.focus(), filter: filters.focus };
}
