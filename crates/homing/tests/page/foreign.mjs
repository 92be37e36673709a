// A browser that is signed in looks at a page of somebody else, which tries what such a page can: it reads nothing and changes nothing. Cookies know no ports: from another
// port of this machine the browser sends ours along.

import http from "node:http";
import { api, assert, chrome, submit } from "./browser.mjs";

const victim = submit(["--name", "mine"], "sleep 600");
const elsewhere = http.createServer((_, answer) => answer.writeHead(200, { "content-type": "text/html" }).end("<!doctype html><title>elsewhere</title>"));
await new Promise((done) => { elsewhere.listen(0, "127.0.0.1", done); });
const { port } = elsewhere.address();
const count = async () => (await api("GET", "/v1/tasks")).items.length;

/** What a page of another origin can do with an address of ours, without anybody's help; answers with what came of each try. */
async function attack([base, victim]) {
  const body = JSON.stringify({ argv: ["touch", "/tmp/owned"] });
  const json = { "content-type": "application/json" };
  const ask = async (target, options) => {
    try {
      const answer = await fetch(base + target, { credentials: "include", ...options });
      return answer.type === "opaque" ? "opaque" : `read: ${answer.status}`;
    } catch { return "refused"; }
  };
  const loads = (name, change) => new Promise((done) => {
    const made = Object.assign(document.createElement(name), change);
    made.onload = () => done("loaded");
    made.onerror = () => done("refused");
    document.head.append(made);
  });
  const streams = new Promise((done) => {
    const stream = new EventSource(`${base}v1/events`, { withCredentials: true });
    stream.onopen = () => done("opened");
    stream.onerror = () => { stream.close(); done("refused"); };
  });
  return {
    get: await ask("v1/tasks", {}),
    submit: await ask("v1/tasks", { method: "POST", body, headers: json }),
    plain: await ask("v1/tasks", { method: "POST", body, mode: "no-cors" }),
    stop: await ask(`v1/tasks/${victim}/stop`, { method: "POST", mode: "no-cors" }),
    forget: await ask(`v1/tasks/${victim}`, { method: "DELETE", headers: json }),
    script: await loads("script", { src: `${base}page/app.js` }),
    style: await loads("link", { rel: "stylesheet", href: `${base}page/style.css` }),
    events: await streams,
  };
}

await chrome((visit) => visit(async ({ page, context, base }) => {
  const ours = Number(new URL(base).port);
  for (const origin of [`http://127.0.0.1:${port}/`, `http://elsewhere.test:${port}/`]) {
    const other = await context.newPage();
    await other.goto(origin);
    const tried = await other.evaluate(attack, [base, victim]);
    for (const [what, came] of Object.entries(tried)) assert(["refused", "opaque"].includes(came), `${origin} ${what}: ${came}`);
    // A form of theirs, and a link of theirs: the browser goes there, and is refused.
    for (const method of ["post", "get"]) {
      await other.goto(origin);
      const [answer] = await Promise.all([
        other.waitForResponse((answer) => answer.url().startsWith(base)),
        other.waitForURL((url) => url.href.startsWith(base)),
        other.evaluate(([base, victim, method]) => {
          const form = Object.assign(document.createElement("form"), { method, action: `${base}v1/tasks/${victim}/stop`, enctype: "text/plain" });
          document.body.append(form);
          form.submit();
        }, [base, victim, method]),
      ]);
      assert.equal(answer.status(), 403, `${origin} ${method}`);
    }
    // A frame of theirs around our page.
    await other.goto(origin);
    const [framed] = await Promise.all([
      other.waitForResponse((answer) => answer.url() === base),
      other.evaluate((base) => { document.body.append(Object.assign(document.createElement("iframe"), { src: base })); }, base),
    ]);
    assert.equal(framed.status(), 403, `${origin} frame`);
    await other.close();
  }
  // By a name that somebody else makes mean this machine; and by another name of this machine, for which there is no cookie.
  const renamed = await context.newPage();
  assert.equal((await renamed.goto(`http://elsewhere.test:${ours}/`)).status(), 403);
  assert.match(await renamed.textContent("body"), /HM0051/);
  assert.equal((await renamed.goto(`http://localhost:${ours}/`)).status(), 401);
  assert.match(await renamed.textContent("body"), /HM0362/);
  await renamed.close();

  // Nothing came of any of it, and the page is as good as before.
  assert.equal(await count(), 1);
  assert.equal((await api("GET", `/v1/tasks/${victim}`)).status, "running");
  await page.bringToFront();
  assert.equal(await page.evaluate(async (id) => (await fetch(`/v1/tasks/${id}`)).status, victim), 200);
}), [`--host-resolver-rules=MAP elsewhere.test 127.0.0.1`]);
elsewhere.close();
await api("POST", `/v1/tasks/${victim}/stop`, {});
