// When each task waited, ran and ended, drawn over time. Closer and wider by wheel, keys and buttons; earlier and later by dragging, keys and buttons.

import { go, read } from "./address.js";
import { el, say } from "./dom.js";
import { chosen } from "./filters.js";
import { clock, duration, number, ran, sentence, title } from "./format.js";
import { tasks } from "./tasks.js";

const HOUR = 3_600_000;
const [LEAST, MOST] = [10_000, 14 * 24 * HOUR];
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800].map((seconds) => seconds * 1000);
const AXIS = 26;
const PRESETS = [["15 min", HOUR / 4], ["1 h", HOUR], ["6 h", 6 * HOUR], ["24 h", 24 * HOUR]];

/** Tasks of a stretch of time in lanes, so that none covers another. */
function lanes(items, gap) {
  const free = [];
  const last = [];
  for (const item of items) {
    let lane = free.findIndex((until) => until <= item.from);
    if (lane < 0) lane = free.length;
    // So many at once cannot be told apart any more.
    if (lane > 400) lane = 400;
    free[lane] = item.to + gap;
    item.lane = lane;
    if (last[lane]) last[lane].next = item.from;
    last[lane] = item;
  }
  return free.length;
}

/** The view. */
export function view() {
  const canvas = el("canvas", { role: "img" });
  const tip = el("p", { class: "tip", role: "status" });
  const field = el("div", { class: "field", tabindex: "0", role: "group", "aria-label": "Timeline: plus and minus zoom, left and right arrows move, Home goes to now" }, canvas);
  const button = (text, label, act) => el("button", { type: "button", "aria-label": label, title: label, on: { click: act } }, text);
  const bar = el("div", { class: "filters timebar" },
    el("div", { class: "groups", role: "group", "aria-label": "Stretch" }, PRESETS.map(([text, span]) => el("button", { type: "button", "data-span": span, on: { click: () => { width = span; pinned = true; draft(); } } }, text))),
    el("div", { class: "buttons" }, button("\u2190", "Earlier", () => pan(-0.5)), button("\u2192", "Later", () => pan(0.5)), button("\u2212", "Wider", () => zoom(1.6)), button("+", "Closer", () => zoom(1 / 1.6)),
      button("Now", "To now", () => { pinned = true; draft(); })),
    el("ul", { class: "legend", "aria-label": "Colours" }, [["queued", "waited"], ["running", "runs"], ["succeeded", "succeeded"], ["failed", "failed"], ["stopped", "stopped"]].map(([state, text]) => el("li", {}, el("span", { class: `swatch w-${state}` }), text))));
  const node = el("div", { class: "view-list timeline" }, bar, field, tip);
  let width = HOUR;
  let end = Date.now();
  let pinned = true;
  let boxes = [];
  let frame = 0;
  let hover = null;

  const draft = () => { frame ||= requestAnimationFrame(() => { frame = 0; paint(); }); };

  function zoom(factor, at = 1) {
    const fixed = end - width * (1 - at);
    width = Math.min(MOST, Math.max(LEAST, width * factor));
    end = fixed + width * (1 - at);
    pinned = pinned && at > 0.98;
    keep();
  }

  function pan(part) {
    end += width * part;
    pinned = false;
    keep();
  }

  function keep() {
    if (end >= Date.now()) [end, pinned] = [Date.now(), true];
    draft();
  }

  function colours() {
    const style = getComputedStyle(node);
    const value = (name) => style.getPropertyValue(name).trim();
    return { text: value("--text"), dim: value("--dim"), line: value("--line"), accent: value("--accent"), wait: value("--wait"), panel: value("--panel"),
      running: value("--blue"), paused: value("--amber"), stopping: value("--amber"), starting: value("--blue"), queued: value("--wait"), succeeded: value("--green"), failed: value("--red"),
      timed_out: value("--red"), start_failed: value("--red"), lost: value("--red"), stopped: value("--grey") };
  }

  function paint() {
    if (!node.isConnected) return;
    const now = Date.now();
    if (pinned) end = now;
    const [from, to] = [end - width, end + width * 0.02];
    const [wide, tall] = [field.clientWidth, field.clientHeight];
    if (!wide || !tall) return;
    const scale = devicePixelRatio || 1;
    if (canvas.width !== Math.round(wide * scale) || canvas.height !== Math.round(tall * scale)) {
      [canvas.width, canvas.height] = [Math.round(wide * scale), Math.round(tall * scale)];
      [canvas.style.width, canvas.style.height] = [`${wide}px`, `${tall}px`];
    }
    const ink = canvas.getContext("2d");
    const paints = colours();
    ink.setTransform(scale, 0, 0, scale, 0, 0);
    ink.clearRect(0, 0, wide, tall);
    const x = (time) => ((time - from) / (to - from)) * wide;
    axis(ink, paints, { from, to, wide, tall, x });

    const items = chosen({ ...read(), status: "" }).map((task) => ({
      task, from: Date.parse(task.created_at), started: task.started_at ? Date.parse(task.started_at) : null, to: task.ended_at ? Date.parse(task.ended_at) : now,
    })).filter((item) => item.to >= from && item.from <= to).sort((a, b) => a.from - b.from);
    const pixel = (to - from) / wide;
    const count = lanes(items, pixel * 3);
    const high = Math.max(2.5, Math.min(22, (tall - AXIS - 8) / Math.max(1, count)));
    const thick = Math.max(2, high - (high > 8 ? 4 : 1));
    ink.font = "12px system-ui, sans-serif";
    ink.textBaseline = "middle";
    boxes = [];
    // How far each lane is written on.
    const used = [];
    for (const item of items) {
      const top = AXIS + 6 + item.lane * high;
      if (top > tall) continue;
      const [left, right] = [Math.max(-4, x(item.from)), Math.min(wide + 4, Math.max(x(item.to), x(item.from) + 3))];
      const begun = item.started === null ? right : Math.min(right, Math.max(left, x(item.started)));
      boxes.push({ item, left: left - 1, right: right + 1, top, bottom: top + high });
      if (begun - left > 0.5) {
        ink.fillStyle = paints.wait;
        ink.fillRect(left, top + thick / 2 - Math.max(1, thick / 6), begun - left, Math.max(2, thick / 3));
      }
      if (item.started !== null || !item.task.live) {
        ink.fillStyle = paints[item.task.status] ?? paints.dim;
        ink.globalAlpha = item.task.live ? 0.85 : 0.75;
        ink.beginPath();
        ink.roundRect(Math.min(begun, right - 3), top, Math.max(3, right - begun), thick, Math.min(3, thick / 2));
        ink.fill();
        ink.globalAlpha = 1;
        // Its end, so that it is seen without the colour too.
        if (!item.task.live) ink.fillRect(right - 2, top, 2, thick);
      }
      if (item.task.id === read().task || item === hover?.item) {
        ink.strokeStyle = paints.text;
        ink.lineWidth = 1.5;
        ink.strokeRect(left - 1, top - 1, right - left + 2, thick + 2);
      }
      used[item.lane] = label(ink, paints, { item, left, right, begun, top, thick, next: item.next === undefined ? wide : x(item.next), before: used[item.lane] ?? 0 });
    }
    describe(items, from, now);
  }

  /** What it is: in the bar where there is room, else behind it or before it, where nothing else is. Says how far that goes. */
  function label(ink, paints, { item, left, right, begun, top, thick, next, before }) {
    if (thick < 13) return right;
    const text = title(item.task);
    const wide = ink.measureText(text).width + 12;
    const inside = right - begun > 50;
    let [at, room] = [Math.max(begun, 0), right - Math.max(begun, 0) - 4];
    if (!inside) {
      [at, room] = [right, Math.min(240, next - right - 8)];
      if (room < wide && left - before - 8 > room) [at, room] = [Math.max(before + 8, left - Math.min(wide, 240)), Math.min(240, left - before - 8, wide)];
    }
    if (room < 40) return right;
    ink.save();
    ink.beginPath();
    ink.rect(at, top, room, thick);
    ink.clip();
    ink.fillStyle = inside ? paints.panel : paints.dim;
    ink.fillText(text, at + 6, top + thick / 2 + 0.5);
    ink.restore();
    return Math.max(right, at + Math.min(wide, room));
  }

  function axis(ink, paints, { from, to, wide, tall, x }) {
    const step = STEPS.find((size) => ((size / (to - from)) * wide) > 70) ?? STEPS.at(-1);
    ink.font = "11px system-ui, sans-serif";
    ink.textBaseline = "middle";
    const offset = new Date(from).getTimezoneOffset() * 60_000;
    for (let tick = Math.ceil((from - offset) / step) * step + offset; tick < to; tick += step) {
      ink.fillStyle = paints.line;
      ink.fillRect(Math.round(x(tick)), AXIS - 6, 1, tall);
      ink.fillStyle = paints.dim;
      const text = clock(new Date(tick).toISOString());
      ink.fillText(step < 60_000 ? text : text.slice(0, -3), Math.round(x(tick)) + 4, 11);
    }
    ink.fillStyle = paints.accent;
    ink.fillRect(Math.round(x(Date.now())), AXIS - 6, 1.5, tall);
  }

  function describe(items, from, now) {
    const live = items.filter(({ task }) => task.live).length;
    const failed = items.filter(({ task }) => ["failed", "timed_out", "start_failed", "lost"].includes(task.status)).length;
    canvas.setAttribute("aria-label", `${number(items.length)} tasks between ${clock(new Date(from).toISOString())} and ${clock(new Date(Math.min(end, now)).toISOString())}: ${number(live)} live, ${number(failed)} failed`);
    canvas.dataset.count = items.length;
    canvas.dataset.width = Math.round(width);
    for (const one of bar.querySelectorAll("[data-span]")) one.setAttribute("aria-pressed", String(Number(one.dataset.span) === Math.round(width)));
  }

  const at = (event) => {
    const area = canvas.getBoundingClientRect();
    const [left, top] = [event.clientX - area.left, event.clientY - area.top];
    return boxes.find((box) => left >= box.left && left <= box.right && top >= box.top && top <= box.bottom) ?? null;
  };

  let dragging = null;
  field.addEventListener("pointerdown", (event) => { dragging = { x: event.clientX, end, moved: false }; field.setPointerCapture(event.pointerId); });
  field.addEventListener("pointermove", (event) => {
    if (dragging) {
      const by = event.clientX - dragging.x;
      if (Math.abs(by) > 3) dragging.moved = true;
      if (dragging.moved) { end = dragging.end - (by / field.clientWidth) * width; pinned = false; keep(); }
      return;
    }
    hover = at(event);
    field.classList.toggle("over", Boolean(hover));
    say(tip, hover ? `${title(hover.item.task)} \u00b7 ${sentence(hover.item.task)}${ran(hover.item.task) === null ? "" : ` \u00b7 ${duration(ran(hover.item.task))}`}` : "");
    draft();
  });
  field.addEventListener("pointerup", (event) => {
    const found = dragging && !dragging.moved ? at(event) : null;
    dragging = null;
    if (found) go({ task: found.item.task.id });
  });
  field.addEventListener("pointerleave", () => { hover = null; say(tip, ""); draft(); });
  field.addEventListener("wheel", (event) => {
    event.preventDefault();
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) return pan((event.deltaX || event.deltaY) / field.clientWidth);
    const area = canvas.getBoundingClientRect();
    zoom(Math.exp(event.deltaY / 400), (event.clientX - area.left) / area.width);
  }, { passive: false });
  field.addEventListener("keydown", (event) => {
    const act = { "+": () => zoom(1 / 1.6), "=": () => zoom(1 / 1.6), "-": () => zoom(1.6), ArrowLeft: () => pan(-0.1), ArrowRight: () => pan(0.1), Home: () => { pinned = true; draft(); } }[event.key];
    if (!act || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    act();
  });
  let soon = 0;
  tasks.onChange(() => { soon ||= setTimeout(() => { soon = 0; draft(); }, 200); });
  new ResizeObserver(draft).observe(field);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draft);
  setInterval(() => { if (node.isConnected && !document.hidden && pinned) draft(); }, 1000);
  return { node, show: draft };
}
