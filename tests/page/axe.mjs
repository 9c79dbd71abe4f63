// Looks for faults of accessibility with axe-core: node tests/page/axe.mjs MARKETD CHROMIUM AXE_SCRIPT [--sources]
//
// The page in twelve states, light and dark, wide and narrow. Whatever axe calls serious or worse is a fault.

import { readFileSync } from "node:fs";
import { Browser } from "./browser.mjs";
import { SHOWN } from "./looks.mjs";
import { sleep, World } from "./world.mjs";

const [program, chromium, script, ...rest] = process.argv.slice(2);
const axe = readFileSync(script, "utf8");
const SOURCES = new URL("../../src/page/", import.meta.url);
const world = new World(program);
const browser = new Browser(chromium);
process.on("exit", () => {
  world.daemon?.kill("SIGKILL");
  browser.child.kill("SIGKILL");
});
if (rest.includes("--sources"))
  world.options.change = (name, text) =>
    name === "policy" ? text : readFileSync(new URL(name, SOURCES), "utf8");
const PHONE = { width: 390, height: 844, phone: true };
const ROWS = `app.table.rows.size === 6`;
const SERVICE = `document.querySelectorAll("#sources thead th").length === 1`;
const STALE = `document.querySelectorAll("tr.stale").length === 6`;

/** The name of each state, its address, its options, and what is true once it is reached. */
const STATES = [
  ["a chart and the table", "#/BTC-USDT/1h", {}, `${SHOWN} && ${ROWS}`],
  ["the same, dark", "#/BTC-USDT/1h", { dark: true }, `${SHOWN} && ${ROWS}`],
  ["a line with averages", "#/GAP-USDT/1m?style=line&averages=on&scale=log", {}, SHOWN],
  ["gainers", "#/?show=losers&sort=percentage", {}, ROWS.replace("=== 6", ">= 0")],
  ["no market matches", "#/?search=nothing", {}, `!document.getElementById("empty").hidden`],
  ["the service", "#service", {}, SERVICE],
  ["the service, dark", "#service", { dark: true }, SERVICE],
  ["the table on a phone", "#/", PHONE, ROWS],
  ["a chart on a phone, dark", "#/TINY-USDT/1d", { ...PHONE, dark: true }, SHOWN],
  ["stale", "#/BTC-USDT/1h", {}, STALE],
  ["stale, dark", "#/BTC-USDT/1h", { dark: true }, STALE],
  ["lost", "#/BTC-USDT/1h", {}, `document.body.classList.contains("lost")`],
];

await world.start();
let faults = 0;
for (const [name, hash, options, reached] of STATES) {
  const page = await browser.page(world.page + hash, { calm: true, ...options });
  await page.until(`app.table.quotes.size === 6`);
  if (name === "stale") await world.exchange.stop();
  if (name === "lost") await world.killDaemon();
  await page.until(reached, 12_000);
  await sleep(700);
  await page.send("Runtime.evaluate", { expression: axe });
  const found = await page.run(
    `(await axe.run(document, { resultTypes: ["violations"] })).violations.map(({ id, impact, nodes }) => ({ id, impact, at: nodes.map(({ target, any }) => target + ": " + (any[0]?.message ?? "")).slice(0, 3) }))`,
  );
  const bad = found.filter(({ impact }) => impact === "serious" || impact === "critical");
  const minor = found.filter((fault) => !bad.includes(fault)).map(({ id }) => id);
  faults += bad.length;
  console.log(`${bad.length ? "FAIL" : "ok  "} ${name}${minor.length ? ` (minor: ${minor})` : ""}`);
  for (const { id, impact, at } of bad) console.log(`     ${impact}: ${id}\n       ${at.join("\n       ")}`);
  await page.close();
}
await browser.close();
await world.stop();
process.exit(faults ? 1 : 0);
