// Headless Chromium, spoken to over a pipe with the DevTools protocol: no package is needed.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const REPLY_MS = 20_000;

export class Browser {
  constructor(program) {
    this.home = mkdtempSync(join(tmpdir(), "marketd-page-"));
    this.child = spawn(
      program,
      [
        "--headless=new",
        "--remote-debugging-pipe",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--hide-scrollbars",
        `--user-data-dir=${this.home}`,
        "about:blank",
      ],
      { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] },
    );
    this.waiting = new Map();
    this.pages = new Map();
    this.next = 1;
    let rest = "";
    this.child.stdio[4].setEncoding("utf8").on("data", (part) => {
      const messages = (rest + part).split("\0");
      rest = messages.pop();
      for (const message of messages) this.take(JSON.parse(message));
    });
    this.child.stdio[3].on("error", () => {});
  }

  take(message) {
    if (message.id) {
      const { resolve, reject } = this.waiting.get(message.id);
      this.waiting.delete(message.id);
      if (message.error) reject(new Error(message.error.message));
      else resolve(message.result);
    } else if (message.sessionId) this.pages.get(message.sessionId)?.event(message.method, message.params);
  }

  send(method, params = {}, sessionId) {
    const id = this.next++;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`${method}: no reply`)), REPLY_MS);
      this.waiting.set(id, {
        resolve: (value) => {
          clearTimeout(timer);
          resolve(value);
        },
        reject: (error) => {
          clearTimeout(timer);
          reject(error);
        },
      });
      this.child.stdio[3].write(JSON.stringify({ id, method, params, sessionId }) + "\0");
    });
  }

  /** Opens a page of its own context, or of that of the page `beside`. `options`: width, height, phone, dark, calm. */
  async page(url, options = {}) {
    const browserContextId =
      options.beside?.context ?? (await this.send("Target.createBrowserContext")).browserContextId;
    const { targetId } = await this.send("Target.createTarget", { url: "about:blank", browserContextId });
    const { sessionId } = await this.send("Target.attachToTarget", { targetId, flatten: true });
    const page = new Page(this, sessionId, browserContextId);
    this.pages.set(sessionId, page);
    for (const domain of ["Page", "Runtime", "Network", "Log", "Audits"]) await page.send(`${domain}.enable`);
    await page.send("Emulation.setDeviceMetricsOverride", {
      width: options.width ?? 1440,
      height: options.height ?? 860,
      deviceScaleFactor: options.scale ?? 1,
      mobile: !!options.phone,
    });
    await page.send("Emulation.setTouchEmulationEnabled", { enabled: !!options.phone });
    await page.send("Emulation.setEmulatedMedia", {
      features: [
        { name: "prefers-color-scheme", value: options.dark ? "dark" : "light" },
        { name: "prefers-reduced-motion", value: options.calm ? "reduce" : "no-preference" },
      ],
    });
    await page.send("Page.navigate", { url });
    return page;
  }

  async close() {
    await this.send("Browser.close").catch(() => {});
    await new Promise((done) => {
      if (this.child.exitCode !== null) done();
      else {
        this.child.on("exit", done);
        setTimeout(() => {
          this.child.kill("SIGKILL");
          done();
        }, 3000);
      }
    });
    rmSync(this.home, { recursive: true, force: true, maxRetries: 5 });
  }
}

class Page {
  constructor(browser, sessionId, context) {
    Object.assign(this, { browser, sessionId, context, requests: [], faults: [] });
  }

  send(method, params) {
    return this.browser.send(method, params, this.sessionId);
  }

  event(method, params) {
    if (method === "Network.requestWillBeSent") this.requests.push(params.request.url);
    else if (method === "Runtime.exceptionThrown")
      this.faults.push(
        `exception: ${params.exceptionDetails.exception?.description ?? params.exceptionDetails.text}`,
      );
    else if (method === "Runtime.consoleAPICalled" && params.type !== "debug")
      this.faults.push(
        `console.${params.type}: ${params.args.map((a) => a.value ?? a.description).join(" ")}`,
      );
    else if (method === "Log.entryAdded" && params.entry.level === "error")
      this.faults.push(`${params.entry.source}: ${params.entry.text} ${params.entry.url ?? ""}`);
    else if (method === "Audits.issueAdded" && params.issue.code === "ContentSecurityPolicyIssue")
      this.faults.push(`policy: ${JSON.stringify(params.issue.details)}`);
  }

  /** Runs an expression in the page; `app` is the page's own module. */
  async run(expression) {
    const app = `location.protocol === "data:" ? null : await import(new URL("page/app.js", document.baseURI))`;
    const wrapped = `(async () => { const app = ${app}; return (${expression}); })()`;
    const { result, exceptionDetails } = await this.send("Runtime.evaluate", {
      expression: wrapped,
      awaitPromise: true,
      returnByValue: true,
    });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }

  /** Waits until an expression is true in the page, and gives its value. */
  async until(expression, ms = 10_000, what = expression) {
    const end = Date.now() + ms;
    for (;;) {
      const value = await this.run(expression).catch((error) => {
        if (Date.now() > end) throw error;
      });
      if (value) return value;
      if (Date.now() > end) throw new Error(`not within ${ms} ms: ${what}`);
      await new Promise((done) => setTimeout(done, 60));
    }
  }

  async click(selector) {
    const place = await this.run(
      `(() => { const r = document.querySelector(${JSON.stringify(selector)}).getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()`,
    );
    await this.mouse("mousePressed", place);
    await this.mouse("mouseReleased", place);
  }

  mouse(type, [x, y], extra = {}) {
    return this.send("Input.dispatchMouseEvent", {
      type,
      x,
      y,
      button: type === "mouseMoved" && !extra.buttons ? "none" : "left",
      clickCount: 1,
      ...extra,
    });
  }

  async drag(from, to, steps = 8) {
    await this.mouse("mouseMoved", from);
    await this.mouse("mousePressed", from);
    for (let i = 1; i <= steps; i++) {
      await this.mouse(
        "mouseMoved",
        [from[0] + ((to[0] - from[0]) * i) / steps, from[1] + ((to[1] - from[1]) * i) / steps],
        { buttons: 1 },
      );
    }
    await this.mouse("mouseReleased", to);
  }

  async key(key, code = key, text) {
    const windowsVirtualKeyCode =
      { ArrowLeft: 37, ArrowUp: 38, ArrowRight: 39, ArrowDown: 40, Enter: 13, Escape: 27, Home: 36, End: 35 }[
        key
      ] ?? 0;
    await this.send("Input.dispatchKeyEvent", { type: "keyDown", key, code, text, windowsVirtualKeyCode });
    await this.send("Input.dispatchKeyEvent", { type: "keyUp", key, code, windowsVirtualKeyCode });
  }

  type(text) {
    return this.send("Input.insertText", { text });
  }

  async picture(path) {
    const { data } = await this.send("Page.captureScreenshot", { format: "png" });
    writeFileSync(path, Buffer.from(data, "base64"));
  }

  async close() {
    await this.browser.send("Target.disposeBrowserContext", { browserContextId: this.context });
    this.browser.pages.delete(this.sessionId);
  }
}
