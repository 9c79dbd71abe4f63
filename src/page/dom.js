// Makes elements, and waits for the next frame.

/** An element with attributes, and children that are elements or texts. */
export function make(name, attributes = {}, ...children) {
	const made = document.createElement(name);
	for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
	made.append(...children);
	return made;
}

export function button(attributes, text, click) {
	const made = make("button", attributes, text);
	made.onclick = click;
	return made;
}

/** Wraps a function so that it runs once a frame, however often it is called. */
export function inFrame(work) {
	let frame = null;
	return () =>
		(frame ??= requestAnimationFrame(() => {
			frame = null;
			work();
		}));
}
