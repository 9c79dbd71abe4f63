// What a person can choose on the page: lists, favourites, how a chart is drawn and how much time it shows.
// Each check has its break, as in checks.mjs.

import { COLOR, expect, middle, PIXEL, same, SHOWN } from "./looks.mjs";
import { sleep } from "./world.mjs";

const FRAMES = `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))`;
const CHOICE = (name) => `[data-choice="${name}"]`;
/** How many pixels of the plot have a colour. */
const INKED = (name) => `(() => {
  const { context, now } = app.panel.chart, wanted = ${COLOR}("${name}").split(",").map(Number);
  const { data } = context.getImageData(0, 24, Math.floor(now.plot.width), Math.floor(now.plot.height * 0.8));
  let found = 0;
  for (let i = 0; i < data.length; i += 4) if (wanted.every((v, j) => Math.abs(data[i + j] - v) < 40)) found++;
  return found;
})()`;

export const CHOICES = [
  {
    name: "lists of gainers, losers, and favourites that stay",
    breaks: ["views.js", (text) => text.replace('keep("favourites", [...this.favourites]);', "")],
    async run(world, open) {
      const page = await open();
      await page.until(`app.table.order.length === 6`);
      for (const [show, sign] of [
        ["gainers", 1],
        ["losers", -1],
      ]) {
        await page.click(`#views [data-show="${show}"]`);
        const changes = await page.run(
          `app.table.order.map((symbol) => Number(app.table.quotes.get(symbol).percentage) * ${sign})`,
        );
        expect(
          changes.every((change, i) => change > 0 && !(i && change > changes[i - 1] + 0.05)),
          `${show}: ${changes}`,
        );
        expect((await page.run(`location.hash`)).includes(`show=${show}`), "in the address");
      }
      await page.click(`#views [data-show="all"]`);
      await page.click(`tr[data-symbol="SOL/USDT"] .star`);
      await page.run(`document.getElementById("quotes").focus()`);
      await page.run(`app.table.choose("GAP/USDT")`);
      await page.key("*", "Digit8", "*");
      await page.click(`#views [data-show="favourites"]`);
      same(await page.run(`app.table.order.toSorted()`), ["GAP/USDT", "SOL/USDT"], "favourites");
      await page.send("Page.reload");
      await sleep(300);
      await page.until(
        `app.table.order.length === 2 && app.table.views.favourites.size === 2`,
        5000,
        "they stay",
      );
    },
  },
  {
    name: "a tab for each large quote asset",
    mayFail: true,
    breaks: ["views.js", (text) => text.replace("show === quote.toLowerCase()", "true")],
    async run(world, open) {
      const page = await open();
      await page.until(`app.table.order.length === 6`);
      await page.run(`(app.feed.say = () => {}, 0)`);
      const quote = (symbol) =>
        `{ ...app.table.quotes.get("ETH/USDT"), symbol: "${symbol}/EUR", base: "${symbol}", quote: "EUR" }`;
      await page.run(`([${quote("BTC")}, ${quote("ETH")}].forEach((q) => app.feed.on.quote(q)), 0)`);
      await page.run(
        `app.table.views.know([["eur", "EUR", 2], ["usdt", "USDT", 6]].map(([id, name, marketCount]) => ({ id, name, marketCount })), app.table.quotes.values())`,
      );
      same(
        await page.run(`[...document.querySelectorAll("#views button")].slice(4).map((b) => b.textContent)`),
        ["USDT", "EUR"],
        "tabs",
      );
      await page.click(`#views [data-show="eur"]`);
      same(await page.run(`app.table.order.toSorted()`), ["BTC/EUR", "ETH/EUR"], "markets in EUR");
    },
  },
  {
    name: "a category that failed is loaded again, another tab's favourites stay, and a strange sort does no harm",
    mayFail: true,
    breaks: ["app.js", (text) => text.replace("views.load();", "")],
    async run(world, open) {
      const page = await open("#/?sort=a%0Ab");
      await page.until(`app.table.order.length === 6 && app.table.views.tabs.length > 4`);
      // The browser keeps the list that it has for a second.
      await sleep(1100);
      world.options.refuse = (target) => target.includes("/oddities/markets");
      await page.click(`#views [data-show="oddities"]`);
      await page.until(`/could not/.test(document.getElementById("empty").textContent)`, 5000, "it says so");
      world.options.refuse = undefined;
      await page.until(`app.table.order.length === 2`, 15_000, "the markets of the category");
      await page.run(`(localStorage.setItem("marketd-favourites", '["ETH/USDT"]'), 0)`);
      await page.run(`(app.table.star("TINY/USDT"), 0)`);
      same(
        await page.run(`JSON.parse(localStorage.getItem("marketd-favourites"))`),
        ["ETH/USDT", "TINY/USDT"],
        "favourites",
      );
    },
  },
  {
    name: "the address says what is chosen, and a link shows the same",
    breaks: ["links.js", (text) => text.replaceAll("${query()}", "")],
    async run(world, open) {
      const page = await open("#/ETH-USDT/1h");
      await page.until(SHOWN);
      await page.click(`th[data-key="last"] button`);
      for (const choice of ["scale:log", "style:line", "averages:on"]) await page.click(CHOICE(choice));
      await page.run(`document.getElementById("search").focus()`);
      await page.type("t");
      const { hash } = await page.until(`location.hash.includes("search=t") && ({ hash: location.hash })`);
      const other = await open(hash);
      await other.until(`${SHOWN} && app.table.order.length > 0`);
      const pressed = `[...document.querySelectorAll("[data-choice]")].filter((b) => b.ariaPressed === "true").map((b) => b.dataset.choice)`;
      same(await other.run(pressed), ["style:line", "averages:on", "scale:log"], "buttons");
      same(await other.run(`app.table.sort`), { key: "last", descending: true }, "sort");
      same(await other.run(`document.getElementById("search").value`), "t", "search");
      same(await other.run(`app.panel.symbol`), "ETH/USDT", "market");
      same(await other.run(`location.hash`), hash, "address");
      const row = await other.run(
        `document.querySelector('tr[data-symbol="BTC/USDT"] a').getAttribute("href")`,
      );
      same(row, hash.replace("ETH-", "BTC-"), "a row's link");
    },
  },
  {
    name: "prices of a market have the same decimal places, by zeros that are no part of the text",
    breaks: ["digits.js", (text) => text.replace('"0".repeat(lacks)', '""')],
    async run(world, open) {
      const page = await open("#/BTC-USDT/1h");
      await page.until(`${SHOWN} && app.table.rows.size === 6`);
      await page.run(`(app.feed.say = app.feed.take = () => {}, 0)`);
      await page.run(
        `app.feed.on.quote({ ...app.table.quotes.get("BTC/USDT"), last: "64000.5", bid: "64000.25", ask: "64001", receivedAt: Date.now() + 5000 })`,
      );
      await page.run(FRAMES);
      for (const place of ["tr[data-symbol='BTC/USDT'] .last", "#last"]) {
        const seen = await page.run(
          `(() => { const e = document.querySelector("${place}"); return [e.textContent, getComputedStyle(e, "::after").content]; })()`,
        );
        same(seen, ["64000.5", '"0"'], place);
      }
      same(await page.run(`[...document.querySelectorAll("#facts dd")][1].dataset.zeros`), ".00", "the ask");
    },
  },
  {
    name: "a line, averages, and the highest and lowest mark",
    breaks: ["draw.js", (text) => text.replace("if (view.hasAverages)", "if (false)")],
    async run(world, open) {
      const page = await open("#/BTC-USDT/1h");
      await page.until(SHOWN);
      await page.run(FRAMES);
      const before = [await page.run(INKED("up")), await page.run(INKED("warn"))];
      await page.click(CHOICE("averages:on"));
      await page.run(FRAMES);
      expect((await page.run(INKED("warn"))) > before[1] + 200, "the average of 50 closes");
      await page.click(CHOICE("style:line"));
      await page.run(FRAMES);
      expect((await page.run(INKED("up"))) < before[0] / 3, "no candles behind the line");
      const marks = await page.run(`(() => {
        const { context } = app.panel.chart, said = [], write = context.fillText;
        context.fillText = function (text, ...place) { said.push(String(text)); write.call(this, text, ...place); };
        app.panel.chart.render();
        delete context.fillText;
        const { highest, lowest } = app.panel.chart.range;
        return [[highest.text[1], lowest.text[2]], said.filter((text) => /[←→]/.test(text))];
      })()`);
      marks[0].forEach((price, i) => expect(marks[1][i].includes(price), `${price} in ${marks[1]}`));
    },
  },
  {
    name: "a logarithmic axis, and a drag on the price axis",
    breaks: ["draw.js", (text) => text.replace("Math.log(price) : price", "price : price")],
    async run(world, open) {
      const page = await open("#/BTC-USDT/1d");
      await page.until(SHOWN);
      await page.click(CHOICE("scale:log"));
      await page.run(FRAMES);
      const even = await page.run(
        `(() => { const g = app.panel.chart.now; return [g.y(50000) - g.y(55000), g.y(60000) - g.y(66000), g.price(g.y(61234.5))]; })()`,
      );
      expect(
        Math.abs(even[0] - even[1]) < 1e-6 * Math.abs(even[0]),
        `the same factor, the same distance: ${even}`,
      );
      expect(Math.abs(even[2] - 61234.5) < 1e-6, "there and back");
      const scale = await page.run(`app.panel.chart.now.scale`);
      const { left, width, y } = await middle(page);
      await page.drag([left + width - 20, y], [left + width - 20, y + 120]);
      await page.run(FRAMES);
      expect(
        (await page.run(`app.panel.chart.now.scale`)) < scale * 0.7,
        "the drag presses the prices together",
      );
      same(await page.run(`app.panel.chart.following`), true, "and moves no time");
    },
  },
  {
    name: "ranges, and a date to go to",
    breaks: ["series.js", (text) => text.replace("if (slot < span.from) return", "if (false) return")],
    async run(world, open) {
      const page = await open("#/BTC-USDT/1h");
      await page.until(SHOWN);
      const width = `app.panel.chart.now.plot.width / app.panel.chart.step`;
      for (const [name, interval, slots] of [
        ["1D", "5m", 288],
        ["1W", "1h", 168],
        ["1M", "4h", 180],
        ["1Y", "1d", 365],
      ]) {
        await page.run(
          `[...document.querySelectorAll("#ranges button")].find((b) => b.textContent === "${name}").click()`,
        );
        await page.until(`app.panel.interval === "${interval}" && ${SHOWN}`);
        await page.until(`Math.abs(${width} - ${slots} - 4) < 3`, 3000, `${name} shows ${slots} slots`);
      }
      await page.run(`[...document.querySelectorAll("#ranges button")].at(-1).click()`);
      await page.until(
        `app.panel.interval === "1w" && ${SHOWN} && (app.panel.chart.now.first <= Math.min(...app.panel.series.candles.keys()) || app.panel.chart.step === 0.5)`,
        10_000,
        "all weeks",
      );
      await page.click(`#intervals [data-interval="1h"]`);
      await page.until(`app.panel.interval === "1h" && ${SHOWN}`);
      const day = new Date(Date.now() - 300 * 86_400_000).toISOString().slice(0, 10);
      await page.run(
        `(() => { const day = document.getElementById("day"); day.value = "${day}"; day.dispatchEvent(new Event("change")); })()`,
      );
      const slot = Date.parse(day) / 3_600_000;
      await page.until(`app.panel.series.kind(${slot}) === "candle"`, 8000, "the candles of that day");
      const g = await page.run(`[app.panel.chart.now.first, app.panel.chart.now.last]`);
      expect(g[0] < slot && slot < g[1], `${slot} in ${g}`);
      same(
        await page.run(`app.panel.series.kind(${slot} + 2000)`),
        "before",
        "what lies between is not claimed",
      );
      expect(
        /between not loaded/.test(await page.run(`document.getElementById("known").textContent`)),
        "and said",
      );
    },
  },
  {
    name: "local time or UTC, and the time to the close",
    breaks: ["time.js", (text) => text.replace("ms - new Date(ms).getTimezoneOffset() * 60_000", "ms")],
    async run(world, open) {
      const page = await open("#/BTC-USDT/1h");
      await page.send("Emulation.setTimezoneOverride", { timezoneId: "Asia/Kolkata" });
      await page.until(SHOWN);
      await page.until(
        `/^\\d\\d:\\d\\d$/.test(document.getElementById("closes").textContent) && !document.getElementById("closes").hidden`,
      );
      const [minutes, seconds] = (await page.run(`document.getElementById("closes").textContent`)).split(":");
      const left = 3600 - ((Date.now() / 1000) % 3600);
      expect(Math.abs(Number(minutes) * 60 + Number(seconds) - left) < 4, `${minutes}:${seconds}, ${left} s`);
      const { x, y } = await middle(page);
      await page.mouse("mouseMoved", [x, y]);
      const time = `document.querySelector("#values time").textContent`;
      await page.until(`/:00$/.test(${time})`, 2000, "full hours in UTC");
      await page.click(CHOICE("zone:local"));
      await page.mouse("mouseMoved", [x + 1, y]);
      await page.until(`/:30$/.test(${time})`, 2000, "half hours in India");
      expect(
        /local time/.test(await page.run(`document.getElementById("facts").textContent`)) ||
          (await page.until(`/local time/.test(document.getElementById("facts").textContent)`)),
        "the zone is named",
      );
    },
  },
  {
    name: "what is seen as a file, and a full screen",
    breaks: [
      "tools.js",
      (text) =>
        text.replace("...candle.text]", "candle.open, candle.high, candle.low, candle.close, candle.volume]"),
    ],
    async run(world, open) {
      const page = await open("#/TINY-USDT/1h");
      await page.until(SHOWN);
      const lines = (await page.run(`app.tools.csv`)).trim().split("\n");
      same(lines[0], "time,open,high,low,close,volume", "head");
      const times = lines.slice(1).map((line) => Date.parse(line.split(",")[0]));
      const api = await world.json(
        `/api/ecosystem/chart?symbol=TINY/USDT&interval=1h&from=${times[0]}&to=${times.at(-2)}&decimals=string`,
      );
      same(
        lines.slice(1, -1),
        api.map(([time, ...texts]) => [new Date(time).toISOString(), ...texts].join()),
        "rows",
      );
      await page.run(
        `(globalThis.saved = [], HTMLAnchorElement.prototype.click = function () { saved.push(this.download, this.href); }, 0)`,
      );
      await page.click("#csv");
      const saved = await page.run(`globalThis.saved`);
      expect(saved[0] === "TINY-USDT-1h.csv" && saved[1].startsWith("blob:"), saved.join());
      await page.click("#full");
      await page.until(`document.fullscreenElement?.id === "panel"`, 3000, "the chart fills the screen");
      await page.click("#full");
      await page.until(`!document.fullscreenElement`, 3000, "and leaves it");
    },
  },
  {
    name: "sources side by side, streams, and links for programs",
    breaks: ["service.js", (text) => text.replace('minute("bytesReceived")', "[]")],
    async run(world, open) {
      const page = await open("#service");
      const cell = (name) =>
        `[...document.querySelectorAll("#sources tbody tr")].find((tr) => tr.firstChild.textContent === "${name}")?.children[1]?.textContent`;
      await page.until(`/KiB|MiB/.test(${cell("Received a minute")})`, 8000, "bytes a minute");
      await page.until(`Number(${cell("Polls a minute")}) > 10`, 5000, "polls a minute");
      same(await page.run(cell("Failing now")), "nothing", "failing");
      expect(/Streams/.test(await page.run(`document.getElementById("figures").textContent`)), "streams");
      const links = await page.run(
        `[...document.querySelectorAll("#service-view .links a")].map((a) => a.href)`,
      );
      for (const link of links) {
        const response = await fetch(link);
        same([link, response.status], [link, 200], "link");
      }
      same(links.length, 5, "links");
    },
  },
];
