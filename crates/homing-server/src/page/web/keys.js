// The keyboard, and the dialog that explains it.

import { actions } from "./actions.js";
import { api } from "./api.js";
import { go } from "./address.js";
import { el, fill } from "./dom.js";
import { clock, line } from "./format.js";

const KEYS = [
  ["j  k", "next, previous task (also the arrows, in the list)"],
  ["/", "filter the list"],
  ["o", "to the output; arrows, Page Up, Page Down, Home and End move in it"],
  ["f", "follow the output, or not"],
  ["e", "search the output; Enter and Shift+Enter go to the next and the previous match"],
  ["s", "stop the task"],
  ["p", "pause it, or let it go on"],
  ["r", "run it again"],
  ["n", "new task"],
  ["1 \u2026 4", "tasks, timeline, inbox, deliveries"],
  ["+  \u2212  \u2190  \u2192", "in the timeline: closer, wider, earlier, later"],
  ["Esc", "close the task, or a dialog"],
  ["?", "this help"],
];

function help() {
  const about = el("p", { class: "dim" });
  const dialog = el("dialog", { class: "help", "aria-labelledby": "help-title" },
    el("h2", { id: "help-title" }, "Keys"),
    el("dl", {}, KEYS.map(([keys, what]) => [el("dt", {}, keys.split("  ").map((one) => el("kbd", {}, one))), el("dd", {}, what)])), about,
    el("form", { method: "dialog", class: "buttons" }, el("button", { type: "submit" }, "Close")));
  document.body.append(dialog);
  return async () => {
    if (!dialog.open) dialog.showModal();
    try {
      const { daemon } = await api.status();
      fill(about, `homing ${daemon.version}, process ${daemon.pid}, since ${clock(daemon.started_at)}, home `, el("code", {}, line(daemon.home)));
    } catch { fill(about, "The daemon cannot be reached."); }
  };
}

const VIEWS = { 1: "tasks", 2: "timeline", 3: "inbox", 4: "deliveries" };

/** Listens to keys that no field wants for itself. */
export function keys({ list, detail, submit }) {
  const showHelp = help();
  const bound = {
    j: () => list.move(1), k: () => list.move(-1), "/": () => { go({ view: "tasks" }); list.filter(); },
    o: () => detail.output()?.focus(), f: () => detail.output()?.toggleFollow(), e: () => detail.output()?.focusSearch(),
    s: () => detail.current() && actions.stop(detail.current()), p: () => detail.current() && actions.pause(detail.current()), r: () => detail.current() && actions.rerun(detail.current()),
    n: submit, "?": showHelp, Escape: () => { if (detail.current()) { go({ task: "", tab: "" }); list.focus(); } },
  };
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const typing = event.target.closest?.("input, textarea, select");
    if (typing) {
      if (event.key === "Escape") typing.blur();
      return;
    }
    if (VIEWS[event.key]) go({ view: VIEWS[event.key] });
    else if (bound[event.key]) bound[event.key]();
    else return;
    event.preventDefault();
  });
  return { help: showHelp };
}
