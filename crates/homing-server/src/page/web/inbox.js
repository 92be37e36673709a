// What has ended and waits for its owner. Looking takes nothing away; acknowledging does.

import { actions } from "./actions.js";
import { api, told } from "./api.js";
import { byId, el, fill, say, sign } from "./dom.js";
import { ago, duration, line, lines, number, sentence } from "./format.js";
import { onEvent } from "./live.js";

const TOLD = { "task.completed": "", "task.matched": "matched", "task.quiet": "silent", "task.heartbeat": "still running" };

function entry(owner, notice, again) {
  const state = notice.status ?? "running";
  const head = TOLD[notice.type] || sentence({ status: state, outcome: notice.outcome ?? null });
  return el("li", { class: "notice", "data-notice": notice.id },
    el("div", { class: "head" }, sign(state),
      el("a", { href: `/?view=inbox&task=${encodeURIComponent(notice.task.id)}`, "data-task": notice.task.id, class: "title" }, line(notice.task.name || notice.task.command)),
      el("span", { class: `status s-${state}` }, head),
      el("span", { class: "dim" }, [ago(Date.parse(notice.at)), duration(notice.duration_ms)].filter(Boolean).join(" \u00b7 ")),
      el("button", { type: "button", "aria-label": `Acknowledge ${line(notice.task.name || notice.task.id)}`, on: { click: async () => { await actions.acknowledge(owner, [notice.id]); again(); } } }, "Acknowledge")),
    notice.line ? el("p", { class: "tail" }, lines(notice.line)) : null,
    notice.answer ? el("p", { class: "tail answer" }, lines(notice.answer)) : null,
    !notice.answer && notice.output_tail?.trim() ? el("p", { class: "tail" }, lines(notice.output_tail.trimEnd().split("\n").slice(-3).join("\n")).slice(-600)) : null);
}

/** The view. */
export function view() {
  const body = el("div", { class: "scroll inbox", tabindex: "0", role: "region", "aria-label": "What waits" });
  const node = el("div", { class: "view-list" }, body);
  let asked = 0;
  let drawn = "";

  async function show() {
    const mine = ++asked;
    try {
      const owners = await api.owners();
      count(owners);
      if (!node.isConnected) return;
      const boxes = await Promise.all(owners.map(async ({ owner, open }) => ({ ...(await api.inbox(owner)), owner, open })));
      if (mine !== asked || JSON.stringify(boxes) === drawn) return;
      drawn = JSON.stringify(boxes);
      fill(body, boxes.length ? boxes.map(({ owner, open, items, more }) => {
        const held = more ? 0 : open - items.length;
        return el("section", { class: "owner", "aria-label": `Inbox of ${line(owner)}` },
          el("h2", {}, line(owner), " ", el("span", { class: "count" }, number(open)),
            items.length > 1 && el("button", { type: "button", on: { click: async () => { await actions.acknowledge(owner, items.map(({ id }) => id)); show(); } } }, "Acknowledge all")),
          more && el("p", { class: "dim" }, `Only the oldest ${number(items.length)} are shown; the rest follows once these are acknowledged.`),
          held > 0 && el("p", { class: "dim" }, held === 1 ? "1 is held by somebody who has not acknowledged it yet." : `${number(held)} are held by somebody who has not acknowledged them yet.`),
          el("ul", {}, items.map((notice) => entry(owner, notice, show))));
      }) : el("p", { class: "empty" }, "Nothing waits. What ends leaves an entry here for its owner, until it is acknowledged."));
    } catch (error) {
      if (mine === asked && node.isConnected) fill(body, el("p", { class: "empty" }, told(error)));
    }
  }

  // Once for what comes together, and after the task itself.
  let timer = 0;
  const soon = () => { timer ||= setTimeout(() => { timer = 0; show(); }, 120); };
  onEvent((event) => { if (/^task\.(completed|matched|quiet|heartbeat)$|^reset$/.test(event.type)) soon(); });
  setInterval(() => { if (node.isConnected && !document.hidden) show(); }, 5000);
  return { node, show, soon };
}

function count(owners) {
  const open = owners.reduce((sum, owner) => sum + owner.open, 0);
  byId("inbox-count").hidden = !open;
  say(byId("inbox-count"), open ? number(open) : "");
}
