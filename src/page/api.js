// Requests to marketd. Every address is relative, so that the page works at any base path.

const TIMEOUT_MS = 15_000;

/** Builds a relative address. */
export function address(path, query) {
	const pairs = Object.entries(query).filter(([, value]) => value != null);
	return pairs.length ? `${path}?${new URLSearchParams(pairs)}` : path;
}

const failure = (message, status) => Object.assign(new Error(message), { status });

/** Gets JSON. Throws an `Error` whose message is for people; its `status` is 0 without a response. */
export async function get(path, query = {}) {
	let response, body;
	try {
		response = await fetch(address(path, query), { signal: AbortSignal.timeout(TIMEOUT_MS) });
		body = await response.json();
	} catch {
		const status = response?.status ?? 0;
		throw failure(status ? `marketd sent no JSON (status ${status})` : "marketd does not respond", status);
	}
	const { ok, status } = response;
	if (!ok && path !== "health") throw failure(body.message || `status ${status}`, status);
	return { body, headers: response.headers };
}
