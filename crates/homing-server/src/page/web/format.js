// Times, sizes and names as people read them.

const pad = (number, width = 2) => String(number).padStart(width, "0");

/** `850 ms`, `12.4 s`, `3m 05s`, `2h 10m`, `3d 4h`. */
export function duration(ms) {
  if (ms === null || ms === undefined || Number.isNaN(ms)) return "";
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  const seconds = ms / 1000;
  if (seconds < 59.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  const [days, hours, minutes] = [Math.floor(whole / 86400), Math.floor((whole % 86400) / 3600), Math.floor((whole % 3600) / 60)];
  if (days) return `${days}d ${hours}h`;
  if (hours) return `${hours}h ${pad(minutes)}m`;
  return `${minutes}m ${pad(whole % 60)}s`;
}

/** How long ago, roughly. */
export function ago(at, now = Date.now()) {
  const seconds = Math.max(0, (now - at) / 1000);
  if (seconds < 5) return "just now";
  if (seconds < 60) return `${Math.floor(seconds)} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86400)} d ago`;
}

/** A time of day, with the date where it is another day. */
export function clock(text) {
  if (!text) return "";
  const at = new Date(text);
  const time = `${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}`;
  if (at.toDateString() === new Date().toDateString()) return time;
  return `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())} ${time}`;
}

/** `812 B`, `4.2 kB`, `1.1 GB`. */
export function bytes(count) {
  if (count < 1000) return `${count} B`;
  const units = ["kB", "MB", "GB", "TB"];
  let [value, unit] = [count / 1000, 0];
  while (value >= 999.5 && unit < units.length - 1) [value, unit] = [value / 1000, unit + 1];
  return `${value.toFixed(value < 10 ? 2 : 1)} ${units[unit]}`;
}

export const number = (count) => count.toLocaleString("en");

/** What reorders or hides its neighbours (the table of homing-model/src/unseen.rs; a test compares them), or a terminal would obey. */
export const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f-\u1160\u17b4-\u17b5\u180b-\u180f\u200b-\u200c\u200e-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu;

/** A character that nobody would see, as something that is seen. */
export function seen(character) {
  const code = character.codePointAt(0);
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  if (code === 0x7f) return "\u2421";
  return `\u2039U+${code.toString(16).toUpperCase().padStart(4, "0")}\u203a`;
}

/** A text on one line in which nothing hides. */
export const line = (text) => (text ?? "").replace(/[\t\n]/g, " ").replace(UNSEEN, seen);

/** Several lines in which nothing hides. */
export const lines = (text) => (text ?? "").replace(UNSEEN, (found) => (found === "\r" ? "" : seen(found)));

/** What a task is called: its name, else its command. */
export const title = (task) => line(task.name || task.command || task.id);

const WORDS = { timed_out: "timed out", start_failed: "start failed" };
export const word = (status) => WORDS[status] ?? status;

export const LIVE = new Set(["queued", "starting", "running", "paused", "stopping"]);
export const isLive = (task) => LIVE.has(task.status);

/** The signals that end a program now and then, by their names. */
const SIGNALS = { 1: "HUP", 2: "INT", 3: "QUIT", 4: "ILL", 6: "ABRT", 7: "BUS", 8: "FPE", 9: "KILL", 11: "SEGV", 13: "PIPE", 14: "ALRM", 15: "TERM", 24: "XCPU", 25: "XFSZ" };
const signal = (number) => (SIGNALS[number] ? `SIG${SIGNALS[number]}` : `signal ${number}`);

/** How it ended, or where it is, in a few words. */
export function sentence(task) {
  const outcome = task.outcome;
  let text = word(task.status);
  if (!outcome) return text;
  if (outcome.exit_code !== null && !(outcome.exit_code === 0 && task.status === "succeeded")) text += `, exit ${outcome.exit_code}`;
  else if (outcome.signal !== null) text += `, ${signal(outcome.signal)}`;
  if (outcome.stopped_by) text += `, by ${line(outcome.stopped_by)}`;
  if (outcome.reason) text += `: ${line(outcome.reason)}`;
  return text;
}

/** How long it ran, or runs, in milliseconds; nothing if it never did. */
export function ran(task, now = Date.now()) {
  if (task.duration_ms !== null) return task.duration_ms;
  if (!task.started_at || !isLive(task)) return null;
  return Math.max(0, now - Date.parse(task.started_at));
}
