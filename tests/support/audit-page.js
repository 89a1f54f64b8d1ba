// SPDX-License-Identifier: MIT
// What is wrong with the page that is open, as a list of sentences. Run by tests/check-report in a browser, as the
// body of a function.
const problems = [];
const width = document.documentElement.clientWidth;
const root = getComputedStyle(document.documentElement);

const name = (element) => `<${element.localName}> "${(element.textContent || '').trim().slice(0, 30)}"`;

// ---- it is what we wrote, and nothing of others ----

const known = new Set(('html head meta title style body svg bdi defs g circle path rect header h1 h2 p main ul li b dl dt dd nav a ' +
	'section div ol br text line polyline use table thead tbody tr th td code details summary pre').split(' '));
for (const element of document.querySelectorAll('*')) {
	if (!known.has(element.localName))
		problems.push(`foreign element ${name(element)}`);
	for (const attribute of element.attributes)
		if (/^(on|style$|src)/.test(attribute.name) || (attribute.name === 'href' && !attribute.value.startsWith('#')))
			problems.push(`foreign attribute ${attribute.name}="${attribute.value}" of ${name(element)}`);
}

// ---- it fits, and every text can be read ----

const numbers = (color) => (color.match(/[\d.]+/g) || []).map(Number);

function luminance(color) {
	const [r, g, b] = numbers(color).map((value) => value / 255)
		.map((value) => value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
	return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(one, other) {
	const [high, low] = [luminance(one), luminance(other)].sort((a, b) => b - a);
	return (high + 0.05) / (low + 0.05);
}

// What is behind it: a bar that has its number, or the nearest background.
function behind(element) {
	if (element.classList.contains('on'))
		return getComputedStyle(element.previousElementSibling).fill;
	for (let at = element; at; at = at.parentElement) {
		const color = getComputedStyle(at).backgroundColor;
		if (numbers(color)[3] !== 0)
			return color;
	}
	return 'rgb(255, 255, 255)';
}

const hasText = (element) => [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim() !== '');

function checkText(element) {
	const style = getComputedStyle(element), inPlot = element.localName === 'text';
	const ratio = contrast(inPlot ? style.fill : style.color, behind(element));
	if (ratio < 4.5)
		problems.push(`contrast of ${name(element)} is ${ratio.toFixed(2)}`);
	if (parseFloat(style.fontSize) < 11)
		problems.push(`${name(element)} has ${style.fontSize}`);
}

function checkPlace(element, box) {
	if (box.right > width + 0.5 || box.left < -0.5)
		problems.push(`${name(element)} is from ${box.left.toFixed(0)} to ${box.right.toFixed(0)} of ${width}`);
}

for (const element of document.body.querySelectorAll('*')) {
	const box = element.getBoundingClientRect();
	if (box.width === 0 || box.height === 0 || element.localName === 'title' || element.closest('defs'))
		continue;
	// Within a list of names it is cut off, with dots.
	if (!element.parentElement.closest('.names li'))
		checkPlace(element, box);
	if (hasText(element))
		checkText(element);
}
if (document.documentElement.scrollWidth > width)
	problems.push(`the page is ${document.documentElement.scrollWidth} wide, the window ${width}`);

// ---- plots ----

function overlap(a, b) {
	return Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
		Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3;
}

for (const plot of document.querySelectorAll('.plot > svg')) {
	const texts = [...plot.querySelectorAll('text')].map((text) => [text, text.getBoundingClientRect()]);
	if (plot.getBoundingClientRect().width < 180)
		problems.push(`a plot is ${plot.getBoundingClientRect().width} wide`);
	texts.forEach(([text, box], i) => {
		for (const [other, place] of texts.slice(i + 1))
			if (overlap(box, place))
				problems.push(`${name(text)} and ${name(other)} overlap`);
	});
}
const paper = getComputedStyle(document.body).backgroundColor;
for (const bar of document.querySelectorAll('.bar, .line')) {
	const style = getComputedStyle(bar), color = style.fill === 'none' ? style.stroke : style.fill;
	if (contrast(color, paper) < 3)
		problems.push(`contrast of a ${bar.localName} of class ${bar.getAttribute('class')} is ${contrast(color, paper)}`);
}
if (getComputedStyle(document.body).maxWidth !== '1180px')
	problems.push('the style sheet is not in force');
return {problems: [...new Set(problems)], paper: paper, sections: document.querySelectorAll('section').length};
