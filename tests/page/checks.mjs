// What the page must do, each as one check in a real browser. A check gets the world and `open`,
// which opens the page in a fresh context, and throws where something is not so.
//
// Beside each stands how it is broken: a change of the page's sources under which it must fail.

import { readFileSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { sleep, STALE_MS } from "./world.mjs";

const SOURCES = fileURLToPath(new URL("../../src/page/", import.meta.url));
/** All of the files of the page, before compression: some 30 KB in gzip. */
const MOST_BYTES = 101_000;
const FIRST_PAINT_MS = 200;
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

function expect(holds, what) {
  if (!holds) throw new Error(what);
}
function same(is, wanted, what) {
  const [a, b] = [JSON.stringify(is), JSON.stringify(wanted)];
  expect(a === b, `${what}: ${String(a).slice(0, 300)}, expected ${String(b).slice(0, 300)}`);
}

const LAST = (symbol) => `document.querySelector('tr[data-symbol="${symbol}"] .last')?.textContent`;
const SHOWN = "app.panel.series?.newest != null && !app.panel.series.loading";

/** The loaded candles of the page's model, as the API sends them. */
const MODEL = `[...app.panel.series.candles.values()].sort((a, b) => a.slot - b.slot).map((c) => [c.time, ...c.text])`;

/** A pixel's colour as "r,g,b". */
const PIXEL = `((x, y) => [...app.panel.chart.context.getImageData(Math.round(x * devicePixelRatio), Math.round(y * devicePixelRatio), 1, 1).data].slice(0, 3).join())`;
/** A colour of the style sheet as "r,g,b". */
const COLOR = `((name) => {
  const probe = document.body.appendChild(document.createElement("i")), c = document.createElement("canvas").getContext("2d");
  probe.style.color = "var(--" + name + ")";
  c.fillStyle = getComputedStyle(probe).color;
  probe.remove();
  c.fillRect(0, 0, 1, 1);
  return [...c.getImageData(0, 0, 1, 1).data].slice(0, 3).join();
})`;

/** Candles of the page that the API has, closed ones alone: the newest changes between two requests. */
async function compareWithApi(world, page, symbol, interval) {
  const model = await page.run(MODEL);
  const api = await world.json(
    `/api/ecosystem/chart?symbol=${symbol}&interval=${interval}&from=${model[0][0]}&to=${model[model.length - 1][0]}&decimals=string`,
  );
  same(model.slice(0, -2), api.slice(0, model.length - 2), `candles of ${symbol} ${interval}`);
  expect(model.length > 100, `only ${model.length} candles`);
  return model;
}

async function middle(page) {
  const [left, top, width, height] = await page.run(
    `(() => { const r = document.getElementById("canvas").getBoundingClientRect(); return [r.x, r.y, r.width, r.height]; })()`,
  );
  return { left, top, width, height, x: left + width / 2, y: top + height / 2 };
}

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
          .replace("body {\n  display: grid;", "body {"),
    ],
    async run(world, open) {
      const times = [];
      // A busy machine takes its time for other things: one good paint shows what the page needs.
      while (times.length < MOST_PAINTS && !(Math.min(...times) < FIRST_PAINT_MS)) {
        const page = await open();
        times.push(await page.until(`performance.getEntriesByName("first-contentful-paint")[0]?.startTime`));
        await page.close();
      }
      expect(Math.min(...times) < FIRST_PAINT_MS, `first paint after ${times.map(Math.round)} ms`);
      return `after ${times.map(Math.round).join(", ")} ms`;
    },
  },
  {
    name: "every quote is in the table with the digits that were sent",
    breaks: [
      "table.js",
      (text) =>
        text.replace(
          "if (age > MARK_MS) return put(row.last, quote.last)",
          "return put(row.last, String(Number(quote.last)))",
        ),
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
    breaks: ["feed.js", (text) => text.replace('"quote", "candle"', '"candle"')],
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
      const held = await page.run(`(app.feed.on.gone(${gone}), app.table.quotes.has("ETH/USDT"))`);
      same(held, false, "it is forgotten");
      await page.until(`app.table.order.length === 6`, 5000, "its next quote brings it back");
    },
  },
  {
    name: "search, category and sort",
    breaks: ["table.js", (text) => text.replace("includes(wanted)) continue", "includes(wanted)) {}")],
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
      await page.run(`document.getElementById("category").focus()`);
      await page.until(`document.getElementById("category").options.length > 1`);
      await page.run(
        `(() => { const c = document.getElementById("category"); c.value = "oddities"; c.dispatchEvent(new Event("change")); })()`,
      );
      await page.until(`app.table.order.length === 2`, 3000, "the category's markets");
    },
  },
  {
    name: "small charts are those of the API",
    breaks: ["spark.js", (text) => text.replace("Number(row[4])", "Number(row[1])")],
    async run(world, open) {
      const page = await open();
      const points = await page.until(
        `(app.table.sparks.of("ETH/USDT") ?? []).length > 20 && app.table.sparks.of("ETH/USDT")`,
      );
      const api = await world.json("/api/ecosystem/chart?symbol=ETH/USDT&interval=1h&limit=24");
      same(
        points.slice(0, -1),
        api.slice(-points.length, -1).map((row) => [row[0] / 3_600_000, row[4]]),
        "points",
      );
      const inked = await page.run(
        `(() => { const c = document.querySelector('tr[data-symbol="ETH/USDT"] canvas'); return c.getContext("2d").getImageData(0, 0, c.width, c.height).data.filter((v, i) => i % 4 === 3 && v > 0).length; })()`,
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
      (text) => text.replace("if (this.loading || this.stuck || this.oldest === null) return;", "return;"),
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
      (text) => text.replace("go(this.symbol, interval)", "go(this.symbol, this.interval)"),
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
      await page.until(`app.panel.interval === "5m" && ${SHOWN}`);
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
    breaks: ["series.js", (text) => text.replace("    this.keep([row]);\n", "")],
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
      await page.run(`document.getElementById("scroller").focus()`);
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
        `document.querySelectorAll("#sources article").length === 1 && document.querySelectorAll(".group").length === 4`,
      );
      const shown = await page.run(
        `Object.fromEntries([...document.querySelectorAll("#sources dl div")].map((d) => [d.firstChild.textContent, d.lastChild.textContent]))`,
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
    breaks: ["table.js", (text) => text.replace('row.tr.classList.toggle("stale", quote.stale)', "0")],
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
        `/backoff|down/.test(document.querySelector("#sources article")?.dataset.state) && document.querySelector("#sources .error")?.textContent.length > 20`,
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
    breaks: ["feed.js", (text) => text.replace("this.timer = setTimeout(() => this.open(), wait);", "")],
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
      "feed.js",
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
      const fits = `innerWidth === 360 && document.documentElement.scrollWidth <= 360 && [...document.querySelectorAll("main, .bar, .tools, #quotes, .head, #stage, #service")].every((e) => !e.offsetParent || e.getBoundingClientRect().right <= 360.5)`;
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
      await page.until(`document.querySelectorAll("#sources article").length === 1`);
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
      await page.until(`document.querySelectorAll("#sources article").length === 1`);
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
];
