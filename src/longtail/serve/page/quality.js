// Quality: what held-out documents showed when the model was fitted, and the precision to abstain at.

import { byId, count, el, number, percent, svg, visible, warn } from "./dom.js";
import { findThreshold, request, setPrecision, state } from "./api.js";
import { describePrecision, eachSwitch } from "./precision.js";

const W = 420, H = 250, L = 44, B = 36;
const view = byId("view-quality");
const x = (value) => L + value * (W - L - 26);
const y = (value, low = 0) => H - B - (value - low) / (1 - low) * (H - B - 26);

/** Return a chart of shares; `low` is the share at its bottom. */
function chart(title, xName, yName, xTick, low, ...content) {
  const ticks = [0, 0.25, 0.5, 0.75, 1];
  return svg("svg", { class: "chart", viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": title },
    ...ticks.flatMap((t) => [
      svg("line", { class: "axis", x1: x(0), x2: x(1), y1: y(t), y2: y(t) }),
      svg("text", { x: L - 6, y: y(t) + 4, "text-anchor": "end" }, percent(low + t * (1 - low))),
      ...(xName ? [svg("text", { x: x(t), y: H - B + 14, "text-anchor": { 0: "start", 1: "end" }[t] ?? "middle" }, xTick(t))] : [])]),
    svg("text", { x: x(0.5), y: H - 6, "text-anchor": "middle" }, xName), svg("text", { x: 4, y: 11 }, yName), ...content);
}

const path = (points, low = 0) => points.map(([a, b], i) => `${i ? "L" : "M"}${x(a).toFixed(1)} ${y(b, low).toFixed(1)}`).join("");

function table(caption, names, entries) {
  return el("details", {}, el("summary", {}, caption), el("table", {},
    el("thead", {}, el("tr", {}, ...names.map((name) => el("th", { scope: "col", class: "number" }, name)))),
    el("tbody", {}, ...entries.map((cells) => el("tr", {}, ...cells.map((cell) => el("td", { class: "number" }, cell)))))));
}

const isSets = () => Boolean(state.model?.multilabel);
const bandMeasure = () => isSets() ? "recall in the first five" : "accuracy";
const byFrequency = () => `${isSets() ? "Recall in the first five" : "Accuracy"} by class frequency`;
const spread = (entry) => `${percent(entry.low)} to ${percent(entry.high)}`;

function frequency(bands) {
  const known = bands.filter((band) => band.value !== null);
  const step = 1 / Math.max(1, known.length), middle = (i) => x((i + 0.5) * step);
  return chart(`${byFrequency()}: ${known.map((b) => `${b.band} documents ${percent(b.value)}, ${spread(b)}`).join("; ")}`, "", bandMeasure(), null, 0,
    ...known.flatMap((band, i) => [
      svg("rect", { x: x(i * step) + 6, width: x(step) - x(0) - 12, y: y(band.value), height: y(0) - y(band.value), rx: 3 }),
      svg("line", { class: "spread", x1: middle(i), x2: middle(i), y1: y(band.low), y2: y(band.high) }),
      svg("text", { x: middle(i), y: y(band.high) - 4, "text-anchor": "middle" }, percent(band.value)),
      svg("text", { x: x((i + 0.5) * step), y: H - B + 14, "text-anchor": "middle" }, band.band)]),
    svg("text", { x: x(0.5), y: H - 6, "text-anchor": "middle" }, "documents of the class"));
}

const figure = (name, value, between) => el("div", {}, el("dt", {}, name), el("dd", {}, value), between ? el("dd", { class: "quiet" }, between) : "");
const FIRST = ["accuracy", "macro_f1", "top_5", "mean_f1", "P@1", "P@5", "calibration_error", "label_calibration_error"];

/** The measures that matter most as tiles, all of them as a table. */
function figures(q) {
  const isError = (f) => f.measure.endsWith("calibration_error");
  const written = (f) => isError(f) ? f.value.toFixed(3) : percent(f.value);
  const between = (f) => f.low === null ? "" : isError(f) ? `${f.low.toFixed(3)} to ${f.high.toFixed(3)} (90 %)` : spread(f);
  return el("div", {},
    el("dl", { class: "figures" }, ...q.figures.filter((f) => FIRST.includes(f.measure)).map((f) => figure(f.name, written(f), between(f)))),
    table("Every measure", ["measure", "value", "95 % interval"], q.figures.map((f) => [f.name, written(f), between(f)])));
}

/** The curve of precision against coverage, with the point that the slider chooses. */
function operatingPoint({ curve }) {
  const most = Math.max(1, ...curve.map((point) => point.coverage)); // labels a document may be more than 1
  const several = isSets();
  // What is worth looking at is far above 0: the axis begins at a multiple of 20 % below the curve.
  const low = Math.min(0.8, Math.floor(5 * Math.min(...curve.map((point) => point.precision), 1)) / 5);
  const marker = svg("circle", { class: "dot", r: 6 });
  const verdict = el("p", { id: "operating-point", role: "status" });
  const slider = el("input", { id: "precision", type: "range", min: 50, max: 99, step: 1, value: Math.round(100 * state.precision) });
  const chosen = el("output", { for: "precision" });
  const which = eachSwitch("precision-of", (each) => { setPrecision(state.precision, each); update(); });
  let asked = 0;
  const update = async () => {
    const precision = slider.value / 100, { each } = state, turn = ++asked;
    which.set(precision, each);
    chosen.textContent = percent(precision);
    slider.setAttribute("aria-valuetext", percent(precision));
    try {
      const found = await findThreshold(precision, each);
      if (turn !== asked) return;
      const isReached = found.threshold !== null;
      marker.setAttribute("cx", x(isReached ? found.coverage / most : 0));
      marker.setAttribute("cy", y(isReached ? Math.max(low, found.expected_precision) : 1, low));
      const covered = several ? `gives ${found.coverage.toFixed(2)} labels a text` : `decides ${percent(found.coverage)} of the texts`;
      verdict.textContent = isReached
        ? `With ${describePrecision(precision, each)}, the model ${covered}, those from ${percent(found.threshold)} probability on; ${percent(found.expected_precision)} of them were right. It abstains from the rest.`
        : `${percent(precision)} cannot be reached; the model would abstain from everything.`;
    } catch (error) { warn(error.message); }
  };
  slider.addEventListener("input", () => { setPrecision(slider.value / 100); update(); });
  update();
  const xTick = several ? (t) => (t * most).toFixed(1) : percent;
  return el("div", { class: "card" }, el("h2", {}, "Precision against coverage"),
    chart("Precision against coverage", several ? "labels a document" : "coverage", "precision", xTick, low, svg("path", { class: "line", d: path(curve.map((p) => [p.coverage / most, p.precision]), low) }), marker),
    el("label", { for: "precision", class: "row" }, el("span", {}, "Precision to abstain at"), chosen), slider, which.root, verdict,
    el("p", { class: "quiet" }, "On average, certain answers make up for less certain ones; none below half the precision is kept, nor one where none of these is likelier. Try and Queue use what you choose; this browser remembers it."),
    table("Figures of the curve", ["threshold", "precision", several ? "labels a document" : "coverage"], curve.filter((_, i) => i % 20 === 0).map((p) => [percent(p.threshold), percent(p.precision), several ? p.coverage.toFixed(2) : percent(p.coverage)])));
}

function calibration({ bins }) {
  return el("div", { class: "card" }, el("h2", {}, "Calibration"),
    chart("Calibration: promised against measured precision", "promised", "measured", percent, 0,
      svg("line", { class: "ideal", x1: x(0), y1: y(0), x2: x(1), y2: y(1) }),
      svg("path", { class: "line", d: path(bins.map((b) => [b.promised, b.measured])) }),
      ...bins.map((b) => svg("circle", { class: "dot", r: 4, cx: x(b.promised), cy: y(b.measured) }))),
    el("p", { class: "quiet" }, "On the dashed line a promise is kept. Of the best candidates, cross-validated."),
    table("Figures of the bins", ["promised", "measured", "documents"], bins.map((b) => [percent(b.promised), percent(b.measured), number(b.n_documents)])));
}

/** How far the model has moved since it was fitted, and what its owner should do. */
function healthCard({ health }) {
  if (!health) return "";
  return el("div", { class: "card", id: "health" }, el("h2", {}, "Since it was fitted"),
    el("dl", { class: "figures" },
      figure(`${health.n_labels === health.n_documents ? "documents" : "labels"} since the last refine`, number(health.n_unrefined)), figure("classes that changed", number(health.n_stale)),
      health.unseen_terms === null ? "" : figure("terms without a learned weight", percent(health.unseen_terms)),
      health.accuracy === null ? "" : figure(`right of the last ${number(health.n_outcomes)} outcomes`, percent(health.accuracy)),
      health.abstention === null ? "" : figure("of these below the threshold of 90 %", percent(health.abstention))),
    health.advice.length ? el("ul", {}, ...health.advice.map((sentence) => el("li", {}, visible(sentence)))) : el("p", { class: "quiet" }, "Nothing needs to be done."));
}

const ASKED = [["abstained", "abstained at 90 %"], ["mean_probability", "mean probability"], ["without_known_word", "without a known word"], ["unknown_words", "unknown words"]];

/** What was asked hour by hour: how certain the model was, and how much of it was unknown. */
function askedCard({ hours }) {
  if (!hours.length) return "";
  const first = hours[0].start, last = hours.at(-1).start, total = hours.reduce((sum, hour) => sum + hour.n_documents, 0);
  const place = (hour) => (last > first ? (hour.start - first) / (last - first) : 0.5);
  const when = (seconds) => new Date(1000 * seconds).toLocaleString("en", { weekday: "short", hour: "2-digit", minute: "2-digit" });
  const drawn = ASKED.flatMap(([key], i) => {
    const points = hours.filter((hour) => hour[key] !== null).map((hour) => [place(hour), hour[key]]);
    return [svg("path", { class: `line of-${i}`, d: path(points) }), ...points.map(([a, b]) => svg("circle", { class: `dot of-${i}`, r: 3, cx: x(a), cy: y(b) }))];
  });
  return el("div", { class: "card", id: "asked" }, el("h2", {}, "What it was asked"),
    chart("What it was asked, by hour", "hour", "share", (t) => (last === first ? (t === 0.5 ? when(first) : "") : t === 0 || t === 1 ? when(t ? last : first) : ""), 0, ...drawn),
    el("p", { class: "legend" }, ...ASKED.flatMap(([, name], i) => [el("span", { class: "number" }, el("span", { class: `swatch of-${i}`, "aria-hidden": "true" }), name), " "])),
    el("p", { class: "quiet" }, `${count(total, "document")} in the last week, since this service was started. Unknown words are counted in one document of 16.`),
    table("Figures by hour", ["from", "documents", ...ASKED.map(([, name]) => name)], hours.map((hour) => [when(hour.start), number(hour.n_documents), ...ASKED.map(([key]) => percent(hour[key]))])));
}

export async function openQuality() {
  let q;
  if (!view.childElementCount) view.append(el("p", { class: "quiet" }, "Reading what held-out documents showed …"));
  try { q = await request("GET", "/v1/quality"); } catch (error) { view.replaceChildren(); warn(error.message); return; }
  if (!q.n_held_out) { view.replaceChildren(el("p", {}, "No documents were held out when this model was fitted."), healthCard(q), askedCard(q)); return; }
  view.replaceChildren(
    el("p", { class: "quiet" }, `What ${count(q.n_held_out, "document")} showed that were held out when the model was fitted. What was taught since is not in it.`),
    figures(q),
    el("div", { class: "columns" }, el("div", {}, operatingPoint(q), healthCard(q), askedCard(q)),
      el("div", {}, calibration(q), el("div", { class: "card" }, el("h2", {}, byFrequency()), frequency(q.by_frequency), el("p", { class: "quiet" }, "Lines are 95 % intervals.")))));
}
