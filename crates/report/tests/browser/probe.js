// Looks at every report in a frame and writes what is wrong with it into the page, as JSON.
"use strict";

const name = (element) => `${element.tagName} ${(element.textContent || "").trim().slice(0, 40)}`;

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
  // What is folded away has no place.
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

function look(frame) {
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
    // Tables and code scroll in frames of their own.
    if (place.right > page.innerWidth + 1 && !element.closest(".scroll, pre")) problems.push(`cut off: ${name(element)}`);
  }
  const headline = document.getElementById("headline")?.getBoundingClientRect();
  if (!headline || headline.height === 0 || headline.bottom > 900) problems.push("the headline is not in sight");
  for (const chart of document.querySelectorAll("svg.chart, svg.graph")) problems.push(...chartProblems(chart));
  const fetched = page.performance.getEntriesByType("resource").map((entry) => `fetched: ${entry.name}`);
  return {
    name: frame.title,
    charts: document.querySelectorAll("svg.chart").length,
    texts: document.querySelectorAll("svg.chart text").length,
    problems: problems.concat(fetched),
  };
}

addEventListener("load", () => {
  const frames = [...document.querySelectorAll("iframe")];
  for (const frame of frames) {
    frame.contentDocument.querySelectorAll("details").forEach((details) => { details.open = true; });
  }
  document.getElementById("result").textContent = JSON.stringify(frames.map(look));
});
