// Requests to marketd. Every address is relative, so that the page works at any base path.

const TIMEOUT_MS = 15_000;

/** Builds a relative address. Symbols keep their `/` and `,`, which need no escape in a query. */
export function address(path, query) {
	const pairs = Object.entries(query)
		.filter(([, value]) => value != null)
		.map(
			([key, value]) =>
				`${key}=${encodeURIComponent(value).replace(/%2F/g, "/").replace(/%2C/g, ",").replace(/%3A/g, ":")}`,
		);
	return pairs.length ? `${path}?${pairs.join("&")}` : path;
}

/** Gets JSON. Throws an `Error` whose message is for people; its `status` is 0 without a response. */
export async function get(path, query = {}) {
	let response, body;
	try {
		response = await fetch(address(path, query), { signal: AbortSignal.timeout(TIMEOUT_MS) });
		body = await response.json();
	} catch (cause) {
		const error = new Error(
			response ? `marketd sent no JSON (status ${response.status})` : "marketd does not respond",
		);
		error.status = response ? response.status : 0;
		throw error;
	}
	if (!response.ok && path !== "health") {
		const error = new Error(body.message || `status ${response.status}`);
		error.status = response.status;
		throw error;
	}
	return { body, headers: response.headers };
}
