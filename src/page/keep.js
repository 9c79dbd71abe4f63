// What the browser keeps for the next visit. Where it keeps nothing, it holds until the page is closed.

export function keep(key, value) {
	try {
		localStorage.setItem(`marketd-${key}`, JSON.stringify(value));
	} catch {
		/* There is no storage, or no room. */
	}
}

export function kept(key) {
	try {
		return JSON.parse(localStorage.getItem(`marketd-${key}`));
	} catch {
		return null;
	}
}
