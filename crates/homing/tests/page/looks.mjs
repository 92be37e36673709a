// What it looks like, in light and dark, at a desk and on a phone: axe finds nothing to object to, and pictures are kept for the docs.

import { assert, chrome, fs, homing, path, prints, require, row, submit, until } from "./browser.mjs";

const axe = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const pictures = process.env.PICTURES;
const gate = path.join(process.env.SCRATCH, "gate");
// In the tasks, homing is on the path, and the gate is in their folder: no place of this machine is on a picture.
process.env.PATH = `${path.dirname(process.env.HOMING)}:${process.env.PATH}`;

// Some that ran one after the other, for the timeline.
for (const [name, line] of [["fetch", "sleep 0.8"], ["lint", "sleep 0.4"], ["docs", "sleep 0.6"]]) homing("wait", submit(["--name", name, "--notify-on", "never"], line));
const build = submit(["--name", "release build", "--owner", "ci", "--label", "branch=main"],
  "n=0; while [ $n -lt 12 ]; do n=$((n+1)); printf '\\033[32m   Compiling\\033[0m crate-%s v0.%s.0\\n' $n $n; done; printf '\\033[33mwarning\\033[0m: unused variable `answer`\\n' >&2; sleep 0.2; printf '\\033[1;32m    Finished\\033[0m release in 12.41 s\\n'");
submit(["--name", "unit tests", "--owner", "ci", "--label", "branch=main"], "echo running 318 tests; printf 'test parser::it_reads ... \\033[31mFAILED\\033[0m\\n'; exit 101");
submit(["--name", "nightly backup", "--notify", "exec:cat >/dev/null"], "echo 1204 files, 3.1 GB");
submit(["--name", "unheard", "--notify", "exec:exit 1"], "true");
submit(["--name", "too slow", "--timeout", "300ms"], "sleep 60");
submit(["--owner", "claude:4f1c"], "echo ok; sleep 0.4");
const server = submit(["--name", "dev server", "--label", "port=8080"],
  "n=0; while [ ! -e gate ]; do n=$((n+1)); printf '\\033[2m%s\\033[0m GET /items/%s \\033[32m200\\033[0m %s ms\\n' $(date +%T) $n $((n % 17)); sleep 0.2; done");
submit(["--name", "train the model", "--owner", "claude:4f1c", "--label", "gpu=0"], "homing progress 42 'epoch 5 of 12'; while [ ! -e gate ]; do sleep 0.2; done");
await until("their ends", async () => homing("list", "--all", "--json") && JSON.parse(homing("list", "--all", "--json")).items.filter((task) => task.ended_at).length >= 9);

/** What axe objects to: by every rule in light, and in dark by those of colour, since nothing else differs there. */
async function judge(page, where) {
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(axe);
  for (const colorScheme of ["dark", "light"]) {
    await page.emulateMedia({ colorScheme });
    const { violations, passes } = await page.evaluate((dark) => globalThis.axe.run(document, {
      resultTypes: ["violations"], ...(dark ? { runOnly: { type: "rule", values: ["color-contrast", "link-in-text-block"] } } : {}),
    }), colorScheme === "dark");
    const told = violations.map((one) => `${one.id}: ${one.help}\n${one.nodes.slice(0, 3).map((node) => `  ${node.target} ${node.failureSummary}`).join("\n")}`);
    assert.equal(told.length, 0, `${where}, ${colorScheme}\n${told.join("\n")}`);
    assert(passes.some(({ id }) => id === "color-contrast"), `${where}, ${colorScheme}: colours were looked at`);
  }
}

/** Goes to another address of the page, as its own links do. */
const to = (page, address) => page.evaluate((address) => { history.pushState(null, "", address); dispatchEvent(new PopStateEvent("popstate")); }, address);

/** The upper part is enough to see what it is like, and stays below 150 kB. */
async function picture(page, name, colorScheme, high = 540) {
  if (!pictures) return;
  const { width, height } = page.viewportSize();
  await page.emulateMedia({ colorScheme });
  await page.screenshot({ path: path.join(pictures, `${name}.png`), clip: { x: 0, y: 0, width, height: Math.min(height, high) } });
  await page.emulateMedia({ colorScheme: "light" });
}

const SIZES = { desk: { width: 1100, height: 640 }, phone: { width: 390, height: 780 } };
await chrome(async (visit) => {
  for (const [size, viewport] of Object.entries(SIZES)) {
    const desk = size === "desk";
    await visit(async ({ page }) => {
      const at = (what) => `${what}, ${size}`;
      await row(page, server).waitFor();
      await judge(page, at("list"));
      if (!desk) await picture(page, "list-phone", "light", 700);
      await row(page, server).click();
      await prints(page, "GET /items/");
      await judge(page, at("running"));
      if (desk) await picture(page, "tasks-dark", "dark");
      await to(page, `/?task=${build}`);
      await prints(page, "Compiling");
      await page.waitForSelector(".line.err");
      await judge(page, at("output"));
      if (desk) await picture(page, "tasks", "light");
      else await picture(page, "task-phone-dark", "dark", 700);
      await page.fill(".toolbar input", "crate-3");
      await page.keyboard.press("Enter");
      await page.waitForSelector("mark");
      await judge(page, at("search"));
      for (const tab of ["about", "notices"]) {
        await to(page, `/?task=${build}&tab=${tab}`);
        await page.waitForSelector(tab === "about" ? ".facts" : ".told table");
        await judge(page, at(tab));
      }
      await to(page, "/?view=timeline");
      await page.waitForFunction(() => Number(document.querySelector("canvas")?.dataset.count) >= 11);
      // As close as all of them can be seen.
      const all = JSON.parse(homing("list", "--all", "--json")).items;
      const age = Date.now() - Math.min(...all.map((task) => Date.parse(task.created_at)));
      const width = () => page.locator("canvas").evaluate((canvas) => Number(canvas.dataset.width));
      for (let wide = await width(); wide > Math.max(20_000, 1.9 * age); wide = await until("a closer look", async () => { const now = await width(); return now < wide && now; })) await page.getByRole("button", { name: "Closer" }).click();
      await judge(page, at("timeline"));
      if (desk) await picture(page, "timeline", "light", 300);
      await to(page, "/?view=inbox");
      await page.waitForSelector(".notice");
      await judge(page, at("inbox"));
      await to(page, "/?view=deliveries");
      await page.waitForSelector("[data-delivery]");
      await judge(page, at("deliveries"));
      await page.keyboard.press("?");
      await page.getByRole("heading", { name: "Keys" }).waitFor();
      await judge(page, at("help"));
      await page.keyboard.press("Escape");
      await page.keyboard.press("n");
      await page.waitForSelector("textarea[name=shell]:focus");
      await judge(page, at("form"));
      await page.keyboard.press("Escape");
      await page.evaluate(() => { document.getElementById("lost").hidden = false; document.getElementById("lost-text").textContent = "Connection lost, retrying."; });
      await judge(page, at("lost"));
      assert(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), at("nothing sticks out"));
    }, { viewport, colorScheme: "light" });
  }
});
fs.writeFileSync(gate, "");
