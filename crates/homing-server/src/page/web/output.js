// What a task printed. Only what is in sight is fetched and drawn, by byte ranges, so that a gigabyte is as quick as a line.
//
// The view is the offset of its first row and a shift of some pixels. Wheel, keys and fingers move it by rows; the bar at the side stands for the bytes, since nobody knows how many
// rows a gigabyte has.

import { api, Problem, told } from "./api.js";
import { overwritten, parse, PLAIN, spans } from "./ansi.js";
import { Chunks, SIZE } from "./chunks.js";
import { el, say } from "./dom.js";
import { bytes as sized } from "./format.js";
import { find, hits } from "./search.js";

const ROW = 18;
/** The bar is never taller: browsers have their limits. */
const TALLEST = 4_000_000;
const POLL = 256 * 1024;
const decoder = new TextDecoder();

/** The viewer of one task's output. */
export function viewer(task) {
  const chunks = new Chunks(task.id, () => later());
  const layer = el("div", { class: "layer" });
  const spacer = el("div", { class: "spacer" });
  const box = el("div", { class: "out", id: "output", tabindex: "0", role: "region", "aria-label": "Output", on: { scroll: dragged, keydown: key } }, layer, spacer);
  box.addEventListener("wheel", wheel, { passive: false });
  box.addEventListener("touchstart", () => { touching = true; }, { passive: true });
  box.addEventListener("touchend", () => { setTimeout(() => { touching = false; }, 1500); }, { passive: true });
  const words = el("input", { type: "search", placeholder: "Search the output", "aria-label": "Search the output", autocomplete: "off", spellcheck: "false", on: { keydown: searchKey, input: mark } });
  const before = el("button", { type: "button", "aria-label": "Previous match", title: "Previous match (Shift+Enter)", on: { click: () => search(true) } }, "\u2191");
  const after = el("button", { type: "button", "aria-label": "Next match", title: "Next match (Enter)", on: { click: () => search(false) } }, "\u2193");
  const found = el("span", { class: "found", role: "status" });
  const follow = el("button", { type: "button", class: "follow", "aria-pressed": "true", title: "Stay at the end (f)", on: { click: () => setFollow(!following) } }, "Follow");
  const size = el("span", { class: "size" });
  const save = el("a", { class: "button", href: api.download(task.id), download: `${task.id}.log`, title: "Download all of it" }, "Download");
  const node = el("div", { class: "viewer" }, el("div", { class: "toolbar", role: "toolbar", "aria-label": "Output" }, words, before, after, found, size, follow, save), box);

  let top = 0;
  let shift = 0;
  let seeking = null;
  let owed = 0;
  let following = true;
  let touching = false;
  let expected = 0;
  let frame = 0;
  let closed = false;
  let drawn = new Map();
  let current = -1;
  let searching = null;
  let average = 80;
  const styles = new Map();
  const streams = new Map();

  const height = () => box.clientHeight;
  const later = () => { if (!closed) frame ||= requestAnimationFrame(() => { frame = 0; paint(); }); };

  // Rows, as a piece and a place in it.

  function place(offset) {
    let number = Math.min(chunks.last, Math.floor(offset / SIZE));
    const gap = chunks.skips(number) && chunks.gapAt(number * SIZE);
    if (gap) number = Math.min(chunks.last, Math.floor(gap.to / SIZE));
    const rows = chunks.rows(number);
    if (!rows) { chunks.want(number); return undefined; }
    let index = rows.length - 1;
    while (index >= 0 && rows[index] > offset) index -= 1;
    if (index >= 0) return { number, index };
    return back({ number, index: 0 }) ?? (rows.length ? { number, index: 0 } : forward({ number, index: 0 }));
  }

  function forward({ number, index }) {
    const rows = chunks.rows(number);
    if (!rows) { chunks.want(number); return undefined; }
    if (index + 1 < rows.length) return { number, index: index + 1 };
    for (let next = number + 1; next <= chunks.last; next += 1) {
      const gap = chunks.skips(next) && chunks.gapAt(next * SIZE);
      if (gap) { next = Math.max(next, Math.ceil(gap.to / SIZE) - 1); if (chunks.skips(next)) continue; }
      const more = chunks.rows(next);
      if (!more) { chunks.want(next); return undefined; }
      if (more.length) return { number: next, index: 0 };
    }
    return null;
  }

  function back({ number, index }) {
    if (index > 0) return { number, index: index - 1 };
    for (let next = number - 1; next >= 0; next -= 1) {
      const gap = chunks.skips(next) && chunks.gapAt(next * SIZE);
      if (gap) { next = Math.min(next, Math.floor(gap.from / SIZE)); if (chunks.skips(next)) continue; }
      const rows = chunks.rows(next);
      if (!rows) { chunks.want(next); return undefined; }
      if (rows.length) return { number: next, index: rows.length - 1 };
    }
    return null;
  }

  const offsetOf = ({ number, index }) => chunks.rows(number)[index];

  /** The last row; undefined while it is not known. */
  function lastRow() {
    const rows = chunks.rows(chunks.last);
    if (!rows) { chunks.want(chunks.last); return undefined; }
    return rows.length ? { number: chunks.last, index: rows.length - 1 } : back({ number: chunks.last, index: 0 });
  }

  /** Goes to where the last row is the lowest in sight; says whether that was possible. */
  function settleAtEnd() {
    let at = lastRow();
    if (at === undefined) return false;
    let room = height() - ROW;
    for (; at; room -= ROW) {
      const above = room > 0 ? back(at) : null;
      if (above === undefined) return false;
      if (!above) break;
      at = above;
    }
    if (!at) return true;
    [top, shift] = [offsetOf(at), Math.max(0, -room)];
    return true;
  }

  // Drawing.

  function paint() {
    if (closed) return;
    if (chunks.end === 0) return sync();
    if (seeking !== null) {
      const at = place(seeking);
      if (at === undefined) return;
      if (at) [top, shift] = [offsetOf(at), 0];
      const wanted = seeking;
      seeking = null;
      owed = 0;
      if (wanted === current) moveBy(-Math.floor(height() / 3 / ROW) * ROW, false);
    }
    if (following) owed = 0;
    if (following && !settleAtEnd()) return;
    if (owed && place(top)) {
      const rest = owed;
      owed = 0;
      step(rest);
    }
    let at = place(top);
    if (!at) return;
    const shown = [];
    let filled = -shift;
    while (at && filled < height() + ROW) {
      const next = forward(at);
      shown.push({ from: offsetOf(at), to: next ? offsetOf(next) : chunks.end });
      filled += ROW;
      at = next;
    }
    if (at === null && filled < height() && !following && shown[0]?.from > 0) {
      const was = top;
      if (settleAtEnd() && top !== was) return paint();
    }
    draw(shown);
    sync();
  }

  function draw(shown) {
    const query = words.value;
    const next = new Map();
    let style = styles.get(shown[0]?.from) ?? PLAIN;
    if (styles.size > 5000) styles.clear();
    for (const [number, { from, to }] of shown.entries()) {
      styles.set(from, style);
      const stream = streamAt(from);
      const key = `${to} ${query} ${stream} ${from === current} ${JSON.stringify(style)}`;
      let row = drawn.get(from);
      if (row?.key !== key) row = { ...make(from, to, style, query, stream), key };
      style = row.style;
      row.node.style.transform = `translateY(${number * ROW - shift}px)`;
      next.set(from, row);
    }
    const kept = new Set([...next.values()].map(({ node }) => node));
    for (const { node } of drawn.values()) if (!kept.has(node)) node.remove();
    let last = null;
    for (const { node } of next.values()) {
      if (node.previousSibling !== last || !node.isConnected) layer.insertBefore(node, last ? last.nextSibling : layer.firstChild);
      last = node;
    }
    drawn = next;
    if (shown.length > 5) average = Math.max(1, 0.9 * average + 0.1 * ((shown.at(-1).from - shown[0].from) / (shown.length - 1)));
  }

  function make(from, to, style, query, stream) {
    const gap = chunks.gaps.find((one) => one.from < to && one.to > from);
    const raw = chunks.row(from, gap && gap.from > from ? Math.min(to, gap.from) : to);
    let text = decoder.decode(raw);
    if (text.endsWith("\r")) text = text.slice(0, -1);
    const parsed = parse(overwritten(text), style);
    const flat = parsed.parts.map((part) => part.text).join("");
    const node = el("div", { class: `line${stream === "stderr" ? " err" : ""}${from === current ? " current" : ""}` }, spans(parsed.parts, hits(flat, query)));
    if (stream === "stderr") node.title = "stderr";
    const missing = ({ from: begin, to: over }) => el("span", { class: "gap" }, `${sized(over - begin)} are not kept`);
    const ahead = chunks.gaps.find((one) => one.to === from);
    if (ahead) node.prepend(missing(ahead), el("span", { class: "gap" }, " \u2026 "));
    else if (gap && gap.to < to) node.append(el("span", { class: "gap" }, " \u2026 "), missing(gap));
    return { node, style: parsed.style };
  }

  // Which stream a byte came from.

  function streamAt(offset) {
    const number = Math.floor(offset / SIZE);
    const known = streams.get(number);
    if (!known || (known.upto < Math.min(chunks.end, (number + 1) * SIZE) && known.upto <= offset && !known.asking)) {
      const entry = known ?? { spans: [], upto: 0, asking: false };
      entry.asking = true;
      streams.set(number, entry);
      const upto = Math.min(chunks.end, (number + 1) * SIZE);
      api.index(task.id, number * SIZE, 2000).then((answer) => {
        Object.assign(entry, { spans: answer.spans, upto, asking: false });
        later();
      }).catch(() => { entry.asking = false; });
    }
    let stream = "";
    for (const span of known?.spans ?? []) {
      if (span.offset > offset) break;
      stream = span.stream;
    }
    return stream;
  }

  // The bar at the side.

  function sync() {
    const wanted = Math.min(TALLEST, Math.max(height(), Math.ceil(chunks.end / average) * ROW));
    const tall = chunks.end <= SIZE ? exact() ?? wanted : wanted;
    layer.style.height = `${height()}px`;
    spacer.style.height = `${Math.max(0, tall - height())}px`;
    const page = (height() / ROW) * average;
    const part = atEnd() ? 1 : Math.min(1, top / Math.max(1, chunks.end - page));
    expected = Math.round(part * Math.max(0, tall - height()));
    if (Math.abs(box.scrollTop - expected) > 1) box.scrollTop = expected;
    expected = box.scrollTop;
    const share = chunks.end ? ` \u00b7 ${Math.round(100 * part)} %` : "";
    say(size, `${sized(chunks.end)}${chunks.dropped ? `, ${sized(chunks.dropped)} not kept` : ""}${tall > height() ? share : ""}`);
    box.dataset.top = top;
    box.dataset.end = chunks.end;
  }

  /** How tall a small output is, as far as that is known. */
  function exact() {
    const rows = chunks.rows(0);
    return rows ? Math.max(height(), rows.length * ROW) : null;
  }

  const atEnd = () => { const shown = [...drawn.keys()]; return following || (shown.length > 0 && drawnTo() >= chunks.end); };
  const drawnTo = () => {
    const fit = Math.ceil((height() + shift) / ROW);
    const keys = [...drawn.keys()];
    return keys.length <= fit ? chunks.end : keys[fit];
  };

  function dragged() {
    if (Math.abs(box.scrollTop - expected) <= 1) return;
    const by = box.scrollTop - expected;
    expected = box.scrollTop;
    if (touching) return moveBy(by);
    const room = Math.max(1, box.scrollHeight - height());
    const part = Math.min(1, box.scrollTop / room);
    if (part > 0.9995) return setFollow(true);
    setFollow(false);
    seeking = Math.floor(part * Math.max(0, chunks.end - (height() / ROW) * average));
    later();
  }

  // Moving.

  function moveBy(pixels, user = true) {
    if (user && pixels < 0) setFollow(false);
    step(pixels);
    if (user) {
      paint();
      if (pixels > 0 && drawnTo() >= chunks.end && !chunks.complete) setFollow(true);
    }
  }

  /** Moves as far as what is there reaches; the rest is owed until the next piece has come. */
  function step(pixels) {
    let at = place(top);
    if (!at) { owed += pixels; return later(); }
    shift += pixels;
    while (shift >= ROW) {
      const next = forward(at);
      if (next === undefined) { owed += shift; shift = 0; break; }
      if (next === null) { shift = ROW; break; }
      at = next;
      shift -= ROW;
    }
    while (shift < 0) {
      const next = back(at);
      if (next === undefined) { owed += shift; shift = 0; break; }
      if (next === null) { shift = 0; break; }
      at = next;
      shift += ROW;
    }
    top = offsetOf(at);
  }

  function wheel(event) {
    if (event.ctrlKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) return;
    event.preventDefault();
    moveBy(event.deltaY * [1, ROW, height()][event.deltaMode]);
  }

  function key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = height() - 2 * ROW;
    const by = { ArrowDown: ROW, ArrowUp: -ROW, PageDown: page, PageUp: -page, " ": event.shiftKey ? -page : page }[event.key];
    if (by !== undefined) moveBy(by);
    else if (event.key === "Home") { setFollow(false); seeking = 0; later(); }
    else if (event.key === "End") { setFollow(true); }
    else return;
    event.preventDefault();
  }

  function setFollow(on) {
    const was = following;
    following = on;
    follow.setAttribute("aria-pressed", String(on));
    if (on && !was) later();
  }

  // Searching.

  function mark() {
    say(found, "");
    current = -1;
    later();
  }

  function searchKey(event) {
    if (event.key === "Enter") { event.preventDefault(); search(event.shiftKey); }
    if (event.key === "Escape") { event.stopPropagation(); searching?.abort(); words.value = ""; mark(); box.focus(); }
  }

  let match = -1;
  async function search(backwards) {
    const text = words.value;
    if (!text) return words.focus();
    searching?.abort();
    const mine = new AbortController();
    searching = mine;
    // From the last match on if it is still in sight, else from what is.
    const visible = match >= top && match < drawnTo() ? match : null;
    const from = backwards ? (visible ?? top) : (visible === null ? top : visible + 1);
    setFollow(false);
    try {
      const options = { end: chunks.end, back: backwards, signal: mine.signal, progress: (part) => say(found, `searching, ${Math.round(100 * part)} %`) };
      let at = await find(task.id, text, { ...options, from });
      let round = "";
      if (at === null) {
        at = await find(task.id, text, { ...options, from: backwards ? chunks.end : 0 });
        round = backwards ? ", from the end" : ", from the start";
      }
      if (searching !== mine) return;
      say(found, at === null ? "not found" : `at ${sized(at)}${round}`);
      if (at === null) return;
      match = at;
      await chunks.want(Math.floor(at / SIZE));
      const row = place(at);
      if (!row) return;
      current = offsetOf(row);
      seeking = current;
      later();
    } catch (error) {
      if (error.name !== "AbortError") say(found, told(error));
    }
  }

  // What is printed meanwhile.

  async function listen() {
    while (!closed) {
      if (document.hidden) { await until("visibilitychange"); continue; }
      const asked = performance.now();
      try {
        const part = await api.output(task.id, { offset: chunks.end, limit: POLL, wait_ms: 20000 }, chunks.closer.signal);
        chunks.append(part, following);
        if (part.bytes.length >= POLL) {
          // Faster than it can be read: only the end counts.
          const tail = await api.output(task.id, { tail: 1 }, chunks.closer.signal);
          chunks.end = Math.max(chunks.end, tail.next);
          chunks.dropped = tail.dropped;
        }
        chunks.complete = part.complete && part.next >= chunks.end;
        later();
        if (chunks.complete) { follow.hidden = true; return; }
        // What comes after a silence is shown at once; of what comes without end, so many pieces a second.
        const pause = asked + 25 - performance.now();
        if (pause > 0) await rest(pause);
      } catch (error) {
        if (closed) return;
        if (error instanceof Problem && [404, 410].includes(error.status)) {
          layer.replaceChildren(el("div", { class: "line" }, error.told));
          return;
        }
        await rest(500);
      }
    }
  }

  const rest = (ms) => new Promise((done) => { setTimeout(done, ms); });
  const until = (event) => new Promise((done) => { document.addEventListener(event, done, { once: true }); });

  async function start() {
    // A task that has ended is read from its beginning, one that runs from its end.
    following = task.status !== undefined && ["queued", "starting", "running", "paused", "stopping"].includes(task.status);
    follow.setAttribute("aria-pressed", String(following));
    follow.hidden = !following;
    try {
      const tail = await api.output(task.id, { tail: 1 }, chunks.closer.signal);
      chunks.end = tail.next;
      chunks.dropped = tail.dropped;
      chunks.want(following ? chunks.last : 0);
      later();
    } catch (error) {
      if (!(error instanceof Problem)) { if (error.name !== "AbortError") await rest(500); }
    }
    listen();
  }

  const watch = new ResizeObserver(() => later());
  watch.observe(box);
  return {
    id: task.id, node, start, update: later,
    toggleFollow: () => setFollow(!following),
    focus: () => box.focus(),
    focusSearch: () => { words.focus(); words.select(); },
    close() { closed = true; watch.disconnect(); searching?.abort(); chunks.close(); },
  };
}
