// Why a text gets a class: its terms marked in the text, and each part of the score beside the runner-up's.

import { el, nameOf, visible } from "./dom.js";

const LETTER = /[\p{L}\p{N}\p{M}]/u;

/** Return the text in pieces, with marks where terms stand; offsets count code points. */
function highlight(value, terms) {
  const points = Array.from(value);
  const isLetter = points.map((point) => LETTER.test(point));
  const weights = new Float64Array(points.length);
  for (const { contribution, spans } of terms) {
    for (const [start, end] of spans) for (let i = start; i < end; i++) weights[i] += contribution / (end - start);
  }
  const largest = weights.reduce((most, weight) => Math.max(most, Math.abs(weight)), 1e-9);
  // A mark is as strong as what it contributes, in three steps.
  const kind = (i) => {
    if (!isLetter[i]) return ""; // what stands between two words of a term
    const share = Math.abs(weights[i]) / largest;
    return share < 0.01 ? "" : `${weights[i] > 0 ? "for" : "against"} s${share > 0.5 ? 3 : share > 0.15 ? 2 : 1}`;
  };
  const pieces = [];
  for (let start = 0; start < points.length;) {
    const of = kind(start);
    let end = start + 1;
    while (end < points.length && kind(end) === of) end++;
    const piece = visible(points.slice(start, end).join(""));
    pieces.push(of ? el("mark", { class: of }, piece) : piece);
    start = end;
  }
  return pieces;
}

const signed = (value) => (value == null ? "" : (value >= 0 ? "+" : "−") + Math.abs(value).toFixed(2));

/** Return a table of parts: a name, bars from a common zero, and the figures of both classes, which add up to `total`. */
function parts(title, names, entries, total) {
  const values = entries.flatMap(([, ...some]) => some.map((value) => value ?? 0));
  const low = Math.min(0, ...values), high = Math.max(1e-9, ...values), range = high - low;
  const bar = (value, of) => el("span", { class: `part ${of}${value < 0 ? " against" : ""}`,
    style: { marginLeft: `${100 * (Math.min(value, 0) - low) / range}%`, width: `${100 * Math.abs(value) / range}%` } });
  return el("table", { class: "parts" },
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, title), el("td", {}), ...names.map((name, i) => el("th", { scope: "col", class: `number of-${i}` }, name)))),
    el("tbody", {}, ...entries.map(([name, ...some]) => el("tr", {},
      el("th", { scope: "row" }, el("bdi", {}, visible(name))),
      el("td", { class: "bars", "aria-hidden": "true" }, ...some.map((value, i) => bar(value ?? 0, `of-${i}`))),
      ...some.map((value) => el("td", { class: "number" }, signed(value)))))),
    el("tfoot", {}, el("tr", {}, el("th", { scope: "row" }, "score"), el("td", {}), ...total.map((value) => el("td", { class: "number" }, signed(value))))));
}

/** Return the reasons as elements: for the class that was asked for, and against the runner-up. */
export function reasons(text, { explanation: first, runner_up: second }) {
  const both = second ? [first, second] : [first];
  const names = second ? ["this", "runner-up"] : ["this"];
  const lead = second ? first.score - second.score : 0;
  const lines = (key) => first[key].map(([name], i) => [name, ...both.map((of) => of[key][i][1])]);
  const total = both.map((of) => of.score);
  return [
    el("h2", {}, "Why ", nameOf(first)),
    second ? el("p", { class: "legend" },
      el("span", { class: "swatch of-0", "aria-hidden": "true" }), `score ${first.score.toFixed(2)}, ${Math.abs(lead).toFixed(2)} ${lead >= 0 ? "ahead of" : "behind"} `,
      el("span", { class: "swatch of-1", "aria-hidden": "true" }), nameOf(second)) : "",
    el("div", { class: "text", id: "highlighted", tabindex: "0", role: "region", "aria-label": "The text with its terms marked" }, ...highlight(text, first.terms)),
    el("p", { class: "quiet" }, "Marked words speak for the class, the stronger the more; underlined ones against it."),
    parts("Terms", names, lines("term_lines"), total),
    el("details", { id: "features" }, el("summary", {}, "The same score by feature"), parts("Features", names, lines("feature_lines"), total)),
  ];
}
