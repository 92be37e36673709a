// Ten thousand tasks in the list, scrolled through while hundreds of them change: nothing is dropped.

import { api, assert, browse, homing } from "./browser.mjs";

const MANY = 10_000;
const CHANGED = 600;
const each = async (items, work) => {
  const rest = [...items];
  await Promise.all(Array.from({ length: 24 }, async () => { while (rest.length) await work(rest.pop()); }));
};

// They are in the ledger of this home already.
homing("daemon", "start");
const ids = [];
for (let cursor = ""; cursor !== null;) {
  const page = await api("GET", `/v1/tasks?limit=1000${cursor && `&cursor=${cursor}`}`);
  ids.push(...page.items.map(({ id, owner }) => ({ id, owner })));
  cursor = page.next_cursor;
}
assert.equal(ids.length, MANY);

await browse(async ({ page }) => {
  await page.waitForFunction((many) => Number(document.body.dataset.tasks) === many, MANY, { timeout: 120_000 });
  await page.waitForFunction((many) => document.getElementById("list").dataset.count === String(many), MANY);
  const rows = await page.locator(".row").count();
  assert(rows > 10 && rows < 100, `only what is in sight is drawn: ${rows}`);

  // Every status that a row shows while it is scrolled must be one that the task has had.
  const changing = each(ids.slice(0, CHANGED), ({ id, owner }) => api("POST", `/v1/tasks/${id}/complete`, { owner }));
  for (let n = 0; n <= 40; n += 1) {
    await page.evaluate((part) => { const list = document.getElementById("list"); list.scrollTop = part * (list.scrollHeight - list.clientHeight); }, (n % 21) / 20);
    await page.evaluate(() => new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); }));
    const seen = await page.evaluate(() => {
      const list = document.getElementById("list").getBoundingClientRect();
      return [...document.querySelectorAll(".row")].filter((row) => { const box = row.getBoundingClientRect(); return box.bottom > list.top && box.top < list.bottom; }).length;
    });
    assert(seen >= 10, `rows in sight at step ${n}: ${seen}`);
  }
  await changing;

  const count = (name) => page.evaluate((name) => Number([...document.querySelectorAll(".groups button")].find((one) => one.textContent.startsWith(name)).querySelector(".count").textContent.replace(",", "")), name);
  await page.waitForFunction((done) => [...document.querySelectorAll(".groups button")].find((one) => one.textContent.startsWith("Succeeded")).querySelector(".count").textContent === String(done), CHANGED);
  assert.equal(await count("Live"), MANY - CHANGED);

  // The list is in the order of the daemon, and each row says what the daemon says.
  await page.evaluate(() => { document.getElementById("list").scrollTop = 1e9; });
  await page.waitForFunction((many) => [...document.querySelectorAll(".row")].some((row) => row.getAttribute("aria-posinset") === String(many)), MANY);
  const shown = await page.evaluate(() => [...document.querySelectorAll(".row")].map((row) => [row.dataset.id, row.querySelector(".status").textContent]));
  for (const [id, status] of shown) assert.equal((await api("GET", `/v1/tasks/${id}`)).status, status);
  await page.fill("#filter", "task 4242");
  await page.waitForFunction(() => document.getElementById("list").dataset.count === "1");
});
