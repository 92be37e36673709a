// What went out, what waits and what is dead, with every attempt; and sending it again.

import { actions } from "./actions.js";
import { api, told } from "./api.js";
import { go, read } from "./address.js";
import { byId, el, fill, say } from "./dom.js";
import { ago, clock, duration, line, number } from "./format.js";
import { onEvent } from "./live.js";

const STATES = [["", "All"], ["pending", "Pending"], ["dead", "Dead"], ["delivered", "Delivered"], ["superseded", "Not needed"]];

function history(delivery) {
  if (!delivery.history.length) return el("span", { class: "dim" }, line(delivery.reason) || "no attempt yet");
  const tries = delivery.history.map((tried) => el("li", {}, `${clock(tried.at)} `, el("span", { class: "dim" }, `${duration(tried.took_ms)} `), line(tried.result)));
  const count = delivery.attempts === 1 ? "1 attempt" : `${number(delivery.attempts)} attempts`;
  return el("details", {}, el("summary", {}, [count, line(delivery.reason)].filter(Boolean).join(": ")), el("ol", {}, tries));
}

/** A table of deliveries. */
export function table(items, { again, task = true }) {
  const rows = items.map((one) => el("tr", { "data-delivery": one.id },
    el("td", {}, el("span", { class: `pill d-${one.state}` }, one.state)),
    el("td", { class: "wide" }, el("code", {}, line(one.target)), task && el("span", { class: "under" },
      el("a", { href: `/?view=deliveries&task=${encodeURIComponent(one.task_id)}`, "data-task": one.task_id }, one.task_id), ` \u00b7 ${line(one.owner)} \u00b7 ${line(one.notice_type ?? "")}`)),
    el("td", { class: "wide" }, history(one), one.state === "pending" && one.next_at ? el("span", { class: "dim" }, ` next at ${clock(one.next_at)}`) : null),
    el("td", { class: "dim" }, ago(Date.parse(one.created_at))),
    el("td", {}, one.state !== "pending" && el("button", { type: "button", "aria-label": `Send again: ${one.id}`, on: { click: async () => { if (await actions.redeliver(one.id)) again(); } } }, "Send again"))));
  return el("table", { class: "deliveries" }, el("thead", {}, el("tr", {}, ["State", "Target", "Attempts", "Made"].map((name) => el("th", { scope: "col" }, name)), el("td", {}))), el("tbody", {}, rows));
}

/** The view. */
export function view() {
  const groups = STATES.map(([name, text]) => el("button", { type: "button", "data-state": name, on: { click: () => go({ state: name }) } }, text));
  const body = el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "What went out" });
  const node = el("div", { class: "view-list" }, el("div", { class: "filters" }, el("div", { class: "groups", role: "group", "aria-label": "State" }, groups)), body);
  let asked = 0;
  let drawn = "";

  async function show() {
    if (!node.isConnected) return;
    const state = read().state ?? "";
    for (const button of groups) button.setAttribute("aria-pressed", String(button.dataset.state === state));
    const mine = ++asked;
    try {
      const page = await api.deliveries({ state: state || undefined, limit: 200 });
      if (mine !== asked || JSON.stringify(page) === drawn) return;
      drawn = JSON.stringify(page);
      fill(body, page.items.length ? table(page.items, { again: show })
        : el("p", { class: "empty" }, "Nothing here. A task submitted with --notify sends its end to a webhook, a command, an agent or the desktop."),
      page.next_cursor && el("p", { class: "dim more" }, "Older ones: homing deliveries."));
    } catch (error) {
      if (mine === asked) fill(body, el("p", { class: "empty" }, told(error)));
    }
  }

  onEvent((event) => { if (event.type.startsWith("delivery.") || event.type === "task.completed" || event.type === "reset") { show(); count(); } });
  setInterval(() => { if (node.isConnected && !document.hidden) show(); }, 5000);
  return { node, show };
}

let counting = 0;

/** How many are dead, in the navigation: once for what comes together, and after the task itself. */
export const count = () => { counting ||= setTimeout(() => { counting = 0; look(); }, 120); };

async function look() {
  try {
    const { deliveries } = await api.status();
    byId("dead-count").hidden = !deliveries.dead;
    say(byId("dead-count"), deliveries.dead ? `${number(deliveries.dead)} dead` : "");
  } catch { /* The connection says so. */ }
}
