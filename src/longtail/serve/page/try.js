// Try: a text, the classes it could be in and why, and a correction that counts at once.

import { byId, debounce, el, nameOf, percent, say, visible, warn } from "./dom.js";
import { explain, onChange, predict, state, teach, undo } from "./api.js";
import { classSearch } from "./combo.js";

const text = byId("text");
let shown = null; // the label whose reasons are shown
let target = null; // the label to teach
let seen = ""; // the version of what is on the screen
let asked = 0;

const search = classSearch({
  label: "Class, by name; a new name creates one",
  mayCreate: true,
  onPick: (label) => { target = label; showTeach(); },
});
const teachButton = el("button", { type: "button", class: "primary", on: { click: teachText } }, "Teach");
const undoButton = el("button", { type: "button", on: { click: undoLast } }, "Undo the last change");
const hint = el("p", { class: "quiet" });

function showTeach() {
  const may = Boolean(state.model?.may_teach);
  teachButton.disabled = !may || target === null || !text.value.trim();
  undoButton.disabled = !may;
  hint.textContent = may
    ? "Choose a class above or search for one. Ctrl+Enter teaches."
    : state.model?.read_only ? "This service is read-only." : "Teaching needs a token: the button at the top.";
}

async function update() {
  const turn = ++asked;
  const value = text.value;
  if (!value.trim()) {
    byId("candidates").replaceChildren(el("p", { class: "quiet" }, "What a text could be appears here while you type."));
    byId("reasons").replaceChildren();
    showTeach();
    return null;
  }
  try {
    const answer = await predict([value], { k: 6, precision: state.precision });
    if (turn !== asked) return null; // a later one is under way
    seen = answer.version;
    showCandidates(answer.results[0], answer.threshold);
    const labels = answer.results[0].classes.map((entry) => entry.label);
    if (shown === null || !labels.includes(shown)) shown = labels[0] ?? null;
    markShown();
    if (shown !== null) await showReasons(value, turn);
    showTeach();
    return answer.results[0];
  } catch (error) {
    warn(error.message);
    return null;
  }
}

function showCandidates(result, threshold) {
  const rows = result.classes.map((entry) => el("li", {}, el(
    "button", { type: "button", class: "candidate", "data-label": JSON.stringify(entry.label), "aria-pressed": "false",
      on: { click: () => choose(entry.label) } },
    el("span", { class: "fill", style: { width: `${100 * (entry.probability ?? 0)}%` } }),
    nameOf(entry.label),
    el("span", { class: "number" }, entry.probability == null ? entry.score.toFixed(2) : percent(entry.probability)),
  )));
  if (result.none != null) {
    rows.push(el("li", {}, el("div", { class: "candidate none", id: "none" },
      el("span", { class: "fill", style: { width: `${100 * result.none}%` } }),
      el("span", {}, "none of these"), el("span", { class: "number" }, percent(result.none)))));
  }
  let verdict = null;
  if (threshold) {
    verdict = el("p", { class: "quiet", id: "verdict" }, result.abstained
      ? `Below what ${percent(state.precision)} precision needs: a person should look.`
      : `Certain enough for ${percent(state.precision)} precision.`);
  }
  byId("candidates").replaceChildren(el("ol", { class: "candidates" }, ...rows), verdict ?? "");
}

function markShown() {
  for (const button of byId("candidates").querySelectorAll("button")) {
    button.setAttribute("aria-pressed", String(button.dataset.label === JSON.stringify(shown)));
  }
}

function choose(label) {
  shown = label;
  target = label;
  search.set(label);
  markShown();
  showTeach();
  showReasons(text.value, asked);
}

async function showReasons(value, turn) {
  try {
    const answer = await explain(value, shown);
    if (turn !== asked) return;
    const { explanation, runner_up: other } = answer;
    byId("reasons").replaceChildren(
      el("h2", {}, "Why ", nameOf(explanation.label)),
      el("div", { class: "card text", id: "highlighted", tabindex: "0", role: "region", "aria-label": "The text with its terms marked" }, ...highlight(value, explanation.terms)),
      el("p", { class: "quiet" }, "Marked words speak for the class; underlined ones against it."),
      parts("Terms", explanation.terms.map((t) => [t.term, t.contribution]).concat([["(other terms)", explanation.rest], ["(class)", explanation.constant]])),
      parts("Features", Object.entries(explanation.features)),
      other ? el("h2", {}, "Against ", nameOf(other.label)) : "",
      other ? el("p", { class: "quiet" }, `Score ${explanation.score.toFixed(2)} against ${other.score.toFixed(2)}.`) : "",
      other ? parts("Terms", other.terms.map((t) => [t.term, t.contribution])) : "",
    );
  } catch (error) { warn(error.message); }
}

/** Return the text in pieces, with marks where terms stand; offsets count code points. */
export function highlight(value, terms) {
  const points = Array.from(value);
  const weights = new Float64Array(points.length);
  for (const { contribution, spans } of terms) {
    for (const [start, end] of spans) for (let i = start; i < end; i++) weights[i] += contribution / (end - start);
  }
  const kind = (i) => (Math.abs(weights[i]) < 1e-9 ? "" : weights[i] > 0 ? "for" : "against");
  const pieces = [];
  for (let start = 0; start < points.length;) {
    let end = start + 1;
    while (end < points.length && kind(end) === kind(start)) end++;
    const piece = visible(points.slice(start, end).join(""));
    pieces.push(kind(start) ? el("mark", { class: kind(start) }, piece) : piece);
    start = end;
  }
  return pieces;
}

function parts(title, entries) {
  const largest = Math.max(1e-9, ...entries.map(([, value]) => Math.abs(value)));
  return el("table", {}, el("caption", { class: "quiet" }, title), el("tbody", {}, ...entries.map(([name, value]) => el("tr", {},
    el("th", { scope: "row" }, el("bdi", {}, visible(name))),
    el("td", { class: "number" }, (value >= 0 ? "+" : "−") + Math.abs(value).toFixed(2)),
    el("td", { style: { width: "40%" } }, el("span", { class: `meter ${value < 0 ? "against" : ""}`, style: { width: `${100 * Math.abs(value) / largest}%` } })),
  ))));
}

async function teachText() {
  if (teachButton.disabled) return;
  teachButton.disabled = true;
  const label = target;
  const answer = await teach([{ text: text.value, label }], seen);
  shown = answer ? label : shown;
  const result = await update();
  if (answer && result) {
    const now = result.classes.find((entry) => entry.label === label);
    say(`Change ${answer.change}: taught as ${visible(label)}` + (now?.probability != null ? `, which now has ${percent(now.probability)}.` : "."));
  }
}

async function undoLast() {
  undoButton.disabled = true;
  const answer = await undo();
  await update();
  if (answer) say(`Change ${answer.change}: the last change is undone.`);
}

export function startTry() {
  byId("teach").append(el("div", { class: "row" }, search.root, teachButton, undoButton), hint);
  text.addEventListener("input", debounce(update, 120));
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); teachText(); }
  });
  let version = "";
  onChange(() => {
    showTeach();
    if (version && version !== state.version && seen !== state.version) update();
    version = state.version;
  });
  showTeach();
}
