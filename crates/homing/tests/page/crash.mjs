// The daemon dies under the page, and the page is right again by itself; a browser that is signed out says so, and goes on once it is signed in.

import { assert, browse, homing, homingJson, live, prints, row, says, submit, until } from "./browser.mjs";

const before = submit(["--name", "before"], "echo here; sleep 600");

await browse(async ({ page, context, tab, complaints }) => {
  await says(page, before, "running");
  await row(page, before).click();
  await prints(page, "here");
  // So that a reload would be seen.
  await page.evaluate(() => { globalThis.sameDocument = true; });

  for (let round = 0; round < 3; round += 1) {
    // From here on until the page says otherwise, it must have said that the connection is lost.
    await page.evaluate(() => {
      globalThis.wasLost = false;
      new MutationObserver(() => { globalThis.wasLost ||= document.getElementById("link").dataset.state === "lost"; }).observe(document.getElementById("link"), { attributes: true });
    });
    process.kill(homingJson("status").daemon.pid, "SIGKILL");
    const during = submit(["--name", `during ${round}`], "echo during");
    await page.waitForFunction(() => globalThis.wasLost);
    await live(page);
    await says(page, during, "succeeded");
    const after = submit(["--name", `after ${round}`], "echo after; exit 3");
    await says(page, after, "exit 3");
    await says(page, before, "running");
    assert.equal(await page.locator("#lost").isHidden(), true);
  }

  // Stopped on purpose it stays away, and the page says so until somebody starts it.
  homing("daemon", "stop");
  await page.waitForFunction(() => /Connection lost, retrying/.test(document.getElementById("lost-text").textContent));
  homing("daemon", "start");
  await live(page);

  // The output goes on as well.
  const printing = submit(["--name", "printing"], "n=0; while [ $n -lt 2000 ]; do n=$((n+1)); echo line $n; sleep 0.05; done");
  await says(page, printing, "running");
  await row(page, printing).click();
  await prints(page, "line 3");
  process.kill(homingJson("status").daemon.pid, "SIGKILL");
  const reached = () => page.evaluate(() => Math.max(0, ...[...document.querySelectorAll(".out .line")].map((line) => Number(/line (\d+)/.exec(line.textContent)?.[1] ?? 0))));
  const now = await reached();
  await until("more output", async () => (await reached()) > now + 10);
  homing("stop", printing);
  homing("stop", before);
  await says(page, before, "stopped");

  // Another token signs it out. Signed in by another tab, it goes on: nobody has to reload it.
  homing("token", "rotate");
  await page.waitForFunction(() => document.getElementById("link").dataset.state === "signed-out");
  assert.match(await page.textContent("#lost-text"), /homing web/);
  const other = await tab();
  const answer = await other.goto(homingJson("web").url);
  assert.equal(answer.status(), 200);
  await live(other);
  await page.bringToFront();
  await live(page);
  const last = submit(["--name", "last"], "true");
  await says(page, last, "succeeded");
  assert.equal(await page.evaluate(() => globalThis.sameDocument), true, "it was never reloaded");

  // The old cookie, shown by hand, opens nothing.
  const [cookie] = await context.cookies();
  assert(cookie.httpOnly && cookie.sameSite === "Strict", JSON.stringify(cookie));
  assert.equal(await page.evaluate(() => document.cookie), "", "no script sees it");
  assert.deepEqual(complaints, []);
});
