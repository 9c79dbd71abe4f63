// Values that the browser keeps for the next visit. If it cannot store them, they last until the page is
// closed.

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
