// Runs the checks of the page: node tests/page/run.mjs MARKETD CHROMIUM [--breaks] [WORDS]
//
// WORDS chooses the checks whose names contain them. With --breaks each check runs against a page
// that was broken for it, and must fail.

import { Browser } from "./browser.mjs";
import { CHECKS } from "./checks.mjs";
import { World } from "./world.mjs";

const [program, chromium, ...rest] = process.argv.slice(2);
const breaks = rest.includes("--breaks");
const words = rest.filter((word) => !word.startsWith("--")).join(" ");

const world = new World(program);
const browser = new Browser(chromium);
// Whatever goes wrong, nothing is left running.
process.on("exit", () => {
  world.daemon?.kill("SIGKILL");
  browser.child.kill("SIGKILL");
});
await world.start();
let failed = 0;

/** Runs one check; what a page of it did wrong beside counts against it too. */
async function run(check) {
  const pages = [];
  const open = async (hash = "", options = check.options) => {
    const page = await browser.page(world.page + hash, options);
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
  world.options.change = undefined;
  if (!world.exchange.server.listening) await world.exchange.start(world.exchange.port);
  if (world.daemon.exitCode !== null || world.daemon.signalCode !== null) await world.startDaemon();
  if (!world.server.listening) await world.startServer(Number(new URL(world.page).port));
  await world.ready();
}

for (const check of CHECKS.filter((check) => check.name.includes(words))) {
  if (breaks) {
    const [file, change] = check.breaks;
    world.options.change = (name, text) => {
      if (name !== file) return text;
      const changed = change(text);
      if (changed === text) throw new Error(`the break of "${check.name}" changes nothing`);
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
