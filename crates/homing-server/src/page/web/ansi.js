// Colours of a terminal as classes of spans. All other escapes are dropped, and whatever would reorder or hide text is shown as what it is.

import { UNSEEN, seen } from "./format.js";

// An escape: a control sequence, a string up to its end, or one letter. Bounded, so that no text makes the search slow.
const ESCAPE = /\u001b(?:\[([0-9;:?<=>]{0,64})[ -/]{0,8}([@-~])|[\]PX^_][^\u0007\u001b]{0,4096}(?:\u0007|\u001b\\)?|[ -/]{0,8}[0-~])/g;

export const PLAIN = Object.freeze({ fg: null, bg: null, bold: false, dim: false, italic: false, under: false, strike: false, invert: false });

function palette(number) {
  if (number < 16) return number;
  if (number >= 232) { const grey = 8 + (number - 232) * 10; return `rgb(${grey} ${grey} ${grey})`; }
  const level = (step) => (step ? 55 + step * 40 : 0);
  const rest = number - 16;
  return `rgb(${level(Math.floor(rest / 36))} ${level(Math.floor(rest / 6) % 6)} ${level(rest % 6)})`;
}

/** The colour that begins at a place of a list of numbers, and the place after it. */
function colour(numbers, at) {
  if (numbers[at] === 5 && numbers[at + 1] <= 255) return [palette(numbers[at + 1]), at + 2];
  if (numbers[at] === 2) {
    const parts = numbers.slice(at + 1, at + 4).map((part) => Math.min(255, part || 0));
    if (parts.length === 3) return [`rgb(${parts.join(" ")})`, at + 4];
  }
  return [null, numbers.length];
}

function styled(style, text) {
  const numbers = text.split(/[;:]/).map(Number);
  const next = { ...style };
  for (let at = 0; at < numbers.length; at += 1) {
    const number = numbers[at];
    if (number === 0) Object.assign(next, PLAIN);
    else if (number === 1) next.bold = true;
    else if (number === 2) next.dim = true;
    else if (number === 3) next.italic = true;
    else if (number === 4) next.under = true;
    else if (number === 7) next.invert = true;
    else if (number === 9) next.strike = true;
    else if (number === 22) next.bold = next.dim = false;
    else if (number === 23) next.italic = false;
    else if (number === 24) next.under = false;
    else if (number === 27) next.invert = false;
    else if (number === 29) next.strike = false;
    else if (number >= 30 && number <= 37) next.fg = number - 30;
    else if (number >= 40 && number <= 47) next.bg = number - 40;
    else if (number >= 90 && number <= 97) next.fg = number - 82;
    else if (number >= 100 && number <= 107) next.bg = number - 92;
    else if (number === 39) next.fg = null;
    else if (number === 49) next.bg = null;
    else if (number === 38 || number === 48) {
      const [found, after] = colour(numbers, at + 1);
      next[number === 38 ? "fg" : "bg"] = found;
      at = after - 1;
    }
  }
  return next;
}

/** A line as parts of one style each, and the style that it ends with. */
export function parse(line, style) {
  const parts = [];
  let at = 0;
  const put = (text) => { if (text) parts.push({ text, style }); };
  ESCAPE.lastIndex = 0;
  for (let found = ESCAPE.exec(line); found; found = ESCAPE.exec(line)) {
    put(line.slice(at, found.index));
    at = found.index + found[0].length;
    if (found[2] === "m" && !/[?<=>]/.test(found[1])) style = styled(style, found[1]);
  }
  put(line.slice(at));
  return { parts, style };
}

/** What a terminal would leave of a line that returns to its start: the last thing that was written over it. */
export function overwritten(line) {
  if (!line.includes("\r")) return line;
  const pieces = line.split("\r").filter(Boolean);
  return pieces.at(-1) ?? "";
}

const classes = (style) => [
  typeof style.fg === "number" && `f${style.fg}`, typeof style.bg === "number" && `b${style.bg}`, style.bold && "bold", style.dim && "faint",
  style.italic && "italic", style.under && "lined", style.strike && "strike", style.invert && "invert",
].filter(Boolean).join(" ");

function span(text, style, more) {
  const name = [classes(style), more].filter(Boolean).join(" ");
  const made = document.createElement(more === "hit" ? "mark" : "span");
  if (name) made.className = name;
  if (typeof style.fg === "string") made.style.color = style.fg;
  if (typeof style.bg === "string") made.style.backgroundColor = style.bg;
  made.textContent = text;
  return made;
}

/** Elements for the parts of a line; `hits` are stretches of its text that were searched for. */
export function spans(parts, hits = []) {
  const made = [];
  let at = 0;
  for (const { text, style } of parts) {
    const edges = new Set([0, text.length]);
    for (const [from, to] of hits) for (const edge of [from - at, to - at]) if (edge > 0 && edge < text.length) edges.add(edge);
    const sorted = [...edges].sort((a, b) => a - b);
    for (let n = 0; n + 1 < sorted.length; n += 1) {
      const hit = hits.some(([from, to]) => from - at <= sorted[n] && to - at >= sorted[n + 1]);
      piece(text.slice(sorted[n], sorted[n + 1]), style, hit, made);
    }
    at += text.length;
  }
  return made;
}

function piece(text, style, hit, made) {
  let at = 0;
  UNSEEN.lastIndex = 0;
  for (const found of text.matchAll(UNSEEN)) {
    if (found.index > at) made.push(span(text.slice(at, found.index), style, hit ? "hit" : ""));
    made.push(span(seen(found[0]), style, "unseen"));
    at = found.index + found[0].length;
  }
  if (at < text.length) made.push(span(text.slice(at), style, hit ? "hit" : ""));
}
