// Draws averages of the closes, and the highest and the lowest price, over the candles of a chart.

/** The number of closes of each average, and its colour. */
const AVERAGES = [
	[20, "accent"],
	[50, "warn"],
];
/** A quiet market has slots without a candle, so this many more slots are searched. */
const LOOK_BACK = 4;

/** Draws a line for each average of the closes, with its number at the end. */
export function drawAverages(context, series, geometry, colors) {
	for (const [length, name] of AVERAGES) {
		const closes = [];
		let sum = 0,
			end = null;
		context.strokeStyle = context.fillStyle = colors[name];
		context.beginPath();
		for (let slot = geometry.first - length * LOOK_BACK; slot <= geometry.last + 1; slot++) {
			const candle = series.candles.get(slot);
			if (!candle) continue;
			sum += candle.close;
			if (closes.push(candle.close) > length) sum -= closes.shift();
			if (closes.length < length || slot < geometry.first) continue;
			end = [geometry.x(slot), geometry.y(sum / length)];
			context.lineTo(...end);
		}
		context.stroke();
		context.textAlign = "left";
		if (end) context.fillText(length, Math.min(end[0] + 4, geometry.plot.width - 16), end[1] + 4);
	}
}

export function drawLine(context, series, geometry, color) {
	context.strokeStyle = color;
	context.lineWidth = 1.5;
	context.beginPath();
	for (let slot = geometry.first - 1; slot <= geometry.last + 1; slot++) {
		const candle = series.candles.get(slot);
		// The first of a path only moves.
		if (candle) context.lineTo(geometry.x(slot), geometry.y(candle.close));
	}
	context.stroke();
	context.lineWidth = 1;
}

/** Writes the highest and the lowest price in view, with the digits that marketd sent. */
export function drawExtremes(context, { highest, lowest }, geometry, color) {
	context.fillStyle = color;
	for (const [candle, text, y] of [
		[highest, highest.text[1], geometry.y(highest.high) - 2],
		[lowest, lowest.text[2], geometry.y(lowest.low) + 10],
	]) {
		const x = geometry.x(candle.slot),
			isLeft = x < geometry.plot.width / 2;
		context.textAlign = isLeft ? "left" : "right";
		context.fillText(isLeft ? `← ${text}` : `${text} →`, x + (isLeft ? 3 : -3), y);
	}
}
