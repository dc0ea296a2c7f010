// Quality: what held-out documents showed when the model was fitted, and the precision to abstain at.

import { byId, count, el, number, percent, svg, visible, warn } from "./dom.js";
import { findThreshold, request, setPrecision, state } from "./api.js";

const W = 420, H = 250, L = 44, B = 36;
const view = byId("view-quality");
const x = (value) => L + value * (W - L - 26);
const y = (value) => H - B - value * (H - B - 26);

function chart(title, xName, yName, xTick, ...content) {
  const ticks = [0, 0.25, 0.5, 0.75, 1];
  return svg("svg", { class: "chart", viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": title },
    ...ticks.flatMap((t) => [
      svg("line", { class: "axis", x1: x(0), x2: x(1), y1: y(t), y2: y(t) }),
      svg("text", { x: L - 6, y: y(t) + 4, "text-anchor": "end" }, percent(t)),
      ...(xName ? [svg("text", { x: x(t), y: H - B + 14, "text-anchor": "middle" }, xTick(t))] : [])]),
    svg("text", { x: x(0.5), y: H - 6, "text-anchor": "middle" }, xName), svg("text", { x: 4, y: 11 }, yName), ...content);
}

const path = (points) => points.map(([a, b], i) => `${i ? "L" : "M"}${x(a).toFixed(1)} ${y(b).toFixed(1)}`).join("");

function table(caption, names, entries) {
  return el("details", {}, el("summary", {}, caption), el("table", {},
    el("thead", {}, el("tr", {}, ...names.map((name) => el("th", { scope: "col", class: "number" }, name)))),
    el("tbody", {}, ...entries.map((cells) => el("tr", {}, ...cells.map((cell) => el("td", { class: "number" }, cell)))))));
}

function frequency(bands) {
  const known = bands.filter((band) => band.accuracy !== null);
  const step = 1 / Math.max(1, known.length);
  return chart(`Accuracy by class frequency: ${known.map((b) => `${b.band} documents ${percent(b.accuracy)}`).join(", ")}`, "", "accuracy", null,
    ...known.flatMap((band, i) => [
      svg("rect", { x: x(i * step) + 6, width: x(step) - x(0) - 12, y: y(band.accuracy), height: y(0) - y(band.accuracy), rx: 3 }),
      svg("text", { x: x((i + 0.5) * step), y: y(band.accuracy) - 4, "text-anchor": "middle" }, percent(band.accuracy)),
      svg("text", { x: x((i + 0.5) * step), y: H - B + 14, "text-anchor": "middle" }, band.band)]),
    svg("text", { x: x(0.5), y: H - 6, "text-anchor": "middle" }, "documents of the class"));
}

const figure = (name, value) => el("div", {}, el("dt", {}, name), el("dd", {}, value));

function figures(q) {
  const error = q.figures.calibration_error;
  return el("dl", { class: "figures" },
    figure("held-out documents", number(q.n_held_out)), figure("accuracy", percent(q.figures.accuracy)), figure("macro F1", percent(q.figures.macro_f1)),
    figure("true class among the candidates", percent(q.figures.recall)), error === null ? "" : figure("calibration error", error.toFixed(3)));
}

/** The curve of precision against coverage, with the point that the slider chooses. */
function operatingPoint({ curve }) {
  const most = Math.max(1, ...curve.map((point) => point.coverage)); // labels a document may be more than 1
  const isSets = Boolean(state.model?.multilabel);
  const marker = svg("circle", { class: "dot", r: 6 });
  const verdict = el("p", { id: "operating-point", role: "status" });
  const slider = el("input", { id: "precision", type: "range", min: 50, max: 99, step: 1, value: Math.round(100 * state.precision) });
  const chosen = el("output", { for: "precision" });
  let asked = 0;
  const update = async () => {
    const precision = slider.value / 100, turn = ++asked;
    chosen.textContent = percent(precision);
    slider.setAttribute("aria-valuetext", percent(precision));
    try {
      const found = await findThreshold(precision);
      if (turn !== asked) return;
      const isReached = found.threshold !== null;
      marker.setAttribute("cx", x(isReached ? found.coverage / most : 0));
      marker.setAttribute("cy", y(isReached ? found.expected_precision : 1));
      const covered = isSets ? `gives ${found.coverage.toFixed(2)} labels a text` : `decides ${percent(found.coverage)} of the texts`;
      verdict.textContent = isReached
        ? `At ${percent(precision)}: the model ${covered}, those from ${percent(found.threshold)} probability on, and abstains from the rest.`
        : `${percent(precision)} cannot be reached; the model would abstain from everything.`;
    } catch (error) { warn(error.message); }
  };
  slider.addEventListener("input", () => { setPrecision(slider.value / 100); update(); });
  update();
  const xTick = isSets ? (t) => (t * most).toFixed(1) : percent;
  return el("div", { class: "card" }, el("h2", {}, "Precision against coverage"),
    chart("Precision against coverage", isSets ? "labels a document" : "coverage", "precision", xTick, svg("path", { class: "line", d: path(curve.map((p) => [p.coverage / most, p.precision])) }), marker),
    el("label", { for: "precision", class: "row" }, el("span", {}, "Precision to abstain at"), chosen), slider, verdict,
    el("p", { class: "quiet" }, "Try and Queue use it; this browser remembers it."),
    table("Figures of the curve", ["threshold", "precision", isSets ? "labels a document" : "coverage"], curve.filter((_, i) => i % 20 === 0).map((p) => [percent(p.threshold), percent(p.precision), isSets ? p.coverage.toFixed(2) : percent(p.coverage)])));
}

function calibration({ bins }) {
  return el("div", { class: "card" }, el("h2", {}, "Calibration"),
    chart("Calibration: promised against measured precision", "promised", "measured", percent,
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
      figure("documents since the last refine", number(health.n_unrefined)), figure("classes that changed", number(health.n_stale)),
      health.unseen_terms === null ? "" : figure("terms without a learned weight", percent(health.unseen_terms))),
    health.advice.length ? el("ul", {}, ...health.advice.map((sentence) => el("li", {}, visible(sentence)))) : el("p", { class: "quiet" }, "Nothing needs to be done."));
}

export async function openQuality() {
  let q;
  try { q = await request("GET", "/v1/quality"); } catch (error) { warn(error.message); return; }
  if (!q.n_held_out) { view.replaceChildren(el("p", {}, "No documents were held out when this model was fitted."), healthCard(q)); return; }
  view.replaceChildren(
    el("p", { class: "quiet" }, `What ${count(q.n_held_out, "document")} showed that were held out when the model was fitted. What was taught since is not in it.`),
    figures(q),
    el("div", { class: "columns" }, el("div", {}, operatingPoint(q), healthCard(q)),
      el("div", {}, calibration(q), el("div", { class: "card" }, el("h2", {}, "Accuracy by class frequency"), frequency(q.by_frequency)))));
}
