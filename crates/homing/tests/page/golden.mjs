// What people come for: to see a task start, print and end; to submit, stop and run again; to acknowledge, to send again; filters and keys.

import { api, assert, browse, fs, homing, homingJson, prints, row, says, submit, until } from "./browser.mjs";

const done = submit(["--name", "quick", "--owner", "ci", "--label", "branch=main"], "echo hello; echo oops >&2");
homing("wait", done);
const heard = `${process.env.SCRATCH}/heard`;
const sent = submit(["--name", "told", "--notify", `exec:echo heard >> '${heard}'`], "true");

await browse(async ({ page, base, tab }) => {
  // What there was before is there.
  await says(page, done, "succeeded");

  // Before the first answer the page does not say that there is nothing, and if none comes it says that.
  const early = await tab();
  const first = (url) => url.pathname === "/v1/tasks";
  const held = [];
  let refuse = false;
  await early.route(first, (route) => (refuse ? route.abort() : held.push(route)));
  await early.goto(base, { waitUntil: "domcontentloaded" });
  await until("the first request", () => held.length);
  const empty = early.locator(".view-list .empty");
  assert.equal(await empty.textContent(), "Loading the tasks");
  assert.equal(await early.locator(".groups .count", { hasText: /\d/ }).count(), 0, "and no number is said");
  refuse = true;
  for (const route of held.splice(0)) await route.abort();
  await early.waitForFunction(() => /^Connection lost, retrying/.test(document.querySelector(".view-list .empty").textContent));
  assert.match(await early.textContent("#lost-text"), /^Connection lost, retrying/);
  await early.unroute(first);
  await says(early, done, "succeeded");
  assert.equal(await empty.isHidden(), true);
  await early.close();

  // A part of the page that did not come is asked for again, with the page.
  const partly = await tab();
  let asked = 0;
  await partly.route((url) => url.pathname.endsWith("/views.js"), (route) => { asked += 1; return asked === 1 ? route.abort() : route.fallback(); });
  await partly.goto(base);
  await partly.waitForSelector("#right .detail", { state: "attached" });
  assert.equal(asked, 2);
  await partly.close();
  await page.bringToFront();

  // What begins, prints and ends is seen without a reload.
  const gate = `${process.env.SCRATCH}/gate`;
  const slow = submit(["--name", "slow"], `echo first; while [ ! -e '${gate}' ]; do sleep 0.05; done; echo last; exit 7`);
  await says(page, slow, "running");
  await row(page, slow).click();
  await prints(page, "first");
  assert.match(page.url(), new RegExp(`task=${slow}`));
  fs.writeFileSync(gate, "");
  await prints(page, "last");
  await says(page, slow, "exit 7");
  await page.waitForFunction(() => document.querySelector(".badge .pill")?.textContent === "failed");
  assert.equal(await page.title(), "slow \u2013 failed");

  // Details, by tab and by address.
  await page.getByRole("tab", { name: "Details" }).click();
  await page.waitForFunction(() => [...document.querySelectorAll(".facts dd")].some((dd) => dd.textContent === "7"));
  assert.match(page.url(), /tab=about/);
  await page.reload();
  await page.waitForFunction(() => document.querySelector(".facts"));
  await page.getByRole("tab", { name: "Notices" }).click();
  await page.getByRole("button", { name: "Acknowledge" }).click();
  await page.waitForFunction(() => document.querySelector(".told td:nth-child(3)")?.textContent === "acknowledged");
  assert(!homingJson("inbox").items.some((notice) => notice.task.id === slow));

  // Streams are told apart; the whole output can be saved.
  await page.goto(`${base}?task=${done}`);
  await prints(page, "hello");
  await page.waitForFunction(() => document.querySelector(".line.err")?.textContent === "oops");
  const saving = page.waitForEvent("download");
  await page.getByRole("link", { name: "Download" }).click();
  assert.equal(fs.readFileSync(await (await saving).path(), "utf8"), "hello\noops\n");

  // Filters live in the address.
  await page.keyboard.press("Escape");
  await page.keyboard.press("/");
  await page.keyboard.type("quick branch=main");
  await page.waitForFunction(() => document.getElementById("list").dataset.count === "1");
  assert.match(page.url(), /q=quick\+branch%3Dmain/);
  await page.reload();
  await page.waitForFunction(() => document.getElementById("list").dataset.count === "1");
  assert.equal(await page.inputValue("#filter"), "quick branch=main");
  await page.goto(`${base}?status=failed`);
  await page.waitForFunction(() => document.getElementById("list").dataset.count === "1");
  await page.goBack();
  await page.waitForFunction(() => document.getElementById("filter").value === "quick branch=main");
  await page.goto(base);

  // The form, which keeps what was wrong and says why.
  await page.keyboard.press("n");
  await page.fill("textarea[name=shell]", "echo from the form; sleep 600");
  await page.fill("input[name=timeout]", "soon");
  await page.keyboard.press("Control+Enter");
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.waitForFunction(() => /time limit/.test(document.querySelector(".wrong").textContent));
  await page.fill("input[name=timeout]", "10m");
  await page.fill("input[name=name]", "formed");
  await page.fill("input[name=cwd]", "/no/such/folder/at all");
  await page.fill("input[name=cwd]", "/tmp");
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await prints(page, "from the form");
  const formed = new URL(page.url()).searchParams.get("task");
  const kept = await api("GET", `/v1/tasks/${formed}`);
  assert.deepEqual([kept.name, kept.timeout_ms, kept.cwd, kept.owner], ["formed", 600_000, "/tmp", "user"]);

  // Paused and let go on, by button and by key; the page says what the daemon says, and so does the task itself, which stands still.
  const status = async () => (await api("GET", `/v1/tasks/${formed}`)).status;
  const states = ["Pause", "Resume"];
  for (const [act, name] of states.entries()) {
    await page.getByRole("button", { name, exact: true }).click();
    await says(page, formed, ["paused", "running"][act]);
    assert.equal(await status(), ["paused", "running"][act]);
    await page.getByRole("button", { name: states[1 - act], exact: true }).waitFor();
    assert.equal(await page.getByRole("button", { name, exact: true }).count(), 0, `${name} is not offered again`);
  }
  await page.locator("#list").focus();
  await page.keyboard.press("p");
  await says(page, formed, "paused");
  await page.keyboard.press("p");
  await says(page, formed, "running");
  assert.equal(await status(), "running");

  // Stop, after a question.
  await page.locator("#list").focus();
  await page.keyboard.press("s");
  await page.getByRole("button", { name: "Cancel" }).click();
  assert.equal((await api("GET", `/v1/tasks/${formed}`)).status, "running");
  await page.locator("[data-act=stop]").click();
  await page.locator("dialog[open] button.danger").click();
  await says(page, formed, "stopped");
  assert.equal((await api("GET", `/v1/tasks/${formed}`)).outcome.stopped_by, "the page");

  // Again, as a new task.
  await page.locator("[data-act=rerun]").click();
  const again = await until("another task", async () => { const id = new URL(page.url()).searchParams.get("task"); return id !== formed && id; });
  await says(page, again, "running");
  await prints(page, "from the form");
  const second = await api("GET", `/v1/tasks/${again}`);
  assert.deepEqual([second.command, second.name, second.timeout_ms, second.cwd], [kept.command, "formed", 600_000, "/tmp"]);
  homing("stop", again);
  await says(page, again, "stopped");

  // Forgotten here, gone there.
  await page.locator("[data-act=forget]").click();
  await page.locator("dialog[open] button.danger").click();
  await page.waitForFunction((id) => !document.getElementById(`row-${id}`), again);
  assert.equal((await api("GET", `/v1/tasks/${again}`)).forgotten, true);

  // By keys through the list.
  await page.goto(base);
  await page.locator("#list").focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await page.waitForFunction(() => document.querySelector(".row[aria-selected=true]")?.getAttribute("aria-posinset") === "2");
  await page.keyboard.press("k");
  await page.waitForFunction(() => document.querySelector(".row[aria-selected=true]")?.getAttribute("aria-posinset") === "1");
  await page.keyboard.press("?");
  await page.getByRole("heading", { name: "Keys" }).waitFor();
  await page.keyboard.press("Escape");

  // Deliveries, and sending again.
  await page.keyboard.press("4");
  const one = async () => (await api("GET", `/v1/deliveries?task=${sent}`)).items.find(({ state }) => state === "delivered");
  const delivery = await until("a delivery", one);
  assert.equal(fs.readFileSync(heard, "utf8"), "heard\n");
  await page.getByRole("button", { name: `Send again: ${delivery.id}` }).click();
  await until("it was sent again", () => fs.readFileSync(heard, "utf8") === "heard\nheard\n");
  const twice = await until("both attempts", async () => { const now = await one(); return now?.history.length === 2 && now; });
  assert.equal(twice.id, delivery.id, "the same delivery, with its whole history");
  await page.waitForFunction((id) => /2 attempts/.test(document.querySelector(`[data-delivery="${id}"]`)?.textContent), delivery.id);

  // The inbox: looking takes nothing away, acknowledging does.
  await page.keyboard.press("3");
  await page.waitForSelector(`.notice a[data-task="${done}"]`);
  const waits = async () => (await api("GET", "/v1/inbox/ci")).items.length;
  assert.equal(await waits(), 1);
  await page.getByRole("button", { name: "Acknowledge quick" }).click();
  await page.waitForFunction((id) => !document.querySelector(`.notice a[data-task="${id}"]`), done);
  assert.equal(await waits(), 0);

  // The timeline: as many tasks as there are, closer and wider by wheel, keys and buttons.
  await page.keyboard.press("2");
  const count = (await api("GET", "/v1/tasks?limit=1000")).items.length;
  await page.waitForFunction((count) => document.querySelector("canvas")?.dataset.count === String(count), count);
  const width = () => page.locator("canvas").evaluate((canvas) => Number(canvas.dataset.width));
  const before = await width();
  await page.getByRole("button", { name: "Closer" }).click();
  await page.waitForFunction((before) => Number(document.querySelector("canvas").dataset.width) < before, before);
  const closer = await width();
  await page.locator(".field").focus();
  await page.keyboard.press("-");
  await page.keyboard.press("-");
  await page.waitForFunction((closer) => Number(document.querySelector("canvas").dataset.width) > closer * 2, closer);
  const wider = await width();
  await page.mouse.move(600, 400);
  await page.mouse.wheel(0, -500);
  await page.waitForFunction((wider) => Number(document.querySelector("canvas").dataset.width) < wider, wider);
});
