// What the page must do, each as one check in a real browser. A check gets the world and `open`,
// which opens the page in a fresh context, and throws where something is not so.
//
// Beside each stands how it is broken: a change of the page's sources under which it must fail.

import { readFileSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { COLOR, compareWithApi, expect, LAST, middle, PIXEL, same, SHOWN } from "./looks.mjs";
import { sleep, STALE_MS } from "./world.mjs";

const SOURCES = fileURLToPath(new URL("../../src/page/", import.meta.url));
/** All of the files of the page, before compression: some 30 KB in gzip. */
const MOST_BYTES = 140_000;
/** How often the time of a page of one word the page's first paint may take. */
const MOST_WORDS = 8;
const MOST_PAINTS = 12;
const INTERVALS = [
  "1m",
  "3m",
  "5m",
  "15m",
  "30m",
  "1h",
  "2h",
  "4h",
  "6h",
  "8h",
  "12h",
  "1d",
  "3d",
  "1w",
  "1M",
];

async function stopServerAndWait(world, page) {
  const port = await world.stopServer();
  await page.until(
    `document.body.classList.contains("lost") && !document.getElementById("notice").hidden`,
    8000,
    "the page says that the connection is lost",
  );
  return port;
}

export const CHECKS = [
  {
    name: "sources: small, whole, and without anything inline or foreign",
    breaks: ["index.html", (text) => text.replace("<main>", '<main style="color: red">')],
    async run(world) {
      let total = 0;
      for (const name of readdirSync(SOURCES)) {
        const read = readFileSync(SOURCES + name, "utf8");
        const text = world.options.change?.(name, read) ?? read;
        total += Buffer.byteLength(text);
        const outside = text.match(/https?:\/\/(?!www\.w3\.org\/2000\/svg)[^\s"']+/);
        expect(!outside, `${name} names ${outside}`);
        expect(
          !/eval\(|new Function|innerHTML|insertAdjacentHTML/.test(text),
          `${name} makes code or markup of text`,
        );
        if (name.endsWith(".html"))
          expect(
            !/\sstyle=|\son[a-z]+=|<style|<script(?![^>]*src=)/.test(text),
            `${name} has something inline`,
          );
      }
      expect(total <= MOST_BYTES, `${total} bytes`);
      return `${total} bytes`;
    },
  },
  {
    name: "first paint",
    breaks: [
      "page.css",
      (text) =>
        text
          .replace(
            "html, body {",
            "body { display: none; animation: late 1ms 600ms forwards; } @keyframes late { to { display: grid; } } html {",
          )
          .replace("body {\n\tdisplay: grid;", "body {"),
    ],
    async run(world, open) {
      const paints = [[], []];
      // A slow machine paints one word as late, and a busy one takes its time for other things: one good
      // paint of each shows what the page needs.
      const within = () => Math.min(...paints[1]) < MOST_WORDS * Math.min(...paints[0]);
      while (paints[0].length < MOST_PAINTS && !within())
        for (const [i, url] of ["data:text/html,word", undefined].entries()) {
          const page = await open("", { url });
          paints[i].push(
            await page.until(`performance.getEntriesByName("first-contentful-paint")[0]?.startTime`),
          );
          await page.close();
        }
      const said = paints.map((times) => times.map(Math.round).join(", ")).join(" ms, and of the page after ");
      expect(within(), `first paint of a word after ${said} ms`);
      return `of a word after ${said} ms`;
    },
  },
  {
    name: "every quote is in the table with the digits that were sent",
    breaks: [
      "digits.js",
      (text) => text.replace("const { last } = quote;", "const last = String(Number(quote.last));"),
    ],
    async run(world, open) {
      const page = await open();
      await page.until(`app.table.rows.size === 6`);
      for (const symbol of ["TINY/USDT", "HUGE/USDT", "BTC/USDT"]) {
        const seen = new Set();
        let matched = false;
        for (let i = 0; i < 40 && !matched; i++) {
          const raw = await world.text(`/api/v1/quotes/${symbol}`);
          seen.add(raw.match(/"last":([^,]+)/)[1]);
          matched = seen.has(await page.run(LAST(symbol)));
          await sleep(60);
        }
        expect(matched, `${symbol}: the page has ${await page.run(LAST(symbol))}, marketd sent ${[...seen]}`);
      }
    },
  },
  {
    name: "prices move",
    breaks: ["hub.js", (text) => text.replace('"quote", "candle"', '"candle"')],
    async run(world, open) {
      const page = await open();
      const before = await page.until(LAST("BTC/USDT"));
      await page.until(
        `${LAST("BTC/USDT")} !== ${JSON.stringify(before)}`,
        5000,
        "another price of BTC/USDT",
      );
    },
  },
  {
    name: "a market that is not served any more leaves the table, and may come back",
    breaks: ["app.js", (text) => text.replace("table.remove(symbol);", "")],
    async run(world, open) {
      const page = await open();
      await page.until(`app.table.order.length === 6`);
      const gone = `{ symbol: "ETH/USDT", code: "symbol_not_found" }`;
      // A quote of the stream may bring it back at once, so that it is gone for a frame only.
      const held = await page.run(
        `await new Promise((done) => { let frames = 0; const look = () => { if (app.table.order.length === 5 || frames++ > 60) return done(app.table.order.join()); app.feed.on.gone(${gone}); requestAnimationFrame(look); }; look(); })`,
      );
      expect(held && !held.includes("ETH/USDT"), `not in the table: ${held}`);
      await page.run(`app.feed.retry()`);
      await page.until(`app.table.order.length === 6`, 5000, "the next list brings it back");
    },
  },
  {
    name: "search, category and sort",
    breaks: ["table.js", (text) => text.replace("includes(wanted)", "includes('')")],
    async run(world, open) {
      const page = await open();
      await page.until(`app.table.order.length === 6`);
      await page.key("/", "Slash", "/");
      await page.until(`document.activeElement.id === "search"`, 2000, "the slash goes to the search");
      await page.type("tin");
      await page.until(`app.table.order.join() === "TINY/USDT"`, 2000, "the search finds one market");
      await page.key("Escape");
      await page.until(`app.table.order.length === 6`, 2000, "Escape ends the search");
      await page.click(`th[data-key="last"] button`);
      const descending = await page.run(`app.table.order`);
      same([descending[0], descending[5]], ["HUGE/USDT", "TINY/USDT"], "sorted by price");
      await page.click(`th[data-key="last"] button`);
      same(await page.run(`app.table.order[0]`), "TINY/USDT", "sorted the other way");
      same(
        await page.run(`document.querySelector('th[data-key="last"]').getAttribute("aria-sort")`),
        "ascending",
        "aria-sort",
      );
      await page.until(`document.querySelector('#views [data-show="oddities"]')`);
      await page.click(`#views [data-show="oddities"]`);
      await page.until(`app.table.order.length === 2`, 3000, "the category's markets");
      const linked = await open("#/?show=oddities");
      await linked.until(`app.table.order.length === 2`, 5000, "and by a link");
    },
  },
  {
    name: "small charts are those of the API",
    breaks: ["spark.js", (text) => text.replace("Number(row[4])", "Number(row[1])")],
    async run(world, open) {
      const page = await open();
      const points = await page.until(
        `app.table.sparks.points.get("BTC/USDT")?.length > 20 && app.table.sparks.points.get("BTC/USDT")`,
      );
      const api = await world.json("/api/ecosystem/chart?symbol=BTC/USDT&interval=1h&limit=24");
      same(
        points.slice(0, -1),
        api.slice(-points.length, -1).map((row) => [row[0] / 3_600_000, row[4]]),
        "points",
      );
      const inked = await page.run(
        `(() => { const c = document.querySelector('tr[data-symbol="BTC/USDT"] canvas'); return c.getContext("2d").getImageData(0, 0, c.width, c.height).data.filter((v, i) => i % 4 === 3 && v > 0).length; })()`,
      );
      expect(inked > 60, `${inked} pixels drawn`);
    },
  },
  {
    name: "a click opens a chart whose candles are those of the API, in the model and in pixels",
    breaks: [
      "draw.js",
      (text) => text.replace("candle.close < candle.open ? colors.down : colors.up", "colors.up"),
    ],
    async run(world, open) {
      const page = await open();
      await page.until(`app.table.rows.size === 6`);
      await page.click(`tr[data-symbol="ETH/USDT"]`);
      await page.until(`app.panel.symbol === "ETH/USDT" && ${SHOWN}`);
      same(await page.run(`location.hash`), "#/ETH-USDT/1h", "the address");
      await compareWithApi(world, page, "ETH/USDT", "1h");
      await page.run(`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))`);
      const wrong = await page.run(`(() => {
        const chart = app.panel.chart, g = chart.now, pixel = ${PIXEL}, color = ${COLOR};
        const up = color("up"), down = color("down"), wrong = []; let looked = 0;
        // The newest price's dotted line has a candle's colour too.
        const line = g.y(chart.series.candles.get(chart.series.newest).close), clear = (y) => Math.abs(y - line) > 2;
        for (let slot = g.first + 2; slot < chart.series.newest - 1; slot++) {
          const c = chart.series.candles.get(slot);
          if (!c || Math.abs(g.y(c.open) - g.y(c.close)) < 4) continue;
          const x = Math.round(g.x(slot) - 0.5), middle = (g.y(c.open) + g.y(c.close)) / 2, above = g.y(c.high) - 4;
          const is = pixel(x, middle), wanted = c.close < c.open ? down : up, over = pixel(x, above);
          looked++;
          if (is !== wanted && clear(middle)) wrong.push([slot, is, wanted]);
          if ((over === up || over === down) && clear(above)) wrong.push([slot, "over its high", over]);
        }
        return looked < 30 ? ["only " + looked] : wrong.slice(0, 3);
      })()`);
      same(wrong, [], "pixels");
    },
  },
  {
    name: "the crosshair gives the values as sent, and keys move it",
    breaks: [
      "series.js",
      (text) => text.replace("text: text.map(String)", "text: text.map((t) => String(Number(t)))"),
    ],
    async run(world, open) {
      const page = await open("#/TINY-USDT/1h");
      await page.until(SHOWN);
      const { x, y } = await middle(page);
      await page.mouse("mouseMoved", [x, y]);
      const time = await page.until(
        `app.panel.chart.cross && app.panel.series.candles.get(app.panel.chart.cross.slot)?.time`,
      );
      const [row] = await world.json(
        `/api/ecosystem/chart?symbol=TINY/USDT&interval=1h&from=${time}&to=${time}&decimals=string`,
      );
      await page.until(`document.querySelectorAll("#values span").length === 5`);
      same(
        await page.run(
          `[...document.querySelectorAll("#values span")].slice(0, 4).map((s) => s.textContent)`,
        ),
        row.slice(1, 5),
        "values",
      );
      same(await page.run(`document.querySelectorAll("#values span")[4].title`), row[5], "volume");
      await page.run(`document.getElementById("canvas").focus()`);
      const slot = await page.run(`app.panel.chart.cross.slot`);
      await page.key("ArrowLeft");
      same(await page.run(`app.panel.chart.cross.slot`), slot - 1, "one candle to the left");
      const step = await page.run(`app.panel.chart.step`);
      await page.key("+", "Equal", "+");
      expect((await page.run(`app.panel.chart.step`)) > step, "plus zooms in");
    },
  },
  {
    name: "panning back loads older candles, and the wheel zooms",
    breaks: [
      "series.js",
      (text) =>
        text.replace(
          "if (this.loading || this.stuck || !this.loaded || this.oldest === null) return;",
          "return;",
        ),
    ],
    async run(world, open) {
      const page = await open("#/BTC-USDT/1h");
      await page.until(SHOWN);
      const before = await page.run(`app.panel.series.oldest`);
      const { left, width, y } = await middle(page);
      for (let i = 0; i < 7; i++) await page.drag([left + 20, y], [left + width - 120, y]);
      await page.until(`app.panel.series.oldest < ${before} - 300 && ${SHOWN}`, 12_000, "older candles");
      expect((await page.run(`app.panel.chart.now.first`)) < before + 100, "the view has moved");
      await compareWithApi(world, page, "BTC/USDT", "1h");
      same(await page.run(`document.getElementById("newest").hidden`), false, "the way back is shown");
      const step = await page.run(`app.panel.chart.step`);
      await page.send("Input.dispatchMouseEvent", {
        type: "mouseWheel",
        x: left + 300,
        y,
        deltaX: 0,
        deltaY: -240,
      });
      await page.until(`app.panel.chart.step > ${step} * 1.2`, 2000, "the wheel zooms in");
      await page.click("#newest");
      await page.until(
        `app.panel.chart.now.last >= app.panel.series.newest`,
        2000,
        "back at the newest candle",
      );
    },
  },
  {
    name: "slots without a trade are gaps",
    breaks: ["series.js", (text) => text.replace('span.complete ? "empty" : "unknown"', '"candle"')],
    async run(world, open) {
      const page = await open("#/GAP-USDT/1m");
      await page.until(SHOWN);
      await page.run(`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))`);
      const seen = await page.run(`(() => {
        const chart = app.panel.chart, g = chart.now, pixel = ${PIXEL}, color = ${COLOR}, up = color("up"), down = color("down");
        const seen = { empty: 0, painted: 0, wrong: 0 };
        for (let slot = chart.series.newest - 60; slot < chart.series.newest - 12; slot++) {
          const quiet = [3, 4, 7].includes(slot % 10), kind = chart.series.kind(slot);
          if (quiet !== (kind === "empty")) seen.wrong++;
          if (!quiet) continue;
          seen.empty++;
          for (let y = 30; y < g.plot.height - 4; y++) if ([up, down].includes(pixel(Math.round(g.x(slot) - 0.5), y))) { seen.painted++; break; }
        }
        return seen;
      })()`);
      // The newest price's dotted line crosses a gap in some pixels of its own colour.
      expect(seen.empty >= 12 && seen.wrong === 0, JSON.stringify(seen));
      const known = await page.run(`document.getElementById("known").textContent`);
      expect(/nobody traded/.test(known), known);
      const quiet = await page.run(
        `(() => { const g = app.panel.chart.now; for (let s = app.panel.series.newest - 20; ; s--) if (app.panel.series.kind(s) === "empty") return g.x(s); })()`,
      );
      const { left, y } = await middle(page);
      await page.mouse("mouseMoved", [left + quiet, y]);
      await page.until(
        `document.getElementById("values").textContent.includes("nobody traded")`,
        2000,
        "the crosshair says that nobody traded",
      );
    },
  },
  {
    name: "what is not known is hatched, and said",
    breaks: ["draw.js", (text) => text.replace('if (kind === "unknown") {', "if (false) {")],
    async run(world, open) {
      const page = await open("#/BTC-USDT/1m");
      await page.until(SHOWN);
      await page.run(`document.getElementById("canvas").focus()`);
      for (let i = 0; i < 6 && !(await page.run(`app.panel.series.stuck`)); i++) {
        await page.key("Home");
        await page.until(SHOWN, 15_000);
      }
      await page.until(`app.panel.series.stuck`, 15_000, "the end of what is known");
      await page.key("Home");
      await page.run(`app.panel.chart.pan(-60)`);
      await page.run(`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))`);
      const hatched = await page.run(`(() => {
        const chart = app.panel.chart, g = chart.now, pixel = ${PIXEL}, wanted = ${COLOR}("hatch"), near = (a, b) => a.split(",").every((v, i) => Math.abs(v - b.split(",")[i]) < 14);
        let known = 0, unknown = 0;
        const edge = g.x(chart.series.oldest);
        for (let x = 5; x < edge - 12; x++) if (near(pixel(x, 60.5), wanted)) unknown++;
        for (let x = edge + 10; x < g.plot.width - 5; x++) if (near(pixel(x, 60.5), wanted)) known++;
        return { edge, known, unknown };
      })()`);
      expect(
        hatched.edge > 100 && hatched.unknown > hatched.edge / 40 && hatched.known * 8 < hatched.unknown,
        JSON.stringify(hatched),
      );
      expect(
        /nothing older is known/.test(await page.run(`document.getElementById("known").textContent`)),
        "said below the chart",
      );
      const { left, top } = await middle(page);
      await page.mouse("mouseMoved", [left + 30, top + 60]);
      await page.until(
        `document.getElementById("values").textContent.includes("not known")`,
        2000,
        "said at the crosshair",
      );
    },
  },
  {
    name: "an interval changes, and all of them have candles",
    breaks: [
      "panel.js",
      (text) => text.replace("go(this.symbol, interval, true)", "go(this.symbol, this.interval, true)"),
    ],
    async run(world, open) {
      const page = await open("#/BTC-USDT/1h");
      await page.until(SHOWN);
      same(
        await page.run(`[...document.querySelectorAll("#intervals button")].map((b) => b.textContent)`),
        INTERVALS,
        "intervals",
      );
      await page.click(`#intervals button[data-interval="5m"]`);
      // marketd stores 1,200 minutes at first, which is less than half a page of 5m: the page waits for
      // the rest, and then for older ones, for five seconds each.
      await page.until(`app.panel.interval === "5m" && ${SHOWN}`, 20_000);
      await compareWithApi(world, page, "BTC/USDT", "5m");
      for (const interval of INTERVALS) {
        await page.click(`#intervals button[data-interval="${interval}"]`);
        await page.until(`app.panel.interval === "${interval}" && app.panel.series.candles.size > 3`);
      }
      // The oldest months end where marketd would take a time for seconds.
      await page.run(`document.getElementById("canvas").focus()`);
      for (let i = 0; i < 3; i++) {
        await page.key("Home");
        await page.until(SHOWN, 15_000);
      }
      same(await page.run(`app.panel.series.error`), null, "the request for the oldest candles");
    },
  },
  {
    name: "the chart's newest candle moves",
    breaks: ["series.js", (text) => text.replace("this.keep([row]);", "")],
    async run(world, open) {
      const page = await open("#/BTC-USDT/1m");
      await page.until(SHOWN);
      const close = await page.run(`app.panel.series.candles.get(app.panel.series.newest).text[3]`);
      await page.until(
        `app.panel.series.candles.get(app.panel.series.newest).text[3] !== "${close}"`,
        6000,
        "another close",
      );
    },
  },
  {
    name: "the arrow keys walk the table",
    breaks: ["table.js", (text) => text.replace("ArrowDown: 1", "ArrowDown: 0")],
    async run(world, open) {
      const page = await open();
      await page.until(`app.panel.symbol && app.table.order.length === 6`);
      await page.run(`document.getElementById("quotes").focus()`);
      const at = await page.run(`app.table.order.indexOf(app.table.selected)`);
      await page.key("ArrowDown");
      same(await page.run(`app.table.order.indexOf(app.table.selected)`), at + 1, "the next market");
      await page.until(`app.panel.symbol === app.table.selected`, 3000, "its chart");
      const shown = await page.run(`app.panel.symbol`);
      for (const hash of ["#/", "#service", "#/"]) {
        await page.run(`(location.hash = "${hash}")`);
        await sleep(200);
      }
      const panel = `app.panel.symbol === "${shown}" && document.getElementById("panel").offsetParent`;
      await page.until(`Boolean(${panel})`, 3000, "the same chart after a look at the service");
    },
  },
  {
    name: "the service view has the sources, the backfill and the figures",
    breaks: ["service.js", (text) => text.replace("count(s.budgetLeft)", '"–"')],
    async run(world, open) {
      const page = await open("#service");
      await page.until(
        `document.querySelectorAll("#sources thead th").length === 1 && document.querySelectorAll(".group").length === 5`,
      );
      const shown = await page.run(
        `Object.fromEntries([...document.querySelectorAll("#sources tbody tr")].map((d) => [d.firstChild.textContent, d.lastChild.textContent]))`,
      );
      expect(/ms|s ago/.test(shown["Last answer"]), `last answer ${shown["Last answer"]}`);
      expect(/^[\d\s]+$/.test(shown["Budget left"]), `budget ${shown["Budget left"]}`);
      await page.until(
        `document.getElementById("sources").textContent.includes("Answers for6 markets")`,
        5000,
        "the markets that the source answers for",
      );
      expect(await page.run(`document.querySelectorAll("#backfill progress").length === 1`), "backfill");
      const before = await page.run(`app.service.metrics.http.requests`);
      await page.until(`app.service.metrics.http.requests > ${before}`, 5000, "new figures");
      expect(/ok/.test(await page.run(`document.getElementById("health").textContent`)), "health");
      const old = { status: "degraded", upstreams: { up: 0, total: 1 }, quotes: { fresh: 1, stale: 5 }, reasons: [] };
      await page.run(`app.feed.on.status(${JSON.stringify(old)})`);
      await page.until(
        `/^ok.* 6 quotes fresh/.test(document.getElementById("health").textContent)`,
        5000,
        "health is new, too",
      );
    },
  },
  {
    name: "an idle page causes no request but its stream",
    breaks: ["app.js", (text) => text + '\nsetInterval(() => get("api/v1/metrics"), 1500);'],
    async run(world, open) {
      const page = await open();
      await page.until(`app.panel.symbol && ${SHOWN}`);
      await sleep(2500);
      const mark = [page.requests.length, world.requests.length];
      await sleep(6000);
      same([page.requests.slice(mark[0]), world.requests.slice(mark[1])], [[], []], "requests");
    },
  },
  {
    name: "a stopped source turns stale within its time, and comes back",
    breaks: ["row.js", (text) => text.replace('this.tr.classList.toggle("stale", quote.stale)', "0")],
    async run(world, open) {
      const page = await open();
      await page.until(`app.table.rows.size === 6 && !document.querySelector("tr.stale")`);
      const { port } = world.exchange;
      await world.exchange.stop();
      const stopped = Date.now();
      // The source's time, one poll of this fixture's stream, and one of the page's frames.
      await page.until(
        `document.querySelectorAll("tr.stale").length === 6`,
        STALE_MS + 2500,
        "all quotes are marked stale",
      );
      const took = Date.now() - stopped;
      same(
        await page.run(`document.querySelector('tr[data-symbol="BTC/USDT"] .change').textContent`),
        "stale",
        "the row's word",
      );
      await page.until(
        `document.getElementById("state").dataset.state === "degraded"`,
        4000,
        "the bar says so",
      );
      await page.run(`location.hash = "#service"`);
      await page.until(
        `/backoff|down/.test(document.querySelector("#sources thead th")?.dataset.state) && document.querySelector("#sources .error")?.textContent.length > 20`,
        8000,
        "the source's state and error",
      );
      await world.exchange.start(port);
      await page.run(`location.hash = "#/"`);
      await page.until(
        `!document.querySelector("tr.stale") && app.table.rows.size === 6`,
        12_000,
        "quotes are fresh again",
      );
      return `stale after ${took} ms`;
    },
  },
  {
    name: "the daemon is killed and started again, and the page recovers",
    mayFail: true,
    breaks: ["hub.js", (text) => text.replace("this.timer = setTimeout(() => this.open(), wait);", "")],
    async run(world, open) {
      const page = await open("#/BTC-USDT/1m");
      await page.until(`${SHOWN} && app.table.rows.size === 6`);
      await page.run(`(globalThis.stillHere = true)`);
      await world.killDaemon();
      await page.until(
        `document.body.classList.contains("lost") && /lost at \\d\\d:\\d\\d:\\d\\d UTC/.test(document.getElementById("notice").textContent)`,
        8000,
        "the page says that the connection is lost",
      );
      await sleep(2500);
      await world.startDaemon();
      await world.ready();
      await page.until(
        `!document.body.classList.contains("lost") && document.getElementById("notice").hidden && app.feed.state === "live"`,
        15_000,
        "the page is live again",
      );
      const price = await page.run(LAST("BTC/USDT"));
      await page.until(`${LAST("BTC/USDT")} !== "${price}"`, 6000, "prices move again");
      const close = await page.run(`app.panel.series.candles.get(app.panel.series.newest).text[3]`);
      await page.until(
        `app.panel.series.candles.get(app.panel.series.newest).text[3] !== "${close}"`,
        15_000,
        "the chart moves again",
      );
      same(await page.run(`globalThis.stillHere`), true, "without a reload");
    },
  },
  {
    name: "connections are refused for a while, and the page recovers",
    mayFail: true,
    breaks: [
      "hub.js",
      (text) =>
        text.replace(
          "source.onopen = () => {",
          "source.onopen = () => { if (this.was) return; this.was = true;",
        ),
    ],
    async run(world, open) {
      const page = await open();
      await page.until(`app.table.rows.size === 6`);
      const port = await stopServerAndWait(world, page);
      await sleep(1500);
      await world.startServer(port);
      await page.until(
        `!document.body.classList.contains("lost") && app.feed.state === "live"`,
        15_000,
        "the page is live again",
      );
      const price = await page.run(LAST("BTC/USDT"));
      await page.until(`${LAST("BTC/USDT")} !== "${price}"`, 6000, "prices move again");
    },
  },
  {
    name: "a chart that comes back after a rest has the candles of that time",
    breaks: ["series.js", (text) => text.replace("?.slot - 1", "?.slot")],
    async run(world, open) {
      const page = await open("#/BTC-USDT/1m");
      await page.until(`${SHOWN} && app.feed.state === "live"`);
      const isOpen = `app.panel.series.spans.at(-1).to <= app.panel.series.lastClosed / 60_000`;
      expect(await page.run(isOpen), "a candle that still forms is taken as complete");
      // As if the tab had left while this candle had just begun.
      const left = await page.run(`(() => {
        const { panel, feed } = app, s = panel.series, at = s.newest - 3, candle = s.candles.get(at);
        feed.leave();
        feed.set("paused");
        for (let slot = at + 1; slot <= s.newest; slot++) s.candles.delete(slot);
        s.candles.set(at, { ...candle, text: candle.text.with(3, "1") });
        s.spans = [{ from: s.oldest, to: at - 1, complete: true }];
        Object.assign(s, { newest: at, lastClosed: candle.time - 60_000 });
        feed.join();
        return at;
      })()`);
      await page.until(
        `app.panel.series.candles.get(${left}).text[3] !== "1" && app.panel.series.candles.has(${left} + 1)`,
        3000,
        "the rest of the candle",
      );
    },
  },
  {
    name: "after a rest, the loss is told from the last that was heard, and the title has no old price",
    mayFail: true,
    breaks: ["hub.js", (text) => text.replace("heard: this.heard", "heard: Date.now()")],
    async run(world, open) {
      const page = await open("#/BTC-USDT/1h");
      await page.until(`/^[\\d.]+ BTC\\/USDT$/.test(document.title)`, 5000, "the price in the title");
      await page.run(`(app.feed.leave(), app.feed.set("paused"))`);
      const last = new Date().toISOString().slice(11, 19);
      await page.until(`document.title === "BTC/USDT"`, 2000, "the title without the price");
      expect(await page.run(`document.body.classList.contains("lost")`), "old prices are grey");
      await sleep(2000);
      await world.stopServer();
      await page.run(`app.feed.join()`);
      await page.until(`!document.getElementById("notice").hidden`, 8000, "the loss is told");
      const said = await page.run(`document.getElementById("notice").textContent.match(/[\\d:]{8}/)[0]`);
      expect(said <= last, `lost at ${said}, and the page heard nothing after ${last}`);
    },
  },
  {
    name: "a phone: nothing is wider than the page, a tap opens a chart, a finger pans it",
    breaks: [
      "page.css",
      (text) =>
        text.replace('body[data-view="chart"] #markets { display: none; }', "main { min-width: 700px; }"),
    ],
    options: { width: 360, height: 740, phone: true, scale: 2 },
    async run(world, open) {
      const page = await open("");
      await page.until(`app.table.rows.size === 6`);
      const fits = `innerWidth === 360 && document.documentElement.scrollWidth <= 360 && [...document.querySelectorAll("main, .bar, .tools, #quotes, .head, #stage, #service-view")].every((e) => !e.offsetParent || e.getBoundingClientRect().right <= 360.5)`;
      // What the stream says at its begin comes first.
      await page.until(
        `app.feed.state === "live" && /live/.test(document.getElementById("state-text").textContent)`,
      );
      await sleep(600);
      await page.run(`(app.feed.on.status({ status: "degraded", upstreams: { up: 0, total: 1 }, quotes: { fresh: 0, stale: 6 },
        reasons: [{ code: "source_backoff", source: "a-source-with-a-long-name", message: "" }] }))`);
      await page.until(`document.getElementById("state-text").textContent.includes("long-name")`);
      expect(await page.run(fits), "the table is wider than the page");
      const place = await page.run(
        `(() => { const r = document.querySelector('tr[data-symbol="ETH/USDT"]').getBoundingClientRect(); return { x: r.x + 60, y: r.y + r.height / 2 }; })()`,
      );
      await page.send("Input.dispatchTouchEvent", { type: "touchStart", touchPoints: [place] });
      await page.send("Input.dispatchTouchEvent", { type: "touchEnd", touchPoints: [] });
      await page.until(`app.panel.symbol === "ETH/USDT" && ${SHOWN}`);
      expect(await page.run(`!document.getElementById("markets").offsetParent`), "the table makes room");
      expect(await page.run(fits), "the chart is wider than the page");
      const right = await page.run(`app.panel.chart.right`);
      const { x, y } = await middle(page);
      await page.send("Input.dispatchTouchEvent", { type: "touchStart", touchPoints: [{ x: x - 80, y }] });
      for (let i = 1; i <= 5; i++)
        await page.send("Input.dispatchTouchEvent", {
          type: "touchMove",
          touchPoints: [{ x: x - 80 + i * 30, y }],
        });
      await page.send("Input.dispatchTouchEvent", { type: "touchEnd", touchPoints: [] });
      expect((await page.run(`app.panel.chart.right`)) < right - 5, "a finger pans");
      await page.click(".back");
      await page.until(
        `document.getElementById("markets").offsetParent && !app.panel.symbol`,
        2000,
        "back to the table",
      );
      await page.run(`location.hash = "#service"`);
      await page.until(`document.querySelectorAll("#sources thead th").length === 1`);
      expect(await page.run(fits), "the service view is wider than the page");
    },
  },
  {
    name: "light, dark, and reduced motion",
    breaks: [
      "page.css",
      (text) =>
        text
          .replace("color-scheme: light dark", "color-scheme: light")
          .replace("prefers-reduced-motion: no-preference", "min-width: 1px"),
    ],
    async run(world, open) {
      const ground = `getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)[0]`;
      const light = await open();
      await light.until(SHOWN);
      expect((await light.run(ground)) > 200, "light");
      await light.click("#theme");
      await light.click("#theme");
      expect((await light.run(ground)) < 60, "dark by choice");
      await light.run(`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))`);
      expect(Number((await light.run(`${PIXEL}(3, 3)`)).split(",")[0]) < 60, "the chart follows");
      const dark = await open("", { dark: true, calm: true });
      await dark.until(SHOWN);
      expect((await dark.run(ground)) < 60, "dark");
      expect(
        await dark.run(
          `parseFloat(getComputedStyle(document.querySelector("#quotes tbody th")).transitionDuration) === 0`,
        ),
        "no transitions",
      );
    },
  },
  {
    name: "each view asks nobody else, and leaves the console clean",
    breaks: ["app.js", (text) => text + '\nfetch("http://127.0.0.1:9/").catch(() => {});'],
    async run(world, open) {
      const page = await open();
      await page.until(`app.panel.symbol && ${SHOWN}`);
      await page.run(`location.hash = "#service"`);
      await page.until(`document.querySelectorAll("#sources thead th").length === 1`);
      await page.run(`location.hash = "#/GAP-USDT/1m"`);
      await page.until(`app.panel.symbol === "GAP/USDT" && ${SHOWN}`);
      await sleep(1500);
    },
  },
  {
    name: "the policy holds: what is inline or foreign is refused",
    mayFail: true,
    foreign: "http://127.0.0.1:9/",
    breaks: ["policy", (text) => text.replace("script-src 'self'", "script-src 'self' 'unsafe-inline'")],
    async run(world, open) {
      const page = await open();
      await page.until(`app.table.rows.size === 6`);
      const before = page.faults.length;
      expect(before === 0, page.faults.join("; "));
      await page.run(
        `(() => { const s = document.createElement("script"); s.textContent = "globalThis.inline = true"; document.head.append(s); })()`,
      );
      same(await page.run(`globalThis.inline === true`), false, "an inline script ran");
      const refused = await page.run(`fetch("http://127.0.0.1:9/").then(() => false, () => true)`);
      expect(refused, "a foreign request went out");
      await sleep(200);
      expect(
        page.faults.slice(before).some((fault) => /Content Security Policy|policy/i.test(fault)),
        "nobody noticed",
      );
    },
  },
  {
    name: "a daemon that hangs is noticed, and so is its return",
    mayFail: true,
    breaks: ["hub.js", (text) => text.replace("SILENCE_MS = 20_000", "SILENCE_MS = 200_000")],
    async run(world, open) {
      const page = await open("#/BTC-USDT/1h");
      await page.until(SHOWN);
      process.kill(world.daemon.pid, "SIGSTOP");
      const since = Date.now();
      try {
        await page.until(
          `document.body.classList.contains("lost") && document.getElementById("state").dataset.state === "lost" && !document.getElementById("notice").hidden`,
          45_000,
          "the page says that the connection is lost",
        );
        const took = Date.now() - since;
        await page.run(`location.hash = "#service"`);
        await page.until(
          `/not known/.test(document.getElementById("health").textContent)`,
          2000,
          "health is not known",
        );
        process.kill(world.daemon.pid, "SIGCONT");
        await page.until(
          `app.feed.state === "live" && document.getElementById("notice").hidden`,
          40_000,
          "live again",
        );
        await page.until(
          `/^ok/.test(document.getElementById("health").textContent)`,
          8000,
          "health is known",
        );
        return `after ${(took / 1000).toFixed(1)} s`;
      } finally {
        process.kill(world.daemon.pid, "SIGCONT");
      }
    },
  },
  {
    name: "a chart whose first load fails claims nothing, and tries again",
    mayFail: true,
    breaks: [
      "series.js",
      (text) => text.replace("setTimeout(() => !this.gone && this.load(), this.anew);", ""),
    ],
    async run(world, open) {
      world.options.refuse = (target) => target.startsWith("/api/ecosystem/chart?symbol=");
      const page = await open("#/BTC-USDT/1m");
      await page.until(`/trying again/.test(document.getElementById("say").textContent)`, 5000, "it says so");
      await page.until(`app.panel.series.candles.size > 0`, 5000, "a candle of the stream");
      same(await page.run(`document.getElementById("known").textContent`), "", "nothing is claimed");
      world.options.refuse = undefined;
      await page.until(`app.panel.series.loaded && app.panel.series.candles.size > 300`, 12_000, "candles");
      expect(await page.run(`document.getElementById("say").hidden`), "the message is gone");
    },
  },
  {
    name: "small charts cost the exchange nothing, and a failed one is asked for again",
    mayFail: true,
    breaks: ["spark.js", (text) => text.replace('fetch: "none",', "")],
    async run(world, open) {
      world.exchange.asked.clear();
      world.options.refuse = (target) => target.includes("symbols=");
      const page = await open("#/BTC-USDT/1h");
      await page.until(SHOWN);
      await sleep(800);
      world.options.refuse = undefined;
      await page.until(
        `app.table.sparks.points.get("BTC/USDT")?.length > 20`,
        8000,
        "the next request succeeds",
      );
      await sleep(1500);
      expect(!world.exchange.asked.has("SOL"), "candles of SOL were asked for");
      // As if the tab had rested for three hours.
      await page.run(`(app.table.sparks.slot -= 3)`);
      await page.until(`!app.table.sparks.points.has("BTC/USDT")`, 5000, "old points are dropped");
      await page.until(`app.table.sparks.points.get("BTC/USDT")?.length > 20`, 5000, "and loaded again");
      const inked = await page.run(
        `(() => { const c = document.querySelector('tr[data-symbol="SOL/USDT"] canvas'); return c.getContext("2d").getImageData(0, 0, c.width, c.height).data.filter((v, i) => i % 4 === 3 && v > 0).length; })()`,
      );
      expect(inked > 40, `${inked} pixels of the day's range`);
    },
  },
  {
    name: "eight tabs share their streams, and all of them are live",
    breaks: ["feed.js", (text) => text.replace("new SharedWorker(", "new NoWorker(")],
    async run(world, open) {
      const begun = world.requests.length;
      const first = await open("#/BTC-USDT/1h");
      await first.until(SHOWN);
      const tabs = [first];
      for (const hash of ["#/ETH-USDT/1h", "#/SOL-USDT/5m", "", "", "", "#/GAP-USDT/1m", "#/BTC-USDT/1h"])
        tabs.push(await open(hash, { beside: first }));
      for (const tab of tabs)
        await tab.until(
          `app.feed.state === "live" && app.table.quotes.size === 6`,
          8000,
          "each tab has quotes",
        );
      // One stream has what all of them show; it is opened again when that is something else.
      await sleep(1000);
      const { streams } = await world.json("/api/v1/metrics");
      same(streams.open, 1, "open streams");
      const lists = world.requests.slice(begun).filter((url) => url.includes("quotes?symbols="));
      same(lists.length, 1, "lists of all quotes");
      for (const tab of tabs) {
        // A tab in the background sees its chart alone.
        const last = `app.table.quotes.get(app.panel.symbol ?? "BTC/USDT").last`;
        const price = await tab.run(last);
        await tab.until(`${last} !== "${price}"`, 5000, "prices move in each");
      }
      const close = `app.panel.series.candles.get(app.panel.series.newest).text[3]`;
      await first.until(SHOWN);
      const before = await first.run(close);
      await first.until(`${close} !== "${before}"`, 8000, "and the first one's chart");
    },
  },
  {
    name: "the stream of all tabs stays within the limits of the service, and moves where there is one",
    mayFail: true,
    breaks: ["hub.js", (text) => text.replace("names.some(isLeftOut)", "false")],
    async run(world, open) {
      await world.killDaemon();
      world.limits = { streamCharts: 1, streamSymbols: 3, streamsPerAddress: 1 };
      await world.startDaemon();
      await world.ready();
      const first = await open("#/BTC-USDT/1h");
      const second = await open("#/SOL-USDT/5m", { beside: first });
      for (const tab of [first, second])
        await tab.until(`app.feed.state === "live" && app.panel.series?.loaded`, 8000, "each tab is live");
      await second.run(`(() => {
        const { on } = app.feed, { state } = on;
        globalThis.lost = 0;
        on.state = (it, at) => state(it, at, it === "lost" && lost++);
      })()`);
      const close = `app.panel.series.candles.get(app.panel.series.newest)?.text[3]`;
      for (const market of ["ETH", "GAP", "TINY"]) {
        await second.run(`(location.hash = "#/${market}-USDT/5m")`);
        const before = await second.until(`app.panel.series.symbol === "${market}/USDT" && ${close}`);
        await second.until(`${close} !== "${before}"`, 8000, `the chart of ${market} is streamed`);
      }
      same(await second.run(`lost`), 0, "the connection was said to be lost");
      await first.until(SHOWN);
      const before = await first.run(close);
      await first.until(`${close} !== "${before}"`, 15_000, "a chart without a place is loaded again");
    },
  },
  {
    name: "limits that could not be read, or have changed, are read again",
    mayFail: true,
    breaks: ["hub.js", (text) => text.replace("this.followed.clear()", "0")],
    async run(world, open) {
      world.options.refuse = (target) => target === "/page/config.json";
      const first = await open("#/BTC-USDT/1h");
      const tabs = [first, await open("#/SOL-USDT/5m", { beside: first })];
      const reach = async (state) => {
        for (const tab of tabs) await tab.until(`app.feed.state === "${state}"`, 15_000, `each tab is ${state}`);
      };
      await reach("live");
      await world.killDaemon();
      await reach("lost");
      world.limits = { streamCharts: 1 };
      await world.startDaemon();
      await world.ready();
      await reach("lost");
      world.options.refuse = undefined;
      await reach("live");
    },
  },
  {
    name: "a tab that joins later is told what is gone",
    breaks: ["hub.js", (text) => text.replace("this.held.set(key", 'if (name !== "gone") this.held.set(key')],
    async run(world, open) {
      const page = await open();
      const told = await page.run(`await import("./page/hub.js").then(({ Hub }) => {
        const hub = new Hub(), told = [], port = { postMessage: (it) => told.push(...it.events) };
        hub.event("quote", '{"symbol":"A/USDT","last":1}');
        hub.event("gone", '{"symbol":"A/USDT","code":"symbol_not_found"}');
        hub.show(port, ["A/USDT"]);
        hub.leave(port);
        return told.join();
      })`);
      same(told, 'gone,{"symbol":"A/USDT","code":"symbol_not_found"}', "what it is told");
    },
  },
  {
    name: "a candle that has not closed when a later one closes is taken back",
    breaks: ["series.js", (text) => text.replace("this.candles.delete(slot);", "")],
    async run(world, open) {
      const page = await open("#/BTC-USDT/1m");
      await page.until(`${SHOWN} && app.feed.state === "live"`);
      const left = await page.run(`(() => {
        const s = app.panel.series, { source, newest } = s, kept = s.candles.has(s.closed);
        const tell = (more, closed) =>
          s.apply({ source, closed, candle: [(newest + more) * 60_000, "9", "9", "9", "9", "0"] });
        for (const more of [1, 2, 3]) tell(more, false);
        tell(2, true);
        return [kept, ...[1, 2, 3].map((more) => s.candles.has(newest + more))].join();
      })()`);
      same(left, "true,false,true,true", "the candles that are left");
    },
  },
  {
    name: "links are read as people write them",
    breaks: ["links.js", (text) => text.replace(".toUpperCase()", "")],
    async run(world, open) {
      const page = await open();
      await page.until(`app.table.order.length === 6`);
      for (const hash of [
        "#/eth-usdt/4h",
        "#/ETHUSDT/4h",
        "#/ETH%2FUSDT/4h",
        "#/sol_usdt/4h",
        "#/SOL/USDT/4h",
      ]) {
        const symbol = /eth/i.test(hash) ? "ETH/USDT" : "SOL/USDT";
        await page.run(`location.hash = "${hash}"`);
        await page.until(`app.panel.symbol === "${symbol}" && app.panel.interval === "4h"`, 3000, hash);
        await page.run(`location.hash = "#/BTC-USDT/1h"`);
        await page.until(`app.panel.symbol === "BTC/USDT" && app.panel.interval === "1h"`);
      }
      const early = await open("#/solusdt/15m");
      await early.until(
        `app.panel.symbol === "SOL/USDT" && app.panel.interval === "15m"`,
        4000,
        "before quotes came",
      );
    },
  },
  {
    name: "the time axis has a month where it begins, and labels at every zoom",
    breaks: [
      "axis.js",
      (text) => text.replace("[240, 120, 60, 24, 12, 6, 3, 1].map(months)", "[].map(months)"),
    ],
    async run(world, open) {
      const page = await open("#/BTC-USDT/1h");
      const wrong = await page.run(`(async () => {
        const { ticks } = await import(new URL("page/axis.js", document.baseURI));
        const { INTERVALS, slotOf, timeOf } = await import(new URL("page/slots.js", document.baseURI));
        const wrong = [], end = Date.UTC(2026, 10, 27, 17);
        for (const interval of Object.keys(INTERVALS)) for (const step of [1.5, 3, 7, 20, 48]) {
          const last = slotOf(interval, end), first = last - Math.round(850 / step);
          const found = ticks(interval, first, last, step).sort((a, b) => a.slot - b.slot);
          if (found.length < 2) wrong.push([interval, step, "labels", found.length]);
          const room = Math.min(...Array.from({ length: last - first }, (_, i) => {
            const ms = timeOf(interval, first + i + 1) - timeOf(interval, first + i);
            return (28 * 86_400_000 * step) / ms;
          }));
          for (let slot = first; room > 80 && slot <= last; slot++) {
            const turns = new Date(timeOf(interval, slot)).getUTCMonth() !== new Date(timeOf(interval, slot - 1)).getUTCMonth();
            if (turns && !found.some((tick) => tick.slot === slot)) wrong.push([interval, step, "no month", slot]);
          }
          found.forEach(({ slot, label }, i) => {
            const d = new Date(timeOf(interval, slot)), before = new Date(timeOf(interval, slot - 1));
            if (/^[A-Z]/.test(label) && d.getUTCMonth() === before.getUTCMonth()) wrong.push([interval, step, label]);
            if (i && (slot - found[i - 1].slot) * step < 40) wrong.push([interval, step, "too close", label]);
          });
          // Hours of one day stand at one distance.
          const hours = found.filter((tick) => tick.label.includes(":"));
          const gaps = new Set(hours.slice(1).map((tick, i) => tick.slot - hours[i].slot));
          if (gaps.size > 2) wrong.push([interval, step, "uneven", ...gaps]);
        }
        return wrong.slice(0, 5);
      })()`);
      same(wrong, [], "labels");
    },
  },
  {
    name: "a market that is quiet for 40 hours ends at now",
    breaks: ["series.js", (text) => text.replace("Math.max(this.newest, now)", "this.newest")],
    async run(world, open) {
      const page = await open("#/BTC-USDT/1h");
      await page.until(SHOWN);
      const newest = await page.run(`app.panel.series.newest`);
      await page.run(`app.panel.time(Date.now() + 40 * 3_600_000)`);
      same(await page.run(`Math.round(app.panel.chart.right)`), newest + 43, "the slot at the right edge");
    },
  },
  {
    name: "rows are links, intervals leave no history, and the sort stays",
    breaks: ["choices.js", (text) => text.replace("choices[key] = value", "0")],
    async run(world, open) {
      const page = await open();
      await page.until(`app.panel.symbol && ${SHOWN} && app.table.rows.size === 6`);
      const href = await page.run(
        `document.querySelector('tr[data-symbol="ETH/USDT"] a').getAttribute("href")`,
      );
      same(href, "#/ETH-USDT/1h", "the row's link");
      const length = await page.run(`history.length`);
      for (const interval of ["5m", "4h", "1d"])
        await page.click(`#intervals button[data-interval="${interval}"]`);
      await page.until(`app.panel.interval === "1d"`);
      same(await page.run(`history.length`), length, "entries of the history");
      const shown = await page.run(`app.panel.symbol`);
      const other = shown === "SOL/USDT" ? "ETH/USDT" : "SOL/USDT";
      await page.run(`(globalThis.opened = [], window.open = (url) => opened.push(url), 0)`);
      const place = await page.run(
        `(() => { const r = document.querySelector('tr[data-symbol="${other}"] .last').getBoundingClientRect(); return [r.x + 9, r.y + 9]; })()`,
      );
      await page.mouse("mousePressed", place, { modifiers: 2 });
      await page.mouse("mouseReleased", place, { modifiers: 2 });
      same(await page.run(`globalThis.opened`), [`#/${other.replace("/", "-")}/1d`], "Ctrl and a click");
      same(await page.run(`app.panel.symbol`), shown, "the chart here");
      await page.click(`th[data-key="percentage"] button`);
      await page.send("Page.reload");
      await sleep(300);
      await page.until(`app.table.order.length === 6`);
      same(
        await page.run(`app.table.sort`),
        { key: "percentage", descending: true },
        "the sort after a reload",
      );
    },
  },
  {
    name: "turnovers are compared in one unit, and one long price takes no room from the others",
    breaks: ["rates.js", (text) => text.replace("Number(quoteVolume) * worth", "Number(quoteVolume)")],
    async run(world, open) {
      const page = await open();
      await page.until(`app.table.rows.size === 6`);
      // marketd does not know these markets, and would say so.
      await page.run(`(app.feed.say = () => {}, 0)`);
      const quote = (base, quoted, last, volume) =>
        `{ symbol: "${base}/${quoted}", base: "${base}", quote: "${quoted}", source: "main", last: "${last}", bid: null, ask: null, open: null, high: null, low: null, change: null, percentage: null, baseVolume: null, quoteVolume: ${volume}, receivedAt: 1, stale: false }`;
      await page.run(
        `([${quote("USDT", "TRY", "40", '"1000000"')}, ${quote("AAA", "TRY", "3.5", '"500000000"')}, ${quote("BBB", "XYZ", "2", '"900000000000000"')}].forEach((q) => app.feed.on.quote(q)), 0)`,
      );
      await page.run(`(app.table.ratedAt = -Infinity, app.table.reorder())`);
      const order = await page.run(`app.table.order`);
      const at = (symbol) => order.indexOf(symbol);
      expect(at("BTC/USDT") < at("ETH/USDT") && at("AAA/TRY") > at("BTC/USDT"), `the order is ${order}`);
      expect(at("ETH/USDT") > at("AAA/TRY") === 500e6 / 40 > 13.4e6, `12.5 M and 13.4 M: ${order}`);
      same(order[order.length - 1], "BBB/XYZ", "what has no rate comes last");
      await page.until(
        `app.table.rows.get("AAA/TRY").volume.title.startsWith("500000000 TRY, about 1.25e+7 USDT")`,
        2000,
        "the turnover in both units",
      );
      await page.run(
        `(Array.from({ length: 20 }, (_, i) => ({ ...app.table.quotes.get("SOL/USDT"), symbol: "N" + i + "/USDT", base: "N" + i })).forEach((q) => app.feed.on.quote(q)), 0)`,
      );
      await page.until(`app.table.order.length === 29`);
      expect(await page.run(`!app.table.table.classList.contains("long")`), "the column is as wide as usual");
    },
  },
  {
    name: "a market without a quote is listed",
    mayFail: true,
    breaks: ["app.js", (text) => text.replace("table.expect(market)", "0")],
    async run(world, open) {
      await world.killDaemon();
      world.exchange.withheld = "SOL";
      await world.startDaemon();
      await world.ready();
      const page = await open();
      await page.until(
        `/no quote/.test(document.querySelector('tr[data-symbol="SOL/USDT"] .change')?.textContent)`,
        8000,
        "its row",
      );
      same(await page.run(LAST("SOL/USDT")), "–", "its price");
      world.exchange.withheld = null;
      await page.until(`/^\\d/.test(${LAST("SOL/USDT")})`, 8000, "its first quote");
    },
  },
  {
    name: "roles, contrast and targets",
    breaks: [
      "page.css",
      (text) => text.replace("tr.stale b { color: var(--quiet); }", "tr.stale b { color: var(--faint); }"),
    ],
    async run(world, open) {
      for (const dark of [false, true]) {
        const page = await open("", { dark, calm: true });
        await page.until(`app.panel.symbol && app.table.rows.size === 6`);
        const faults = await page.run(`(() => {
          const faults = [], grid = document.querySelector("[role=grid]"), active = grid.getAttribute("aria-activedescendant");
          if (grid.tabIndex !== 0 || !document.getElementById(active)) faults.push("the grid names no row: " + active);
          const paint = document.createElement("canvas").getContext("2d");
          const light = (color) => {
            paint.fillStyle = color; paint.fillRect(0, 0, 1, 1);
            const [r, g, b] = [...paint.getImageData(0, 0, 1, 1).data].map((v) => ((v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
          };
          const ground = light(getComputedStyle(document.body).backgroundColor);
          for (const row of app.table.rows.values()) row.tr.classList.add("stale");
          for (const cell of document.querySelectorAll("tr.stale td.last, tr.stale th span, tr.stale td.change")) {
            const ink = light(getComputedStyle(cell).color), ratio = (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05);
            if (ratio < 4.5) faults.push("contrast " + ratio.toFixed(2));
          }
          for (const target of document.querySelectorAll("#quotes thead button, #theme, #intervals button, nav a, #quotes tbody a")) {
            const { height, width } = target.getBoundingClientRect();
            if (height && (height < 24 || width < 24)) faults.push("small: " + target.textContent + " " + [width, height]);
          }
          for (const area of document.querySelectorAll("#facts, #service-view")) if (area.tabIndex !== 0) faults.push(area.id + " is not reached");
          return faults.slice(0, 4);
        })()`);
        same(faults, [], dark ? "dark" : "light");
      }
    },
  },
];
