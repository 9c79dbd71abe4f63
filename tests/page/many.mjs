// What thousands of markets cost a tab:
//
//     node tests/page/many.mjs MARKETD CHROMIUM [--minutes N] [--sources] [--times]
//
// 3,500 markets whose prices all change every second. Measured: the time from the page's begin to its first
// rows, the processor time of all processes of the tab (the page's and the shared worker's), its memory
// at the begin and at the end, and its requests. Memory and requests have limits everywhere; times are the
// machine's too, and have limits with --times, for a quiet machine.

import { readFileSync } from "node:fs";
import { Browser } from "./browser.mjs";
import { manyMarkets } from "./exchange.mjs";
import { sleep, World } from "./world.mjs";

const MARKETS = 3500;
const MOST = { firstRowsMs: 500, cores: 0.1, growthMiB: 3, requests: 12 };
const [program, chromium, ...rest] = process.argv.slice(2);
const minutes = rest.includes("--minutes") ? Number(rest[rest.indexOf("--minutes") + 1]) : 0.5;
const SOURCES = new URL("../../src/page/", import.meta.url);

const world = new World(program, manyMarkets(MARKETS - 6));
const browser = new Browser(chromium);
process.on("exit", () => {
  world.daemon?.kill("SIGKILL");
  browser.child.kill("SIGKILL");
});
if (rest.includes("--sources"))
  world.options.change = (name, text) =>
    name === "policy" ? text : readFileSync(new URL(name, SOURCES), "utf8");

/** Seconds of processor time of the browser's pages and workers. */
async function spent() {
  const { processInfo } = await browser.send("SystemInfo.getProcessInfo");
  return processInfo.filter(({ type }) => type === "renderer").reduce((sum, { cpuTime }) => sum + cpuTime, 0);
}

await world.start();
const times = [];
let page;
for (let i = 0; i < 5; i++) {
  await page?.close();
  page = await browser.page(world.page);
  await page.until(`app.table.rows.size > 20`, 10_000);
  times.push(await page.run(`performance.getEntriesByName("first rows")[0].startTime`));
}
await page.until(`app.panel.series?.newest != null && app.table.quotes.size === ${MARKETS}`, 10_000);
await sleep(5000);
const heap = async () => {
  await page.send("HeapProfiler.collectGarbage");
  return (await page.send("Runtime.getHeapUsage")).usedSize / 2 ** 20;
};
const marks = [await heap()];
const [since, before, requests] = [Date.now(), await spent(), world.requests.length];
while (Date.now() - since < minutes * 60_000) await sleep(1000);
const cores = ((await spent()) - before) / ((Date.now() - since) / 1000);
marks.push(await heap());
const asked = world.requests.slice(requests);
console.log(`first rows after ${times.map(Math.round).join(", ")} ms`);
console.log(`${cores.toFixed(3)} of a core over ${minutes} min; requests: ${asked.length}`);
console.log(`heap ${marks.map((mark) => mark.toFixed(1)).join(" -> ")} MiB`);
const isTimed = rest.includes("--times");
const failed = [
  isTimed && Math.min(...times) > MOST.firstRowsMs && "first rows",
  isTimed && cores > MOST.cores && "processor time",
  marks[1] - marks[0] > MOST.growthMiB && "memory",
  asked.length > MOST.requests * minutes && "requests",
].filter(Boolean);
console.log(failed.length ? `FAIL many markets: ${failed.join(", ")}` : "ok   many markets");
await browser.close();
await world.stop();
process.exit(failed.length ? 1 : 0);
