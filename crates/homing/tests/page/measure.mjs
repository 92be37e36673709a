// Figures for the benchmark, not a test: how soon the page is painted with a thousand tasks, and how soon it shows a start, output and an end while fifty tasks print. Each is the median and the
// worst of several, by the clock of the browser, which is that of this machine.

import { api, chrome, fs, homing, live, path, submit, until } from "./browser.mjs";
import { execFileSync } from "node:child_process";

const [TASKS, PRINTERS, VISITS, TRIES] = [1000, 50, 9, 15];
const all = { first_paint: [], shown: [], again: [], start: [], output: [], end: [] };

homing("daemon", "start");
const rest = Array.from({ length: TASKS }, (_, n) => n);
await Promise.all(Array.from({ length: 16 }, async () => {
  for (let n = rest.pop(); n !== undefined; n = rest.pop()) {
    const { id, owner } = await api("POST", "/v1/tasks", { kind: "external", name: `task ${n}`, lease_ms: 3_600_000, notify: { on: "never", targets: [] } });
    await api("POST", `/v1/tasks/${id}/complete`, { owner });
  }
}));

/** Notes when the first rows are there to be painted. */
const prepare = (page) => page.addInitScript(() => {
  const look = () => {
    if (document.querySelectorAll(".row").length > 5) globalThis.shownAt = performance.now();
    else requestAnimationFrame(look);
  };
  look();
});

/** When there was the first paint, and when the first rows, since the navigation began. */
async function painted(page) {
  await page.waitForFunction(() => globalThis.shownAt && performance.getEntriesByName("first-contentful-paint").length);
  return page.evaluate(() => [performance.getEntriesByName("first-contentful-paint")[0].startTime, globalThis.shownAt]);
}

/** When something is first there to be painted. */
const seen = (page, what) => page.evaluate((what) => new Promise((done) => {
  const look = () => {
    const found = what.ended ? document.querySelector(".detail h2").textContent === what.ended && document.querySelector(".badge .pill")?.textContent === "succeeded"
      : what.line ? [...document.querySelectorAll(".out .line")].some((line) => line.textContent === what.line)
      : [...document.querySelectorAll(".row")].some((row) => row.querySelector(".title").textContent === what.name && row.querySelector(".status").textContent === what.status);
    if (found) done(Date.now());
    else requestAnimationFrame(look);
  };
  look();
}), what);

await chrome(async (visit) => {
  for (let run = 0; run < VISITS; run += 1) {
    // A browser that knows nothing of the page, by the address that `homing web` prints; and once more, when it has its files.
    await visit(async ({ page, base }) => {
      const [paint, shown] = await painted(page);
      all.first_paint.push(paint);
      all.shown.push(shown);
      await page.goto(base);
      all.again.push((await painted(page))[1]);
    }, { prepare });
  }

  const stop = path.join(process.env.SCRATCH, "stop");
  for (let n = 0; n < PRINTERS; n += 1) submit(["--name", `printer ${n}`], `while [ ! -e '${stop}' ]; do echo a line of what it prints; sleep 0.5; done`);
  await visit(async ({ page }) => {
    await live(page);
    for (let n = 0; n < TRIES; n += 1) {
      const [name, say, leave] = [`probe ${n}`, path.join(process.env.SCRATCH, `say${n}`), path.join(process.env.SCRATCH, `leave${n}`)];
      for (const fifo of [say, leave]) execFileSync("mkfifo", [fifo]);
      const running = seen(page, { name, status: "running" });
      let begun = Date.now();
      const task = await api("POST", "/v1/tasks", { name, shell: `read x < '${say}'; echo said ${n}; read x < '${leave}'` });
      all.start.push((await running) - begun);
      await page.locator(`#row-${task.id}`).click();
      await page.waitForSelector(".out[data-end]");
      await until("the viewer to listen", async () => (await page.locator(".detail h2").textContent()) === name);
      const said = seen(page, { line: `said ${n}` });
      begun = Date.now();
      fs.writeFileSync(say, "\n");
      all.output.push((await said) - begun);
      const ended = seen(page, { ended: name });
      begun = Date.now();
      fs.writeFileSync(leave, "\n");
      all.end.push((await ended) - begun);
    }
  });
  fs.writeFileSync(stop, "");
});

const figures = Object.fromEntries(Object.entries(all).map(([name, times]) => {
  const sorted = times.map((time) => Math.round(time)).sort((a, b) => a - b);
  return [name, { median: sorted[Math.floor(sorted.length / 2)], worst: sorted.at(-1) }];
}));
console.error(`page: load ${fs.readFileSync("/proc/loadavg", "utf8").split(" ").slice(0, 3).join(" ")}; ${JSON.stringify(all, (_, time) => (typeof time === "number" ? Math.round(time) : time))}`);
console.log(JSON.stringify(figures));
