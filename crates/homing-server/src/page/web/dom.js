// Elements made of text and attributes. Text is always text: nothing here, and nothing that uses it, makes markup of a string.

const SVG = "http://www.w3.org/2000/svg";

/** An element. Attributes that are false or null are left out; `on` has listeners, children may be texts, elements, or nothing. */
export function el(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "on") for (const [event, heard] of Object.entries(value)) made.addEventListener(event, heard);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

/** Replaces what is in an element. */
export function fill(parent, ...children) {
  parent.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
}

/** Sets a text only where it is another: what does not change is not drawn again, or read aloud again. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export const byId = (id) => document.getElementById(id);

const PATHS = {
  queued: "M8 2.500a5.500 5.500 0 1 0 0 11a5.500 5.500 0 0 0 0-11",
  starting: "M8 2.500a5.500 5.500 0 0 1 5.500 5.500",
  running: "M5.500 3.500v9l7-4.500z",
  paused: "M5.500 3.500v9M10.500 3.500v9",
  stopping: "M4.500 4.500h7v7h-7z",
  succeeded: "M3 8.500l3.500 3.500L13 4.500",
  failed: "M4 4l8 8M12 4l-8 8",
  stopped: "M4.500 4.500h7v7h-7z",
  timed_out: "M8 2.500a5.500 5.500 0 1 0 0 11a5.500 5.500 0 0 0 0-11M8 5v3.300l2 1.400",
  start_failed: "M8 3v6M8 12v.5",
  lost: "M5.500 6a2.500 2.500 0 1 1 3.600 2.200c-.800.400-1.100.900-1.100 1.600M8 12.500v.3",
};

/** The sign of a status; what it means always stands beside it in words. */
export function sign(status) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", PATHS[status] ?? PATHS.lost);
  svg.append(path);
  return el("span", { class: `sign s-${status}` }, svg);
}

let hide = 0;

/** Says something at the bottom of the page for a while, also to a screen reader. */
export function toast(text, bad = false) {
  const place = byId("toast");
  place.className = bad ? "toast bad" : "toast";
  place.hidden = false;
  place.textContent = text;
  clearTimeout(hide);
  hide = setTimeout(() => { place.hidden = true; place.textContent = ""; }, bad ? 9000 : 4000);
}
