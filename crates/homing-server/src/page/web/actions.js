// What can be done with a task, and asking first where it cannot be undone.

import { api, key, told } from "./api.js";
import { go } from "./address.js";
import { el, toast } from "./dom.js";
import { isLive, title } from "./format.js";

/** Asks; the answer is whether it was confirmed. */
export function confirm(question, what, verb) {
  const before = document.activeElement;
  return new Promise((answer) => {
    const yes = el("button", { type: "submit", class: "danger", value: "yes" }, verb);
    const dialog = el("dialog", { class: "ask", "aria-labelledby": "ask-title" },
      el("form", { method: "dialog" }, el("h2", { id: "ask-title" }, question), el("p", { class: "mono" }, what),
        el("div", { class: "buttons" }, el("button", { type: "submit", value: "no" }, "Cancel"), yes)));
    dialog.addEventListener("close", () => {
      dialog.remove();
      before?.focus?.();
      answer(dialog.returnValue === "yes");
    });
    document.body.append(dialog);
    dialog.showModal();
    yes.focus();
  });
}

async function attempt(work, done) {
  try {
    const answer = await work();
    if (done) toast(done(answer));
    return answer;
  } catch (error) {
    toast([told(error), error.advice].filter(Boolean).join(". "), true);
    return null;
  }
}

export const actions = {
  async stop(task) {
    if (!isLive(task) || !(await confirm("Stop this task?", title(task), "Stop"))) return;
    await attempt(() => api.stop(task.id), (answer) => (answer.stopping ? "Stopping" : "It had ended before"));
  },
  async pause(task) {
    if (["running", "paused"].includes(task.status)) {
      await attempt(() => (task.status === "paused" ? api.resume(task.id) : api.pause(task.id)), () => (task.status === "paused" ? "Resumed" : "Paused"));
    }
  },
  async rerun(task) {
    const again = await attempt(() => api.rerun(task.id, task.owner, key()), () => "Started again, as a new task");
    if (again) go({ task: again.id, tab: "" });
  },
  async forget(task) {
    if (isLive(task) || !(await confirm("Forget this task and its output?", title(task), "Forget"))) return;
    if (await attempt(() => api.forget(task.id), () => "Forgotten")) go({ task: "" });
  },
  async copy(text, what) {
    await attempt(() => navigator.clipboard.writeText(text), () => `${what} copied`);
  },
  async acknowledge(owner, ids) {
    return attempt(() => api.acknowledge(owner, ids), (answer) => `${answer.acknowledged.length} acknowledged`);
  },
  async redeliver(id) {
    return attempt(() => api.redeliver(id), (answer) => (answer.refused.length
      ? `Not sent again: ${answer.refused[0].reason}` : `${answer.redelivered.length} on the way again`));
  },
};

/** The buttons for a task as it is now. */
export function buttons(task) {
  const button = (text, act, more = {}) => el("button", { type: "button", ...more, on: { click: () => act(task) } }, text);
  const live = isLive(task);
  return [
    live && task.status !== "stopping" && button("Stop", actions.stop, { class: "danger", "data-act": "stop" }),
    task.status === "running" && task.kind !== "external" && button("Pause", actions.pause, { "data-act": "pause" }),
    task.status === "paused" && button("Resume", actions.pause, { "data-act": "resume" }),
    task.kind !== "external" && button("Run again", actions.rerun, { "data-act": "rerun" }),
    !live && button("Forget", actions.forget, { "data-act": "forget" }),
    button("Copy id", () => actions.copy(task.id, "Id"), { "data-act": "copy" }),
  ].filter(Boolean);
}
