// A marketd for a test of Node. MARKETD names the program.
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const PROGRAM = process.env.MARKETD ?? "marketd";
export async function startMarketd(demo = {}) {
  const folder = mkdtempSync(join(tmpdir(), "marketd-"));
  const [file, config, addresses] = ["script", "config", "addresses"].map((name) => join(folder, name));
  const script = (members) => writeFileSync(file, JSON.stringify(members));
  script({});
  const source = { dialect: "demo", pollMs: 100, staleAfterMs: 1000 };
  writeFileSync(config, JSON.stringify({ listen: "127.0.0.1:0", data: ":memory:", sources: [source],
    demo: { script: file, ...demo }, limits: { backoffMaxMs: 1000, lingerMs: 10 } }));
  const child = spawn(PROGRAM, ["--config", config, "--address-file", addresses], { stdio: ["ignore", "ignore", "inherit"] });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const stop = async () => {
    child.kill();
    await ended;
    rmSync(folder, { recursive: true });
  };
  const ready = async () => {
    for (; !existsSync(addresses); await sleep(10)) if (child.exitCode !== null) throw new Error("marketd has ended");
    const url = JSON.parse(readFileSync(addresses, "utf8")).listen;
    execFileSync(PROGRAM, ["healthcheck", "--wait", "30", url]);
    return url;
  };
  const url = await ready().catch((error) => stop().then(() => Promise.reject(error)));
  const get = async (target) => (await fetch(url + target)).json();
  const wait = async (target, holds, ms = 30000) => {
    for (const until = Date.now() + ms; ; await sleep(10)) {
      const body = await get(target);
      if (holds(body)) return body;
      if (Date.now() > until) throw new Error(JSON.stringify(body));
    }
  };
  return { url, script, get, wait, stop };
}
