// Which tasks the list shows. All of it stands in the address.

import { go, read } from "./address.js";
import { byId, el, fill, say } from "./dom.js";
import { line, number } from "./format.js";
import { tasks } from "./tasks.js";

const BAD = new Set(["failed", "timed_out", "start_failed", "lost"]);
const GROUPS = [
  ["", "All", () => true],
  ["live", "Live", (task) => task.live],
  ["failed", "Failed", (task) => BAD.has(task.status)],
  ["succeeded", "Succeeded", (task) => task.status === "succeeded"],
  ["stopped", "Stopped", (task) => task.status === "stopped"],
];

/** The tasks that a set of filters lets through, in order. */
export function chosen(address = read()) {
  const group = GROUPS.find(([name]) => name === (address.status ?? ""))?.[2] ?? ((task) => task.status === address.status);
  const wanted = (address.q ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  return tasks.ordered().filter((task) => group(task)
    && (!address.owner || task.owner === address.owner)
    && (!address.label || task.words.includes(address.label.toLowerCase()))
    && wanted.every((word) => task.words.includes(word)));
}

/** The bar above the list. */
export function bar() {
  const words = el("input", {
    type: "search", id: "filter", placeholder: "Filter by name, command, owner, label", "aria-label": "Filter tasks", autocomplete: "off", spellcheck: "false",
    on: { input: () => go({ q: words.value }, { replace: true }) },
  });
  const groups = GROUPS.map(([name, text]) => {
    const count = el("span", { class: "count" });
    const button = el("button", { type: "button", "aria-pressed": "false", on: { click: () => go({ status: name }) } }, text, " ", count);
    return { name, button, count };
  });
  const owner = el("select", { "aria-label": "Owner", on: { change: () => go({ owner: owner.value }) } });
  const label = el("button", { type: "button", class: "tag", hidden: true, title: "Remove this filter", on: { click: () => go({ label: "" }) } });
  const node = el("div", { class: "filters", role: "search" }, words, owner, label,
    el("div", { class: "groups", role: "group", "aria-label": "Status" }, groups.map(({ button }) => button)));

  let owners = "";
  function show() {
    const address = read();
    if (document.activeElement !== words) words.value = address.q ?? "";
    const all = tasks.ordered();
    const names = new Set();
    const found = GROUPS.map(() => 0);
    for (const task of all) {
      names.add(task.owner);
      for (let at = 0; at < GROUPS.length; at += 1) if (GROUPS[at][2](task)) found[at] += 1;
    }
    for (const [at, { name, button, count }] of groups.entries()) {
      // More are known once all pages are there.
      say(count, tasks.whole || found[at] ? number(found[at]) : "");
      button.setAttribute("aria-pressed", String((address.status ?? "") === name));
    }
    const known = [...names].sort();
    if (address.owner && !known.includes(address.owner)) known.push(address.owner);
    if (known.join("\n") !== owners) {
      owners = known.join("\n");
      fill(owner, el("option", { value: "" }, "All owners"), known.map((name) => el("option", { value: name }, line(name))));
    }
    owner.value = address.owner ?? "";
    owner.hidden = known.length < 2 && !address.owner;
    label.hidden = !address.label;
    say(label, address.label ? `${line(address.label)} \u00d7` : "");
  }
  return { node, show, focus: () => { words.focus(); words.select(); } };
}

export const focusFilter = () => byId("filter")?.focus();
