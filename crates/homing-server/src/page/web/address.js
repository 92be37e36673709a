// What is shown, as the address says it: view, filters, task and tab. So a view can be kept, sent and gone back to.

const KNOWN = ["view", "q", "status", "owner", "label", "task", "tab", "state"];
const listeners = new Set();

/** What the address says now. */
export function read() {
  const given = new URLSearchParams(location.search);
  const found = { view: "tasks" };
  for (const name of KNOWN) if (given.get(name)) found[name] = given.get(name);
  return found;
}

/** The address of something. */
export function write(values) {
  const given = new URLSearchParams();
  for (const name of KNOWN) if (values[name] && !(name === "view" && values[name] === "tasks")) given.set(name, values[name]);
  const text = given.toString();
  return text ? `/?${text}` : "/";
}

/** Changes some of it. Typing replaces the last entry of the history, going somewhere adds one. */
export function go(changes, { replace = false } = {}) {
  const to = write({ ...read(), ...changes });
  if (to !== location.pathname + location.search) history[replace ? "replaceState" : "pushState"](null, "", to);
  for (const listener of listeners) listener(read());
}

/** Calls back with whatever the address says, from now on. */
export function onChange(listener) {
  listeners.add(listener);
}

addEventListener("popstate", () => { for (const listener of listeners) listener(read()); });
