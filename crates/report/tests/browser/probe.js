// Looks at every report in a frame and writes what is wrong with it into the page, as JSON.
"use strict";

const name = (element) => `${element.tagName} ${(element.textContent || "").trim().slice(0, 40)}`;

// Text for screen readers alone.
const HIDDEN = ".cards thead";
const SCREEN = 800;

function beyond(inner, outer) {
  return inner.left < outer.left - 1 || inner.right > outer.right + 1
    || inner.top < outer.top - 1 || inner.bottom > outer.bottom + 1;
}

function overlap(one, other) {
  return Math.min(one.right, other.right) - Math.max(one.left, other.left) > 1
    && Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top) > 2;
}

function chartProblems(chart) {
  const area = chart.getBoundingClientRect();
  // What is not shown in this medium has no place.
  if (area.width === 0) return [];
  const texts = [...chart.querySelectorAll("text")].map((text) => [text, text.getBoundingClientRect()]);
  const problems = texts.filter(([, place]) => beyond(place, area)).map(([text]) => `outside its chart: ${name(text)}`);
  texts.forEach(([one, place], index) => {
    for (const [other, otherPlace] of texts.slice(index + 1)) {
      if (overlap(place, otherPlace)) problems.push(`overlap: ${name(one)} and ${name(other)}`);
    }
  });
  return problems;
}

// Elements whose content is wider than they are.
function clippedProblems(element, style, page) {
  if (element.clientWidth === 0 || element.scrollWidth <= element.clientWidth + 1) return [];
  const scrolls = style.overflowX === "auto" || style.overflowX === "scroll";
  if (!scrolls) return style.overflowX === "visible" ? [] : [`clipped: ${name(element)}`];
  const problems = [];
  if (!style.backgroundAttachment.includes("local")) problems.push(`scrolls without a hint: ${name(element)}`);
  if (page.innerWidth <= 420 && element.querySelector("table")) problems.push(`table scrolls: ${name(element)}`);
  return problems;
}

// Text that reaches beyond the box that it is in.
function spilledProblems(element, style) {
  if (style.overflowX === "auto" || style.overflowX === "scroll") return [];
  const box = element.getBoundingClientRect();
  const range = element.ownerDocument.createRange();
  for (const node of element.childNodes) {
    if (node.nodeType !== 3 || node.textContent.trim() === "") continue;
    range.selectNodeContents(node);
    const text = range.getBoundingClientRect();
    if (text.width > 0 && text.right > box.right + 1) return [`spilled: ${name(element)}`];
  }
  return [];
}

const channels = (colour) => colour.match(/[0-9.]+/g).map(Number);

function luminance(colour) {
  const [red, green, blue] = channels(colour).slice(0, 3).map((value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function background(element, page) {
  for (let at = element; at; at = at.parentElement) {
    const colour = page.getComputedStyle(at).backgroundColor;
    if (colour.startsWith("rgb") && (channels(colour)[3] ?? 1) === 1) return colour;
  }
  return "rgb(255, 255, 255)";
}

function contrastProblems(element, style, page) {
  const hasText = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim() !== "");
  if (!hasText) return [];
  const isDrawn = element instanceof page.SVGElement;
  if (isDrawn && element.tagName !== "text") return [];
  const [one, other] = [isDrawn ? style.fill : style.color, background(element, page)].map(luminance);
  const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
  return contrast < 4.5 ? [`contrast of ${name(element)}: ${contrast.toFixed(1)}`] : [];
}

function look(frame, screens) {
  const page = frame.contentWindow, document = frame.contentDocument;
  const problems = [];
  const width = document.documentElement.scrollWidth;
  if (width > page.innerWidth) {
    const right = (element) => element.getBoundingClientRect().right;
    const widest = [...document.body.querySelectorAll("*")].reduce((one, other) => (right(other) > right(one) ? other : one));
    problems.push(`${width} wide in a window of ${page.innerWidth}: ${name(widest)}`);
  }
  for (const element of document.body.querySelectorAll("*")) {
    const place = element.getBoundingClientRect();
    if (place.width === 0 || element.closest(HIDDEN)) continue;
    // Tables and code scroll in frames of their own.
    if (place.right > page.innerWidth + 1 && !element.closest(".scroll, pre")) problems.push(`cut off: ${name(element)}`);
    const style = page.getComputedStyle(element);
    problems.push(...contrastProblems(element, style, page));
    if (element instanceof page.SVGElement) continue;
    problems.push(...clippedProblems(element, style, page), ...spilledProblems(element, style));
  }
  const headline = document.getElementById("headline")?.getBoundingClientRect();
  if (!headline || headline.height === 0 || headline.bottom > 900) problems.push("the headline is not in sight");
  for (const chart of document.querySelectorAll("svg.chart, svg.graph")) problems.push(...chartProblems(chart));
  const fetched = page.performance.getEntriesByType("resource").map((entry) => `fetched: ${entry.name}`);
  return {
    name: frame.title,
    charts: document.querySelectorAll("svg.chart").length,
    texts: document.querySelectorAll("svg.chart text").length,
    screens,
    problems: [...new Set(problems)].slice(0, 40).concat(fetched),
  };
}

// Height before the first folded section, in screens.
function heightBeforeFold(frame) {
  const fold = frame.contentDocument.querySelector("details.fold");
  return fold ? (fold.getBoundingClientRect().top + frame.contentWindow.scrollY) / SCREEN : 0;
}

addEventListener("load", () => {
  const frames = [...document.querySelectorAll("iframe")];
  const screens = frames.map(heightBeforeFold);
  for (const frame of frames) {
    frame.contentDocument.querySelectorAll("details").forEach((details) => { details.open = true; });
  }
  document.getElementById("result").textContent = JSON.stringify(frames.map((frame, index) => look(frame, screens[index])));
});
