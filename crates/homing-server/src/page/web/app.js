// The page: the list, how the connection is, and what stands around the views. The list is what people come for, and needs few files: the other views (views.js) come after it, and join.

import { go, onChange, read, write } from "./address.js";
import { byId, el, say } from "./dom.js";
import { list } from "./list.js";
import { onStanding, retry, start } from "./live.js";
import { tasks } from "./tasks.js";

const [left, right, panes] = [byId("left"), byId("right"), byId("panes")];
const NAMES = ["tasks", "timeline", "inbox", "deliveries"];
const coming = { node: el("p", { class: "empty" }, "Loading"), show() {} };
const views = { tasks: list() };
let side = null;

function show(address) {
  const name = NAMES.includes(address.view) ? address.view : "tasks";
  const wanted = views[name] ?? coming;
  panes.dataset.view = name;
  panes.classList.toggle("both", Boolean(address.task));
  right.hidden = !address.task;
  left.setAttribute("aria-label", name[0].toUpperCase() + name.slice(1));
  if (wanted.node.parentNode !== left) left.replaceChildren(wanted.node);
  for (const link of document.querySelectorAll(".views a")) {
    link.toggleAttribute("data-current", link.dataset.view === name);
    if (link.dataset.view === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
    link.href = write({ ...read(), view: link.dataset.view });
  }
  side?.show(address.task ?? "");
  wanted.show();
}

/** The rest of the page, once it is there: the other views, and the task beside them. */
export function join(rest) {
  Object.assign(views, rest.views);
  side = rest.detail;
  right.append(side.node);
  show(read());
}

export const { tasks: tasksView } = views;

// Links within the page change what is shown, without asking for the page again.
document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[data-view], a[data-task]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  if (link.dataset.view) go({ view: link.dataset.view });
  else go({ task: link.dataset.task, tab: "" });
});
byId("retry").addEventListener("click", retry);

// Should the daemon go away just when the rest is asked for, the page is asked for again once the daemon is there.
let missing = false;
document.querySelector("script[src$='/views.js']")?.addEventListener("error", () => { missing = true; setTimeout(retry, 1000); });

onStanding(({ state }) => {
  const words = { connecting: "Connecting", live: "Live", lost: "Not connected", "signed-out": "Signed out" };
  byId("link").dataset.state = state;
  say(byId("link-text"), words[state]);
  byId("lost").hidden = state === "live" || state === "connecting";
  say(byId("lost-text"), state === "signed-out" ? "This browser is signed out. Run homing web to sign it in again; this page then goes on by itself."
    : state === "lost" ? "Connection lost, retrying. What is shown may be out of date; tasks run on." : "");
  document.body.classList.toggle("stale", state === "lost" || state === "signed-out");
  if (state === "live" && missing) location.reload();
});

onChange(show);
tasks.onChange(() => { document.body.dataset.tasks = tasks.size; });
show(read());
start();
