// What every scenario needs: a home, the daemon's API on its socket, and Chromium on its page.
//
// The test that calls this says in the environment where homing, its home and the modules of Node are. Whoever works on the page may set HOMING_PAGE_FILES to the folder of its files:
// they are then taken from there instead of from the binary.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import http from "node:http";
import { createRequire } from "node:module";
import path from "node:path";

const { HOMING, HOMING_HOME, MODULES, SCRATCH, HOMING_PAGE_FILES } = process.env;
const require = createRequire(path.join(MODULES, "package.json"));
const { chromium } = require("playwright-core");

export const DEADLINE = 120_000;

/** Calls the command line; what it prints is the answer. */
export const homing = (...words) => execFileSync(HOMING, words, { cwd: SCRATCH, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] }).trim();
export const homingJson = (...words) => JSON.parse(homing(...words, "--json"));
export const submit = (options, line) => homing("run", ...options, "-c", line);

const agent = new http.Agent({ keepAlive: true, maxSockets: 24 });

/** A request on the Unix socket. */
export function api(method, target, body) {
  return new Promise((done, failed) => {
    const asked = http.request({ socketPath: path.join(HOMING_HOME, "homing.sock"), agent, method, path: target, headers: { "content-type": "application/json", host: "homing" } }, (answer) => {
      const parts = [];
      answer.on("data", (part) => parts.push(part));
      answer.on("end", () => {
        const text = Buffer.concat(parts).toString();
        if (answer.statusCode >= 400) failed(new Error(`${method} ${target}: ${answer.statusCode} ${text}`));
        else done(JSON.parse(text));
      });
    });
    asked.on("error", failed);
    asked.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

/** Asks again until the answer is a true one. */
export async function until(what, ask, deadline = DEADLINE) {
  const end = Date.now() + deadline;
  for (;;) {
    const answer = await ask();
    if (answer) return answer;
    assert(Date.now() < end, `timed out waiting for ${what}`);
    await new Promise((done) => { setTimeout(done, 30); });
  }
}

const TYPES = { ".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/svg+xml" };
const KEEPING_QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"];

/** Chromium, for as long as the work takes; it is given a way to visit the page, as often as it likes, each time as a browser that knows nothing yet. */
export async function chrome(work, args = []) {
  const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", headless: true, args: [...KEEPING_QUIET, ...args] });
  try {
    await work((seen, options) => visit(browser, seen, options));
  } finally {
    await browser.close();
  }
}

/** One visit, by a browser of its own. */
export const browse = (work, options) => chrome((visit) => visit(work, options));

/** A signed-in visit, with what Chromium complains of gathered; nothing on this page may make it complain. `prepare` is given the tab before it goes anywhere. */
async function visit(browser, work, { prepare = () => {}, ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: "reduce", acceptDownloads: true, ...options });
  context.setDefaultTimeout(DEADLINE);
  const complaints = [];
  const tab = async () => {
    const page = await context.newPage();
    page.on("pageerror", (error) => complaints.push(`error: ${error.message}`));
    page.on("console", (message) => {
      // A connection that breaks on purpose is said by the browser itself.
      if (["error", "warning"].includes(message.type()) && !/Failed to load resource|net::ERR_|ERR_CONNECTION/.test(message.text())) complaints.push(`${message.type()}: ${message.text()}`);
    });
    page.on("dialog", (dialog) => { complaints.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
    if (HOMING_PAGE_FILES) {
      const serve = (file) => (route) => route.fulfill({ body: fs.readFileSync(path.join(HOMING_PAGE_FILES, file)), headers: { "content-type": TYPES[path.extname(file)] } });
      await page.route((url) => url.pathname === "/", serve("index.html"));
      await page.route((url) => url.pathname.startsWith("/page/"), (route) => serve(path.basename(new URL(route.request().url()).pathname))(route));
    }
    return page;
  };
  const page = await tab();
  try {
    await prepare(page);
    const { url } = homingJson("web");
    const answer = await page.goto(url);
    assert.equal(answer.status(), 200);
    const base = new URL("/", url).href;
    assert.equal(page.url(), base, "the code is not in the address that the browser keeps");
    if (HOMING_PAGE_FILES) await page.goto(base);
    await live(page);
    await work({ page, context, base, tab, complaints });
    assert.deepEqual(complaints, []);
  } catch (error) {
    if (complaints.length) console.error(`the browser complained:\n${complaints.join("\n")}`);
    console.error(`the page was: ${await page.evaluate(standing).catch((why) => why.message)}`);
    await page.screenshot({ path: path.join(SCRATCH, "failed.png") }).catch(() => {});
    throw error;
  } finally {
    await context.close();
  }
}

/** How the page is, in a line, for the report of a failure. */
function standing() {
  const out = document.querySelector(".out");
  const text = (what) => document.querySelector(what)?.textContent;
  return JSON.stringify({
    at: location.search, link: document.getElementById("link")?.dataset.state, hidden: document.hidden, task: text(".detail h2"), badge: text(".badge"), follow: document.querySelector(".follow")?.getAttribute("aria-pressed"),
    output: { ...out?.dataset }, scroll: [out?.scrollTop, out?.scrollHeight, out?.clientHeight], last: [...document.querySelectorAll(".out .line")].at(-1)?.textContent.slice(0, 80),
  });
}

/** Until the page has the tasks and hears of what happens. */
export const live = (page) => page.waitForFunction(() => document.getElementById("link")?.dataset.state === "live");

/** The row of a task, while it is in sight. */
export const row = (page, id) => page.locator(`#row-${id}`);

/** Until the row of a task says this. */
export const says = (page, id, status) => page.waitForFunction(([id, status]) => document.querySelector(`#row-${id} .status`)?.textContent === status, [id, status]);

/** Until a line of the output in sight has this in it. */
export const prints = (page, text) => page.waitForFunction((text) => [...document.querySelectorAll(".out .line")].some((line) => line.textContent.includes(text)), text);

export { assert, fs, path, require };
