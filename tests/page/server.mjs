// Stands in front of a running marketd, for the tests of the page:
//
//     node tests/page/server.mjs http://127.0.0.1:8080 [PORT] [BASE_PATH]
//
// Everything comes from marketd, under another base path, as behind a proxy.

import { createServer, request } from "node:http";
import { fileURLToPath } from "node:url";

/** Gets an address of marketd: `{ status, headers, text }`. */
function ask(upstream, target, headers = {}) {
  return new Promise((resolve, reject) => {
    const asked = request(new URL(target, upstream), { timeout: 5000, headers }, (response) => {
      let text = "";
      response
        .setEncoding("utf8")
        .on("data", (part) => {
          text += part;
        })
        .on("end", () => resolve({ status: response.statusCode, headers: response.headers, text }))
        .on("error", reject);
    });
    asked.on("error", reject).on("timeout", () => asked.destroy(new Error("timeout")));
    asked.end();
  });
}

/** `options.change(name, text)` may give another text or policy of a file, for checks of the checks. */
async function changed(upstream, target, incoming, outgoing, change) {
  const { accept = "*/*" } = incoming.headers;
  try {
    const { status, headers, text } = await ask(upstream, target, { accept });
    const name = target.startsWith("/page/") ? target.slice(6) : "index.html";
    const policy = headers["content-security-policy"] ?? "";
    const [body, allowed] = [change(name, text), change("policy", policy)];
    const isNew = status === 404 && body !== text;
    outgoing.writeHead(isNew ? 200 : status, {
      "Content-Type": isNew ? "text/javascript; charset=utf-8" : headers["content-type"],
      "Content-Security-Policy": allowed,
      "Cache-Control": "no-cache",
      Link: headers.link ?? [],
    });
    outgoing.end(body);
  } catch {
    refuse(outgoing, 502);
  }
}

function refuse(
  response,
  status,
  text = `{"status":${status},"code":"unavailable","message":"marketd does not respond.","param":null}`,
) {
  response.writeHead(status, { "Content-Type": "application/json", "Cache-Control": "no-store" });
  response.end(text);
}

/** Passes a request on, and the response back as it comes. */
function pass(upstream, target, incoming, outgoing) {
  const headers = { ...incoming.headers };
  delete headers.host;
  const asked = request(new URL(target, upstream), { headers }, (response) => {
    outgoing.writeHead(response.statusCode, response.headers);
    response.on("error", () => outgoing.destroy()).pipe(outgoing);
  });
  asked.on("error", () => (outgoing.headersSent ? outgoing.destroy() : refuse(outgoing, 502)));
  outgoing.on("close", () => asked.destroy());
  asked.end();
}

/** Starts the server; `requests` gets each target. */
export function serve(upstream, port = 0, base = "", requests = [], options = {}) {
  const server = createServer((incoming, outgoing) => {
    requests.push(incoming.url);
    if (incoming.method !== "GET" || !incoming.url.startsWith(`${base}/`)) return refuse(outgoing, 404);
    const target = incoming.url.slice(base.length);
    if (options.refuse?.(target)) return refuse(outgoing, 503);
    const { pathname } = new URL(target, "http://page");
    if (options.change && (pathname === "/" || (pathname.startsWith("/page/") && !pathname.endsWith(".json"))))
      return changed(upstream, target, incoming, outgoing, options.change);
    pass(upstream, target, incoming, outgoing);
  });
  return new Promise((resolve, reject) =>
    server.on("error", reject).listen(port, "127.0.0.1", () => resolve(server)),
  );
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [upstream, port = "0", base = ""] = process.argv.slice(2);
  if (!upstream) {
    console.error("usage: node tests/page/server.mjs MARKETD_ADDRESS [PORT] [BASE_PATH]");
    process.exit(2);
  }
  const server = await serve(upstream, Number(port), base);
  console.log(`http://127.0.0.1:${server.address().port}${base}/`);
}
