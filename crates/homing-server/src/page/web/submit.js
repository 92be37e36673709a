// A form for a new task. The daemon checks what is in it, and its words are shown where something is wrong.

import { api, key, Problem, told } from "./api.js";
import { go } from "./address.js";
import { el, fill, toast } from "./dom.js";
import { line } from "./format.js";
import { tasks } from "./tasks.js";

const UNITS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** `30s`, `10m`, `1h30m` in milliseconds; nothing if that is no time. */
export function millis(text) {
  if (!/^(\d+(\.\d+)?(ms|s|m|h))+$/.test(text)) return null;
  return Math.round([...text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/g)].reduce((sum, [, count, unit]) => sum + count * UNITS[unit], 0));
}

const field = (text, input, hint) => el("label", {}, el("span", {}, text), input, hint && el("small", {}, hint));

/** Opens it. What was typed is kept until it was accepted. */
export function submitter() {
  const shell = el("textarea", { name: "shell", rows: "3", required: true, class: "mono", spellcheck: "false", placeholder: "cargo test && echo done" });
  const cwd = el("input", { name: "cwd", class: "mono", spellcheck: "false", list: "folders", placeholder: "your home folder" });
  const folders = el("datalist", { id: "folders" });
  const name = el("input", { name: "name", autocomplete: "off" });
  const owner = el("input", { name: "owner", placeholder: "user", spellcheck: "false" });
  const limit = el("input", { name: "timeout", placeholder: "none", spellcheck: "false" });
  const notify = el("input", { name: "notify", class: "mono", spellcheck: "false", placeholder: "inbox" });
  const when = el("select", { name: "when" }, el("option", { value: "always" }, "every end"), el("option", { value: "failure" }, "failures only"), el("option", { value: "never" }, "never"));
  const pty = el("input", { type: "checkbox", name: "pty" });
  const wrong = el("p", { class: "wrong", role: "alert", hidden: true });
  const send = el("button", { type: "submit", class: "primary" }, "Run");
  const form = el("form", { on: { submit } },
    el("h2", { id: "submit-title" }, "New task"),
    field("Command", shell, "A shell line. It runs with a small default environment."),
    el("div", { class: "pair" }, field("Folder", cwd), field("Name", name)),
    el("div", { class: "pair" }, field("Owner", owner), field("Time limit", limit, "30s, 10m, 2h")),
    el("div", { class: "pair" }, field("Tell", notify, "inbox, a webhook address, exec:COMMAND, desktop; several with spaces between"), field("Of", when)),
    el("label", { class: "check" }, pty, el("span", {}, "With a terminal")), folders, wrong,
    el("div", { class: "buttons" }, el("button", { type: "button", on: { click: () => dialog.close() } }, "Cancel"), send));
  const dialog = el("dialog", { class: "form", "aria-labelledby": "submit-title" }, form);
  document.body.append(dialog);
  // The same form is the same task, however often it is sent.
  let once = key();
  form.addEventListener("input", () => { once = key(); wrong.hidden = true; });
  shell.addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit(); });

  function say(text) {
    wrong.hidden = false;
    wrong.textContent = text;
  }

  async function submit(event) {
    event.preventDefault();
    const timeout = limit.value.trim() ? millis(limit.value.trim()) : undefined;
    if (timeout === null) return say("The time limit is no time: 30s, 10m and 1h30m are.");
    const targets = notify.value.trim() ? notify.value.trim().split(/\s+(?=inbox\b|https?:|exec:|wake\b|desktop\b)/) : ["inbox"];
    const spec = {
      shell: shell.value, pty: pty.checked, cwd: cwd.value.trim() || undefined, name: name.value.trim() || undefined, owner: owner.value.trim() || undefined,
      timeout_ms: timeout, notify: { on: when.value, targets: when.value === "never" ? [] : targets },
    };
    send.disabled = true;
    try {
      const task = await api.submit(spec, once);
      once = key();
      dialog.close();
      shell.value = name.value = "";
      toast("Submitted");
      tasks.put(task);
      go({ task: task.id, tab: "" });
    } catch (error) {
      say([told(error), error instanceof Problem ? error.advice : "Send it again: it is one task, however often it is sent."].filter(Boolean).join(" "));
    } finally {
      send.disabled = false;
    }
  }

  return {
    open() {
      const known = [...new Set(tasks.ordered().slice(0, 500).map((task) => task.cwd).filter(Boolean))].slice(0, 20);
      fill(folders, known.map((folder) => el("option", { value: line(folder) })));
      wrong.hidden = true;
      dialog.showModal();
      shell.focus();
    },
  };
}
