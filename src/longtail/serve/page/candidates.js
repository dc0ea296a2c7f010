// The classes that a text could be in, as bars with their probabilities.

import { el, nameOf, percent, spoken } from "./dom.js";
import { pathOf } from "./tree.js";

const keyOf = (label) => JSON.stringify(label);

function difference(now, before) {
  const points = Math.round(100 * (now - before));
  if (!points) return null;
  return el("span", { class: `change ${points > 0 ? "up" : "down"}` }, `${points > 0 ? "▲" : "▼"} ${Math.abs(points)}`);
}

const fill = (p) => el("span", { class: "fill", "aria-hidden": "true", style: { width: `${100 * (p ?? 0)}%` } });
const value = (entry) => el("span", { class: "number" }, entry.probability == null ? entry.score.toFixed(2) : percent(entry.probability));

/**
 * Return a list of candidates. `onChoose` is told which one was chosen; with `picked`, a Map from
 * the key of a label to its entry, each has a box to tick, of which `onPick` is told; `before` has
 * the probabilities of before a change by key, and what became of them is shown; `keys` shows the
 * number that chooses each.
 */
export function candidateList(result, { onChoose, picked = null, onPick, before = null, keys = false }) {
  const rows = result.classes.map((entry, i) => {
    const key = keyOf(entry.label);
    const row = el("button", { type: "button", class: "candidate", "data-key": key, "aria-pressed": "false", on: { click: () => onChoose(entry) } },
      fill(entry.probability), keys ? el("kbd", { "aria-hidden": "true" }, String(i + 1)) : null, el("span", { class: "placed" }, nameOf(entry), pathOf(entry.path)),
      before && entry.probability != null ? difference(entry.probability, before.get(key) ?? 0) : null, value(entry));
    if (!picked) return el("li", {}, row);
    const box = el("input", { type: "checkbox", "aria-label": `${spoken(entry)} is a label`, "data-key": key, on: { change: () => onPick(entry, box.checked) } });
    box.checked = picked.has(key);
    return el("li", { class: "tickable" }, box, row);
  });
  if (result.none != null) {
    rows.push(el("li", {}, el("div", { class: "candidate none", id: keys ? "queue-none" : "none" },
      fill(result.none), el("span", { class: "name" }, "none of these"),
      before ? difference(result.none, before.get("none") ?? 0) : null, el("span", { class: "number" }, percent(result.none)))));
  }
  if (!result.classes.length) rows.unshift(el("li", { class: "quiet" }, "The text has no known word, so no class."));
  return el("ol", { class: "candidates" }, ...rows);
}

/** Say what "none of these" is beside labels that are each as probable as they are. */
export const explainNone = () => el("p", { class: "quiet about-none" },
  "Each label has a probability of its own, so they need not add up to 100 %. “None of these” is that the text has none of the candidates, which are taken as independent.");

/** Return the probabilities of a result by key, to compare the next one with. */
export const probabilitiesOf = (result) =>
  new Map([...result.classes.map((entry) => [keyOf(entry.label), entry.probability ?? 0]), ["none", result.none ?? 0]]);

/** Return the labels of a result as a Map from key to entry, of those that are shown: what is ticked to begin with. */
export const predictedOf = ({ classes, labels }) =>
  new Map(classes.filter((entry) => labels.includes(entry.label)).map((entry) => [keyOf(entry.label), entry]));

/** Ticked classes that are not among the candidates, each with a button that drops it. */
export function chips(picked, shown, onDrop) {
  const known = new Set(shown.map((entry) => keyOf(entry.label)));
  const others = [...picked].filter(([key]) => !known.has(key));
  return others.length ? el("ul", { class: "chips", "aria-label": "Other labels" }, ...others.map(([key, entry]) => el("li", {}, nameOf(entry),
    el("button", { type: "button", "aria-label": `Drop ${spoken(entry)}`, on: { click: () => onDrop(key) } }, "×")))) : "";
}

export { keyOf };
