// How a check looks at the page, and what it compares.

export function expect(holds, what) {
  if (!holds) throw new Error(what);
}
export function same(is, wanted, what) {
  const [a, b] = [JSON.stringify(is), JSON.stringify(wanted)];
  expect(a === b, `${what}: ${String(a).slice(0, 300)}, expected ${String(b).slice(0, 300)}`);
}

export const LAST = (symbol) => `document.querySelector('tr[data-symbol="${symbol}"] .last')?.textContent`;
export const SHOWN = "app.panel.series?.newest != null && !app.panel.series.loading";

/** The loaded candles of the page's model, as the API sends them. */
const MODEL = `[...app.panel.series.candles.values()].sort((a, b) => a.slot - b.slot).map((c) => [c.time, ...c.text])`;

/** A pixel's colour as "r,g,b". */
export const PIXEL = `((x, y) => [...app.panel.chart.context.getImageData(Math.round(x * devicePixelRatio), Math.round(y * devicePixelRatio), 1, 1).data].slice(0, 3).join())`;
/** A colour of the style sheet as "r,g,b". */
export const COLOR = `((name) => {
  const probe = document.body.appendChild(document.createElement("i")), c = document.createElement("canvas").getContext("2d");
  probe.style.color = "var(--" + name + ")";
  c.fillStyle = getComputedStyle(probe).color;
  probe.remove();
  c.fillRect(0, 0, 1, 1);
  return [...c.getImageData(0, 0, 1, 1).data].slice(0, 3).join();
})`;

/** Candles of the page that the API has, closed ones alone: the newest changes between two requests. */
export async function compareWithApi(world, page, symbol, interval) {
  const model = await page.run(MODEL);
  const api = await world.json(
    `/api/ecosystem/chart?symbol=${symbol}&interval=${interval}&from=${model[0][0]}&to=${model[model.length - 1][0]}&decimals=string`,
  );
  same(model.slice(0, -2), api.slice(0, model.length - 2), `candles of ${symbol} ${interval}`);
  expect(model.length > 100, `only ${model.length} candles`);
  return model;
}

export async function middle(page) {
  const [left, top, width, height] = await page.run(
    `(() => { const r = document.getElementById("canvas").getBoundingClientRect(); return [r.x, r.y, r.width, r.height]; })()`,
  );
  return { left, top, width, height, x: left + width / 2, y: top + height / 2 };
}
