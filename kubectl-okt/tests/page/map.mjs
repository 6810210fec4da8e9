// Looks at the map in Chromium. `tests/cli/page.rs` makes the cluster and runs this; `OKT_PICTURES=folder` keeps pictures,
// `OKT_FRAMES=yes` counts frames instead.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";

const { KUBECTL_OKT, KUBECONFIG, PAGE_MODULES, OKT_PICTURES, OKT_FRAMES } = process.env;
const require = createRequire(`${PAGE_MODULES}/`);
const puppeteer = require("puppeteer-core");
const server = /server: "?([^"\s]+)/.exec(readFileSync(KUBECONFIG, "utf8"))[1];
const DATABASES = `${server}/apis/demo.okt.dev/v1/namespaces/default/databases`;

/** Starts the map; returns its process and its address. */
function start(...args) {
  const map = spawn(KUBECTL_OKT, ["--kubeconfig", KUBECONFIG, "map", "-A", ...args]);
  return new Promise((resolve, reject) => {
    let said = "";
    map.stderr.on("data", (data) => { said += data; process.stderr.write(data); });
    map.on("close", (code) => reject(new Error(`the map ended with ${code}: ${said}`)));
    map.stdout.on("data", (data) => {
      said += data;
      const found = /http:\/\/\S+/.exec(said);
      if (found) resolve([map, found[0]]);
    });
  });
}

/** Starts the map at a port that other programs of this machine may use for a while. */
async function startAt(port) {
  for (;;) {
    try {
      return await start("--address", `127.0.0.1:${port}`);
    } catch (error) {
      if (!error.message.includes("in use")) throw error;
      await after(100);
    }
  }
}

const after = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

async function send(path, method, type, body) {
  const answer = await fetch(`${DATABASES}${path}`, { method, headers: { "content-type": type }, body: JSON.stringify(body) });
  assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${await answer.clone().text()}`);
  return answer.json();
}

/** Moves a database along an edge, as its operator would. */
async function move(name, state, ready = {}) {
  const object = await (await fetch(`${DATABASES}/${name}`)).json();
  const { transition } = object.status.lifecycle;
  const since = new Date().toISOString();
  const conditions = object.status.conditions.map((it) => (it.type === "Ready" ? { ...it, ...ready } : it));
  const status = { lifecycle: { state, since, transition: transition + 1 }, conditions };
  await send(`/${name}/status`, "PATCH", "application/merge-patch+json", { status });
}

const browser = await puppeteer.launch({ executablePath: execFileSync("sh", ["-c", "command -v chromium"], { encoding: "utf8" }).trim(), headless: true, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"], timeout: 600_000, protocolTimeout: 600_000 });
let [map, address] = await start();
const page = await browser.newPage();
page.setDefaultTimeout(600_000);
/** Ends the browser and the map, whatever they do. */
function giveUp(why) {
  console.log(`FAILED: ${why}`);
  map.kill();
  browser.process().kill("SIGKILL");
  process.exit(1);
}
page.on("error", (error) => giveUp(`the page has crashed: ${error.message}`));
setTimeout(giveUp, 540_000, "the claims take more than 9 minutes").unref();
const errors = [];
page.on("pageerror", (error) => errors.push(error.message));
page.on("dialog", (dialog) => { errors.push(`a dialog: ${dialog.message()}`); dialog.dismiss(); });
// The browser reports by itself, and some time later, that a connection is lost.
page.on("console", (message) => { if (message.type() === "error" && !message.text().includes("net::ERR_")) errors.push(message.text()); });

const until = (what, claim, ...args) => page.waitForFunction(claim, { timeout: 600_000, polling: 50 }, ...args)
  .catch((error) => { throw new Error(`${what}: ${error.message}`); });
const untilLabel = (text) => until(text, (text) => [...document.querySelectorAll("[data-state]")].some((it) => `${it.dataset.state}: ${it.querySelector(".count").textContent}` === text), text);
/** Makes the window as large as this. */
async function resize(width, height) {
  await page.setViewport({ width, height });
  await until(`${width} × ${height}`, (width, height) => innerWidth === width && innerHeight === height, width, height);
}
await resize(1280, 1000);
/** Waits until the details of an object are shown, with these words. */
const untilDetails = (name, words) => until(`${words} of ${name}`, (name, words) => document.querySelector("#details").open
  && document.querySelector("#details-title").textContent === name && document.querySelector("#details-body").innerText.includes(words), name, words);
const rows = () => page.$$eval("#rows tr", (all) => all.map((row) => row.innerText.replace(/\s+/g, " ").trim()));
const untilRows = (number) => until(`${number} rows`, (number) => document.querySelectorAll("#rows tr").length === number, number);
/** Keeps what the page shows, and the first map alone as text: the points, which are on a canvas, become shapes. */
async function picture(name) {
  if (!OKT_PICTURES) return;
  await page.screenshot({ path: `${OKT_PICTURES}/${name}.png` });
  writeFileSync(`${OKT_PICTURES}/${name}.svg`, await page.evaluate(() => {
    const svg = document.querySelector(".graph svg").cloneNode(true);
    svg.setAttribute("class", "graph");
    for (const name of ["width", "height"]) svg.setAttribute(name, svg.viewBox.baseVal[name]);
    for (const group of svg.querySelectorAll("g")) for (const name of ["role", "tabindex", "aria-pressed"]) group.removeAttribute(name);
    const shape = (name, attributes) => {
      const element = document.createElementNS(svg.namespaceURI, name);
      for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
      return element;
    };
    for (const { kind, fill, stroke, x, y, r } of window.drawn) {
      const paint = fill ? { fill } : { fill: "none", stroke, "stroke-width": 2 };
      svg.append(kind === "rect" ? shape("polygon", { points: `${x},${y} ${x + r},${y} ${x + r},${y + r} ${x},${y + r}`, ...paint }) : shape("circle", { cx: x, cy: y, r, ...paint }));
    }
    const rules = [...document.styleSheets[0].cssRules].filter((rule) => /^(:root|\.graph )/.test(rule.selectorText ?? ""));
    const style = shape("style", {});
    style.textContent = [...rules.map((rule) => rule.cssText), "svg { font: 13px system-ui, sans-serif; background: var(--ground); }"].join("\n");
    svg.prepend(style);
    return `${new XMLSerializer().serializeToString(svg)}\n`;
  }));
}

/** Lets a page remember the points that it drew last. */
function remember() {
  const pen = CanvasRenderingContext2D.prototype;
  window.drawn = [];
  const shapes = new WeakMap();
  const add = (path, shape) => shapes.set(path, [...(shapes.get(path) ?? []), shape]);
  const { arc, rect } = Path2D.prototype;
  Path2D.prototype.arc = function (x, y, r, ...rest) { add(this, { kind: "arc", x, y, r }); return arc.call(this, x, y, r, ...rest); };
  Path2D.prototype.rect = function (x, y, r, height) { add(this, { kind: "rect", x, y, r }); return rect.call(this, x, y, r, height); };
  const { clearRect, fill, stroke } = pen;
  pen.clearRect = function (...at) { window.drawn = []; return clearRect.apply(this, at); };
  pen.fill = function (path) { window.drawn.push(...(shapes.get(path) ?? []).map((shape) => ({ ...shape, fill: this.fillStyle }))); return fill.call(this, path); };
  pen.stroke = function (path) { window.drawn.push(...(shapes.get(path) ?? []).map((shape) => ({ ...shape, stroke: this.strokeStyle }))); return stroke.call(this, path); };
}

const claims = {
  async "each object is on its state, and what a person should look at comes first"() {
    await untilLabel("Running: 3 objects");
    await untilLabel("Failed: 1 object, 1 to look at");
    await untilRows(6);
    assert.match((await rows())[0], /^Database default\/billing Failed .* ✕ False OnHold/);
    assert.match(await page.$eval("#summary", (it) => it.textContent), /6 of 6 objects; 2 to look at/);
    await picture("map");
  },
  async "an object moves while the page watches, and the others stay"() {
    await move("orders", "Servicing");
    await untilLabel("Servicing: 1 object");
    await untilLabel("Running: 2 objects");
    await move("orders", "Running");
    await untilLabel("Running: 3 objects");
  },
  async "the filters show what they say"() {
    await page.type("#text", "ORDERS");
    await untilRows(1);
    await page.click("button[type=reset]");
    await untilRows(6);
    await page.select("#condition", "stuck");
    await untilRows(2);
    await page.select("#condition", "");
    await page.select("#namespace", "default");
    await untilRows(6);
    await page.click("button[type=reset]");
  },
  async "all of a map is in the window, also in a phone's, and a state is chosen where it is shown"() {
    for (const [width, height] of [[1280, 700], [390, 844]]) {
      await resize(width, height);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(wide <= width, `the page is ${wide} px wide, the window ${width}`);
      const graph = await page.$eval(".graph", (it) => it.getBoundingClientRect().toJSON());
      assert.ok(graph.left >= 0 && graph.right <= width && graph.height < height, JSON.stringify(graph));
      await picture(`map-${width}`);
      const at = await page.$eval("[data-state=Failed]", (it) => { const { right, bottom } = it.getBoundingClientRect(); return [right - 3, bottom - 3]; });
      await page.mouse.click(...at);
      await untilRows(1);
      await page.mouse.click(...at);
      await untilRows(6);
    }
    await resize(1280, 1000);
  },
  async "a graph that is too large for the window stays readable, or is shown whole, as one chooses"() {
    await resize(1280, 300);
    const height = () => page.$eval(".graph", (it) => it.getBoundingClientRect().height);
    assert.ok((await height()) > 300, "it is readable");
    await page.select("#size", "fit");
    assert.ok((await height()) <= 300, "it is whole");
    await page.select("#size", "");
    await resize(1280, 1000);
  },
  async "a state is chosen by keyboard, and chosen no longer"() {
    await page.$eval('[data-state=Failed]', (it) => it.focus());
    await page.keyboard.press("Enter");
    await untilRows(1);
    assert.equal(await page.$eval('[data-state=Failed]', (it) => it.getAttribute("aria-pressed")), "true");
    await page.keyboard.press("Space");
    await untilRows(6);
  },
  async "the details say why, and the keyboard closes them"() {
    await page.focus('#rows button[data-uid]');
    await page.keyboard.press("Enter");
    await untilDetails("Database default/billing", "is a holding state");
    const text = await page.$eval("#details", (it) => it.innerText);
    for (const words of ["Database default/billing", "Why it is here", "Conditions", "kubectl okt retry", "ReplicaGone"]) {
      assert.ok(text.includes(words), `${words} is not in ${text}`);
    }
    await picture("map-details");
    await page.keyboard.press("Escape");
    await until("closed", () => !document.querySelector("#details").open);
  },
  async "a click counts though the list changes before the mouse is up"() {
    const { x, y } = await page.$$eval("#rows button", (all) => all.find((it) => it.textContent.endsWith("/users")).getBoundingClientRect().toJSON());
    await page.mouse.move(x + 3, y + 3);
    await page.mouse.down();
    await move("orders", "Servicing");
    await until("orders in the list", () => document.querySelector("#rows").innerText.includes("Servicing"));
    await page.mouse.up();
    await untilDetails("Database default/users", "Conditions");
    await page.keyboard.press("Escape");
    await move("orders", "Running");
    await untilLabel("Running: 3 objects");
  },
  async "texts of objects are texts, whatever they say"() {
    const hostile = '<img src=x onerror="alert(1)"><script>alert(2)</script>';
    await move("orders", "Servicing", { message: hostile, reason: "Hostile" });
    await untilLabel("Servicing: 1 object");
    await page.type("#text", "onerror");
    await untilRows(1);
    await page.click("#rows button");
    await untilDetails("Database default/orders", "Conditions");
    assert.ok((await page.$eval("#details", (it) => it.innerText)).includes(hostile));
    assert.equal(await page.$$eval("img, main script, dialog script", (all) => all.length), 0);
    await page.keyboard.press("Escape");
    await page.click("button[type=reset]");
    await move("orders", "Running", { message: "it runs", reason: "Ready" });
    await untilLabel("Running: 3 objects");
  },
  async "the slider shows where the objects were"() {
    await page.$eval("#at", (it) => { it.value = 0; it.dispatchEvent(new Event("input")); });
    await until("the past", () => document.querySelector("#when").textContent.includes("ago"));
    await picture("map-past");
    await page.click("#live");
    await until("now", () => document.querySelector("#when").textContent === "now");
    await untilLabel("Running: 3 objects");
  },
  async "a connection that is lost comes back, with what happened meanwhile"() {
    const port = new URL(address).port;
    map.kill("SIGKILL");
    await until("a lost connection", () => document.querySelector("#trouble").textContent.includes("connection is lost"));
    await move("orders", "Servicing");
    [map] = await startAt(port);
    await until("a connection", () => document.querySelector("#trouble").textContent === "");
    await untilLabel("Servicing: 1 object");
  },
  async "axe finds nothing wrong, in light and in dark"() {
    for (const value of ["light", "dark"]) {
      await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value }]);
      // Not as an element of the page, which permits no such script.
      await page.evaluate(readFileSync(`${PAGE_MODULES}/node_modules/axe-core/axe.min.js`, "utf8"));
      const { violations } = await page.evaluate(() => axe.run());
      const told = violations.map((it) => `${it.id}: ${it.help}: ${it.nodes.map((node) => node.html).join(" ")}`);
      assert.deepEqual(told, [], value);
      if (value === "dark") await picture("map-dark");
    }
    await page.emulateMediaFeatures([]);
  },
  async "other sites, and other machines without a token, read nothing"() {
    const [other, at] = await start("--token-file", process.env.TOKEN_FILE);
    const plain = at.split("?")[0];
    assert.equal((await fetch(plain)).status, 401);
    const opened = await fetch(`${plain}?token=${readFileSync(process.env.TOKEN_FILE, "utf8").trim()}`, { redirect: "manual" });
    const cookie = opened.headers.get("set-cookie").split(";")[0];
    assert.equal((await fetch(plain, { headers: { cookie } })).status, 200);
    other.kill();
    const policy = (await fetch(address)).headers.get("content-security-policy");
    assert.ok(policy.startsWith("default-src 'none'"), policy);
  },
};

/** Prints how long after a navigation all objects are on the page. */
async function firstPaint() {
  await page.evaluateOnNewDocument(() => {
    addEventListener("DOMContentLoaded", () => {
      const all = () => Number(/of (\d+)/.exec(document.querySelector("#summary").textContent)?.[1]) >= 5000;
      const watch = () => requestAnimationFrame(() => {
        // The frame after the one in which they were drawn: by then they are on the screen.
        if (all()) requestAnimationFrame(() => { window.painted = performance.now(); });
        else watch();
      });
      watch();
    });
  });
  const times = [];
  for (let round = 0; round < 9; round += 1) {
    await page.goto(address);
    await until("painted", () => window.painted);
    times.push(await page.evaluate(() => window.painted));
  }
  times.sort((a, b) => a - b);
  console.log(`first paint of 5,000 objects: ${times[4].toFixed(0)} ms, ${times[0].toFixed(0)} to ${times[8].toFixed(0)} in nine rounds`);
}

/** Prints how many frames a second the page shows while the objects move, and what the map needs. */
async function frames() {
  await firstPaint();
  await until("all", () => Number(/of (\d+)/.exec(document.querySelector("#summary").textContent)?.[1]) >= 5000);
  const counted = page.evaluate(() => new Promise((resolve) => {
    const begun = performance.now();
    let frames = 0;
    const count = (time) => {
      frames += 1;
      if (time - begun < 10_000) requestAnimationFrame(count);
      else resolve((frames * 1000) / (time - begun));
    };
    requestAnimationFrame(count);
  }));
  let moves = 0;
  const begun = Date.now();
  while (Date.now() - begun < 10_000) {
    const due = Math.floor((Date.now() - begun) / 10) - moves;
    const names = Array.from({ length: Math.max(0, due) }, (_, i) => `many-${(moves + i) % 5000}`);
    moves += names.length;
    await Promise.all(names.map((name) => move(name, "Servicing").catch(() => move(name, "Running"))));
    await after(5);
  }
  const listing = performance.now();
  // The cluster answers from another process.
  const list = spawn(KUBECTL_OKT, ["--kubeconfig", KUBECONFIG, "list", "-A"], { stdio: "ignore" });
  await new Promise((resolve) => list.on("exit", resolve));
  console.log(`kubectl okt list: ${((performance.now() - listing) / 1000).toFixed(2)} s`);
  const rate = (await counted).toFixed(1);
  const memory = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${map.pid}/status`, "utf8"))[1];
  console.log(`${(moves / ((Date.now() - begun) / 1000)).toFixed(0)} moves a second: ${rate} frames a second; the map needs ${(memory / 1024).toFixed(0)} MB`);
}

let failed = 0;
try {
  if (OKT_PICTURES) await page.evaluateOnNewDocument(remember);
  await page.goto(address);
  if (OKT_FRAMES) await frames();
  else {
    for (const [name, claim] of Object.entries(claims)) {
      try {
        await claim();
        assert.deepEqual(errors, [], "errors of the page");
        console.log(`ok: ${name}`);
      } catch (error) {
        failed += 1;
        console.log(`FAILED: ${name}: ${error.stack}`);
        await Promise.race([page.screenshot({ path: "failed.png" }).catch(() => {}), after(30_000)]);
        break;
      }
    }
  }
} finally {
  map.kill();
  // It may say that it closes, and stay.
  await Promise.race([browser.close(), after(30_000)]);
  browser.process().kill("SIGKILL");
}
process.exit(failed);
