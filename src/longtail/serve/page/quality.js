// Quality: what held-out documents showed when the model was fitted, and the precision to abstain at.

import { byId, count, el, percent, svg, warn } from "./dom.js";
import { request, state, tell } from "./api.js";

const W = 420, H = 260, L = 44, B = 36;
const view = byId("view-quality");
const x = (value) => L + value * (W - L - 26);
const y = (value) => H - B - value * (H - B - 26);

function chart(title, xName, yName, ...content) {
  const ticks = [0, 0.25, 0.5, 0.75, 1];
  return svg("svg", { class: "chart", viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": title },
    ...ticks.flatMap((t) => [
      svg("line", { class: "axis", x1: x(0), x2: x(1), y1: y(t), y2: y(t) }),
      svg("text", { x: L - 6, y: y(t) + 4, "text-anchor": "end" }, percent(t)),
      ...(xName ? [svg("text", { x: x(t), y: H - B + 14, "text-anchor": "middle" }, percent(t))] : [])]),
    svg("text", { x: x(0.5), y: H - 6, "text-anchor": "middle" }, xName), svg("text", { x: 4, y: 11 }, yName), ...content);
}

const path = (points) => points.map(([a, b], i) => `${i ? "L" : "M"}${x(a).toFixed(1)} ${y(b).toFixed(1)}`).join("");

function table(caption, names, entries) {
  return el("details", {}, el("summary", {}, caption), el("table", {},
    el("thead", {}, el("tr", {}, ...names.map((name) => el("th", { scope: "col" }, name)))),
    el("tbody", {}, ...entries.map((cells) => el("tr", {}, ...cells.map((cell) => el("td", { class: "number" }, cell)))))));
}

function frequency(bands) {
  const known = bands.filter((band) => band.accuracy !== null);
  const step = 1 / Math.max(1, known.length);
  return chart(`Accuracy by class frequency: ${known.map((b) => `${b.band} ${percent(b.accuracy)}`).join(", ")}`, "", "accuracy",
    ...known.flatMap((band, i) => [
      svg("rect", { x: x(i * step) + 6, width: x(step) - x(0) - 12, y: y(band.accuracy), height: y(0) - y(band.accuracy) }),
      svg("text", { x: x((i + 0.5) * step), y: y(band.accuracy) - 4, "text-anchor": "middle" }, percent(band.accuracy)),
      svg("text", { x: x((i + 0.5) * step), y: H - B + 14, "text-anchor": "middle" }, band.band)]));
}

export async function openQuality() {
  let q;
  try { q = await request("GET", "/v1/quality"); } catch (error) { warn(error.message); return; }
  if (!q.n_held_out) { view.replaceChildren(el("p", {}, "No documents were held out when this model was fitted.")); return; }
  const { curve, bins } = q;
  const marker = svg("circle", { class: "dot", r: 6 });
  const verdict = el("p", { id: "operating-point", role: "status" });
  const slider = el("input", { id: "precision", type: "range", min: 50, max: 99, step: 1, value: Math.round(100 * state.precision) });
  const update = async (tells) => {
    state.precision = slider.value / 100;
    try {
      const { threshold } = await request("POST", "/v1/predict", { documents: [""], k: 1, precision: state.precision });
      const reached = threshold && threshold.threshold !== null;
      marker.setAttribute("cx", x(reached ? threshold.coverage : 0));
      marker.setAttribute("cy", y(reached ? threshold.expected_precision : 1));
      verdict.textContent = reached
        ? `At ${percent(state.precision)}: the model decides ${percent(threshold.coverage)} of the texts, those from ${percent(threshold.threshold)} probability on, and abstains from the rest.`
        : `${percent(state.precision)} cannot be reached; the model would abstain from everything.`;
    } catch (error) { warn(error.message); }
    if (tells) tell();
  };
  slider.addEventListener("input", () => update(true));
  view.replaceChildren(
    el("p", { class: "quiet" }, `From ${count(q.n_held_out, "document")} that were held out when the model was fitted: accuracy ${percent(q.figures.accuracy)}, macro F1 ${percent(q.figures.macro_f1)}, true class among the candidates ${percent(q.figures.recall)}.`),
    el("div", { class: "columns" },
      el("div", {}, el("h2", {}, "Precision against coverage"),
        chart("Precision against coverage", "coverage", "precision", svg("path", { class: "line", d: path(curve.map((p) => [p.coverage, p.precision])) }), marker),
        el("label", { for: "precision" }, "Precision to abstain at"), slider, verdict,
        table("Figures of the curve", ["threshold", "precision", "coverage"], curve.filter((_, i) => i % 20 === 0).map((p) => [percent(p.threshold), percent(p.precision), percent(p.coverage)]))),
      el("div", {}, el("h2", {}, "Calibration"),
        chart("Calibration: promised against measured precision", "promised", "measured",
          svg("line", { class: "ideal", x1: x(0), y1: y(0), x2: x(1), y2: y(1) }),
          svg("path", { class: "line", d: path(bins.map((b) => [b.promised, b.measured])) }),
          ...bins.map((b) => svg("circle", { class: "dot", r: 4, cx: x(b.promised), cy: y(b.measured) }))),
        table("Figures of the bins", ["promised", "measured", "documents"], bins.map((b) => [percent(b.promised), percent(b.measured), String(b.n_documents)])),
        el("h2", {}, "Accuracy by class frequency"), frequency(q.by_frequency))));
  await update(false);
}
