// Runs the checks of the page: node tests/page/run.mjs MARKETD CHROMIUM [--breaks] [--sources] [WORDS]
//
// WORDS chooses the checks whose names contain them. With --breaks each check runs against a page
// that was broken for it, and must fail. With --sources the files of src/page are served as they are
// now, for work on the page without a build.

import { readFileSync } from "node:fs";
import { Browser } from "./browser.mjs";
import { CHECKS } from "./checks.mjs";
import { CHOICES } from "./choices.mjs";
import { World } from "./world.mjs";

const [program, chromium, ...rest] = process.argv.slice(2);
const breaks = rest.includes("--breaks");
const SOURCES = new URL("../../src/page/", import.meta.url);
const fresh = rest.includes("--sources")
  ? (name, text) => (name === "policy" ? text : readFileSync(new URL(name, SOURCES), "utf8"))
  : undefined;
const words = rest.filter((word) => !word.startsWith("--")).join(" ");

const world = new World(program);
const browser = new Browser(chromium);
// Whatever goes wrong, nothing is left running.
process.on("exit", () => {
  world.daemon?.kill("SIGKILL");
  browser.child.kill("SIGKILL");
});
world.options.change = fresh;
await world.start();
let failed = 0;

/** Runs one check; what a page of it did wrong beside counts against it too. */
async function run(check) {
  const pages = [];
  const open = async (hash = "", options = check.options) => {
    const page = await browser.page(options?.url ?? world.page + hash, options);
    pages.push(page);
    return page;
  };
  try {
    const said = await check.run(world, open);
    for (const page of pages) {
      // Refused and failed requests are what these checks are about.
      const faults = page.faults.filter(
        (fault) => !(check.mayFail && /^(network|security|policy|other|javascript):/.test(fault)),
      );
      if (faults.length) throw new Error(`the console is not clean: ${faults.slice(0, 3).join("; ")}`);
      const { host } = new URL(world.page);
      const foreign = page.requests.find(
        (url) => !url.startsWith("data:") && new URL(url).host !== host && !url.startsWith(check.foreign),
      );
      if (foreign) throw new Error(`a request to another host: ${foreign}`);
    }
    return said;
  } finally {
    for (const page of pages) await page.close().catch(() => {});
  }
}

/** Puts the world back for the next check. */
async function mend() {
  world.options.change = fresh;
  world.options.refuse = undefined;
  world.exchange.withheld = null;
  if (Object.keys(world.limits).length) {
    world.limits = {};
    await world.killDaemon();
  }
  if (!world.exchange.server.listening) await world.exchange.start(world.exchange.port);
  if (world.daemon.exitCode !== null || world.daemon.signalCode !== null) await world.startDaemon();
  if (!world.server.listening) await world.startServer(Number(new URL(world.page).port));
  await world.ready();
}

/** A break that does not break anything says nothing about its check. */
let changesNothing = false;

for (const check of [...CHECKS, ...CHOICES].filter((check) => check.name.includes(words))) {
  if (breaks) {
    const [file, change] = check.breaks;
    world.options.change = (name, built) => {
      const text = fresh ? fresh(name, built) : built;
      if (name !== file) return text;
      const changed = change(text);
      changesNothing = changed === text;
      return changed;
    };
  }
  const since = Date.now();
  let result, said;
  try {
    said = await run(check);
    result = !breaks;
  } catch (error) {
    said = error.message.split("\n")[0];
    result = breaks;
  }
  if (changesNothing) {
    result = false;
    said = "its break changes nothing";
  }
  changesNothing = false;
  if (!result) failed++;
  const verdict = result ? "ok  " : "FAIL";
  console.log(
    `${verdict} ${check.name}${said ? ` (${said})` : ""}${breaks && !result ? ": passes although it is broken" : ""}  ${((Date.now() - since) / 1000).toFixed(1)} s`,
  );
  await mend();
}

await browser.close();
await world.stop();
console.log(failed ? `${failed} failed` : "all checks of the page hold");
process.exit(failed ? 1 : 0);
