// Output is text, whatever is in it; and a gigabyte of it is as quick as a line.

import { assert, browse, fs, homing, path, prints, row, says, submit } from "./browser.mjs";

const script = path.join(process.env.SCRATCH, "hostile.py");
fs.writeFileSync(script, `
import sys
out = sys.stdout.buffer
def say(text): out.write(text.encode() + b"\\n")
say("<script>document.title='owned'</script><img src=x onerror=\\"document.title='owned'\\"><b>bold</b>&amp;")
say("\\u202egnp.exe\\u202c \\u2066isolated\\u2069 zero\\u200bwidth")
say("\\x1b]0;owned\\x07\\x1b[31mred\\x1b[0m\\x1b[2J\\x1b[H \\x1b]8;;javascript:alert(1)\\x07link\\x1b]8;;\\x07 \\x1b[1;38;5;208mwarm\\x1b[0m")
say("5%\\r50%\\r100%")
out.write(b"\\xff\\xfe\\x00\\x07 bytes\\n")
say("L" * 3000000)
say("\\u00e9" * 40000)
say("the end of it")
`);
const name = "<img src=x onerror=alert(1)> \u202egnp.exe";
const hostile = homing("run", "--name", name, "--label", "k=<b>v</b>", "--", "python3", script);
const capped = homing("run", "--name", "capped", "--max-output", "1MiB", "--", "seq", "1", "1000000");
const big = path.join(process.env.SCRATCH, "big.py");
fs.writeFileSync(big, `
import sys
size, n, left = 1 << 20, 0, 1 << 30
block = b"".join(b"%06d all work and no play makes a long output, and this is one line of it\\n" % (k % 1000000) for k in range(15000))
block = block[:block.rindex(b"\\n", 0, size) + 1]
while left > 0:
    head = b"block %012d\\n" % n
    sys.stdout.buffer.write((head + block)[:left] if left < len(block) + len(head) else head + block)
    left -= len(block) + len(head)
    n += 1
sys.stdout.buffer.write(b"\\nneedle in the last line\\n")
`);
const gigabyte = homing("run", "--name", "gigabyte", "--max-output", "4GiB", "--", "python3", big);

await browse(async ({ page, complaints }) => {
  await says(page, hostile, "succeeded");
  await row(page, hostile).click();
  await prints(page, "<script>");
  const line = (text) => page.locator(".out .line", { hasText: text }).first();
  // Nothing became markup, anywhere on the page.
  for (const made of ["img", "script:not([src])", "b", "iframe", "a[href^=javascript]"]) assert.equal(await page.locator(made).count(), 0, made);
  assert.match(await page.title(), /^<img/);
  assert.match(await row(page, hostile).locator(".title").textContent(), /^<img src=x onerror=alert\(1\)> \u2039U\+202E\u203agnp\.exe$/);
  // What would reorder or hide is shown as what it is; escapes colour, and do nothing else.
  assert.equal(await line("gnp.exe").textContent(), "\u2039U+202E\u203agnp.exe\u2039U+202C\u203a \u2039U+2066\u203aisolated\u2039U+2069\u203a zero\u2039U+200B\u203awidth");
  assert.equal(await line("red").textContent(), "red link warm");
  assert.equal(await line("red").locator(".f1").textContent(), "red");
  assert.equal(await line("100%").textContent(), "100%");
  assert.equal(await line("bytes").textContent(), "\ufffd\ufffd\u2400\u2407 bytes");
  // A line of three million letters is cut into rows, none of which is lost.
  assert((await page.locator(".out .line").count()) < 200);
  await page.locator(".out").focus();
  await page.keyboard.press("End");
  await prints(page, "the end of it");
  await page.fill(".toolbar input", "\u00e9\u00e9\u00e9");
  await page.keyboard.press("Enter");
  await page.waitForSelector("mark");
  assert.doesNotMatch(await page.locator(".line.current").textContent(), /\ufffd/, "no letter is cut in half");
  assert.notEqual(await page.title(), "owned");

  // What is no longer kept is marked once, with its size, and what is around it is there.
  await says(page, capped, "succeeded");
  await row(page, capped).click();
  await page.waitForFunction(() => document.querySelector(".out .line")?.textContent === "1");
  await page.locator(".out").evaluate((box) => { box.scrollTop = box.scrollHeight / 2; });
  await prints(page, "MB are not kept \u2026 ");
  for (let n = 0; n < 3; n += 1) await page.locator(".out").press("PageUp");
  await page.waitForFunction(() => Number(document.querySelector(".out .line")?.textContent) < 100_000);
  for (let n = 0; n < 3; n += 1) await page.locator(".out").press("PageDown");
  await prints(page, "MB are not kept \u2026 ");
  assert.equal(await page.locator(".gap", { hasText: "not kept" }).count(), 1);

  // The gigabyte.
  await page.waitForFunction((id) => document.querySelector(`#row-${id} .status`)?.textContent === "succeeded", gigabyte, { timeout: 240_000 });
  await row(page, gigabyte).click();
  await prints(page, "block 000000000000");
  const out = page.locator(".out");
  const top = () => out.evaluate((box) => Number(box.dataset.top));
  const end = await out.evaluate((box) => Number(box.dataset.end));
  assert(end > 2 ** 30, String(end));
  const whole = async () => {
    const texts = await page.locator(".out .line").allTextContents();
    assert(texts.length > 10 && texts.length < 200, String(texts.length));
    for (const text of texts) assert.match(text, /^(\d{6} all work and no play makes a long output, and this is one line of it|block \d{12}|needle in the last line|[^]*)$/);
    return texts.filter((text) => /^\d{6} all work/.test(text)).map((text) => Number(text.slice(0, 6)));
  };
  // Anywhere, by the bar at the side: rows follow each other there.
  for (const part of [0.5, 0.1, 0.9, 0.333]) {
    await out.evaluate((box, part) => { box.scrollTop = box.scrollHeight * part; }, part);
    await page.waitForFunction(([part, end]) => Math.abs(Number(document.querySelector(".out").dataset.top) / end - part) < 0.02 && document.querySelectorAll(".out .line").length > 10, [part, end]);
    const numbers = await whole();
    for (let n = 1; n < numbers.length; n += 1) assert(numbers[n] === numbers[n - 1] + 1 || numbers[n] === 0, `${numbers[n - 1]} then ${numbers[n]}`);
  }
  // By wheel and keys: as far as was asked, no further, and back.
  const from = await top();
  const lines = () => page.locator(".out .line").first().textContent();
  const first = await lines();
  await out.focus();
  for (let n = 0; n < 30; n += 1) await page.keyboard.press("PageDown");
  await page.waitForFunction((from) => Number(document.querySelector(".out").dataset.top) > from + 30_000, from);
  for (let n = 0; n < 30; n += 1) await page.keyboard.press("PageUp");
  await page.waitForFunction((from) => Number(document.querySelector(".out").dataset.top) === from, from);
  assert.equal(await lines(), first);
  await page.mouse.move(900, 500);
  for (let n = 0; n < 20; n += 1) await page.mouse.wheel(0, 180);
  await page.waitForFunction((from) => Number(document.querySelector(".out").dataset.top) > from + 10_000, from);
  await page.keyboard.press("End");
  await prints(page, "needle in the last line");
  await page.keyboard.press("Home");
  await prints(page, "block 000000000000");
  // A search goes through pieces that nobody has looked at, as far as it must, and from the end on from the start.
  await page.fill(".toolbar input", "BLOCK 000000000150");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelector("mark")?.textContent === "block 000000000150", null, { timeout: 240_000 });
  assert.match(await page.textContent(".found"), /^at 1\d\d\.\d MB$/);
  await out.focus();
  await page.keyboard.press("End");
  await prints(page, "needle in the last line");
  await page.fill(".toolbar input", "block 000000000003");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelector("mark")?.textContent === "block 000000000003", null, { timeout: 240_000 });
  assert.match(await page.textContent(".found"), /^at 3\.\d\d MB, from the start$/);
  // And backwards, to the last one before the end.
  await out.focus();
  await page.keyboard.press("End");
  await prints(page, "needle in the last line");
  await page.fill(".toolbar input", "block 000000000990");
  await page.keyboard.press("Shift+Enter");
  await page.waitForFunction(() => document.querySelector("mark")?.textContent === "block 000000000990", null, { timeout: 240_000 });
  assert.deepEqual(complaints, []);
});
