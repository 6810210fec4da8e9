// Looks at the book in Chromium: every link leads to a page and a heading, no page is wider than a screen, the search
// finds something, nothing is loaded from elsewhere, and the console has no errors.
//
// node .ci/book.mjs BOOK [PICTURES]
import { createRequire } from "node:module";
import { readdirSync, readFileSync, existsSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize, resolve } from "node:path";

const [book, pictures] = process.argv.slice(2);
const target = process.env.CARGO_TARGET_DIR ?? "target";
/** How long anything may take, in milliseconds: a busy machine is no mistake of the book. */
const PATIENCE = 600_000;
const require = createRequire(resolve(target, "page/node_modules/"));
const puppeteer = require("puppeteer-core");

const types = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };
const server = createServer((request, response) => {
  const path = normalize(decodeURIComponent(new URL(request.url, "http://a").pathname));
  const file = join(book, path === "/" ? "index.html" : path);
  if (!existsSync(file)) {
    response.writeHead(404).end();
    return;
  }
  response.writeHead(200, { "content-type": types[extname(file)] ?? "application/octet-stream" });
  response.end(readFileSync(file));
});
await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
const address = `http://127.0.0.1:${server.address().port}`;

const browser = await puppeteer.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
  timeout: PATIENCE,
  protocolTimeout: PATIENCE,
});
const problems = [];

// Reports what a page complains of, and what it loads from elsewhere.
const watch = (page) => {
  page.on("console", (message) => {
    if (message.type() === "error") problems.push(`${page.url()}: ${message.text()}`);
  });
  page.on("error", (error) => {
    console.error(`${page.url()} has crashed: ${error.message}`);
    process.exit(1);
  });
  page.on("pageerror", (error) => problems.push(`${page.url()}: ${error.message}`));
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(address) && !url.startsWith("data:")) problems.push(`${page.url()} loads ${url}`);
  });
};

const files = readdirSync(book).filter((it) => it.endsWith(".html") && !["404.html", "print.html", "toc.html"].includes(it));
/** The playground checks a text while it is written, and plays an object. */
const playground = async (page, url) => {
  await page.goto(url, { waitUntil: "load" });
  const shows = (what, text) => page.waitForFunction(
    (what, text) => [...document.querySelectorAll(`#okt-playground ${what}`)].some((it) => it.textContent.includes(text)),
    {}, what, text,
  ).catch(() => problems.push(`the playground does not show ${text}`));
  const click = (text) => page.evaluate((text) => {
    [...document.querySelectorAll("#okt-playground button")].find((it) => it.textContent === text).click();
  }, text);
  const write = (from, to) => page.$eval("#okt-playground textarea", (area, from, to) => {
    area.value = area.value.replace(from, to);
    area.oninput();
  }, from, to);
  await shows(".fine", "DatabaseState has no mistakes");
  await shows("[role=status]", "The object is in Starting: works, attempt 1.");
  await click("Running");
  await click("Stay");
  await shows("[role=status]", "The object is in Running: rests.");
  await shows(".here", "Running");
  await page.select("#okt-playground select[aria-label='visit …']", "BackingUp");
  await click("the operator crashes");
  await shows("[role=status]", "The object is in BackingUp: works");
  await shows(".log", "resumes, under the same id");
  if (pictures) await page.screenshot({ path: join(pictures, "playground-played.png"), fullPage: true });
  await write("on_error", "on_eror");
  await shows(".mistakes", "did you mean `on_error`?");
  await write("on_eror", "on_error");
  await shows("[role=status]", "The object is in BackingUp: works");
  await click("a new object");
  await shows("[role=status]", "The object is in Starting");
  // Deeper than the stack of a browser.
  const text = await page.$eval("#okt-playground textarea", (area) => area.value);
  await write(text, `const A: u32 = ${"(".repeat(50_000)}1${")".repeat(50_000)};`);
  await page.waitForFunction(() => !document.querySelector("#okt-playground .fine"));
  await page.$eval("#okt-playground textarea", (area, text) => { area.value = text; area.oninput(); }, text);
  await shows(".fine", "DatabaseState has no mistakes");
};

let page;
try {
  const ids = new Map();
  const links = [];
  for (const [name, viewport] of [
    ["desktop", { width: 1280, height: 900 }],
    ["phone", { width: 390, height: 844, isMobile: true, hasTouch: true }],
  ]) {
    const context = await browser.createBrowserContext();
    page = await context.newPage();
    page.setDefaultTimeout(PATIENCE);
    watch(page);
    await page.setViewport(viewport);
    for (const file of files) {
      await page.goto(`${address}/${file}`, { waitUntil: "load" });
      const found = await page.evaluate(() => ({
        ids: [...document.querySelectorAll("[id]")].map((it) => it.id),
        links: [...document.querySelectorAll("main a[href]")].map((it) => it.href),
        unresolved: document.querySelector("main").textContent.match(/\{\{#\w+[^}]*\}\}/)?.[0],
        wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
      }));
      if (found.unresolved) problems.push(`${file}: ${found.unresolved} is not replaced`);
      if (found.wide > 0) problems.push(`${file} is ${found.wide} pixels wider than a ${name}`);
      if (pictures) await page.screenshot({ path: join(pictures, `${file.replace(".html", "")}-${name}.png`) });
      ids.set(file, new Set(found.ids));
      links.push(...found.links.map((link) => [file, link]));
    }
  }
  for (const [file, link] of links) {
    if (!link.startsWith(address)) continue;
    const url = new URL(link);
    const path = url.pathname.slice(1) || "index.html";
    const heading = decodeURIComponent(url.hash.slice(1));
    if (!existsSync(join(book, path))) problems.push(`${file}: there is no ${path}`);
    else if (heading && ids.has(path) && !ids.get(path).has(heading)) problems.push(`${file}: ${path} has no #${heading}`);
  }
  await playground(page, `${address}/playground.html`);
  await page.goto(`${address}/index.html?search=finalizer`, { waitUntil: "load" });
  await page.waitForSelector("#mdbook-searchresults li, #searchresults li");
} finally {
  await browser.close();
  server.close();
}
for (const problem of new Set(problems)) console.error(problem);
if (problems.length > 0) process.exit(1);
console.log(`${files.length} pages of the book: every link leads somewhere, and none is too wide`);
