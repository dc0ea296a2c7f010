// Try: a text, the classes it could be in and why, and a correction that counts at once.

import { button, byId, debounce, el, percent, say, spoken, visible, warn } from "./dom.js";
import { explain, findExamples, findThreshold, onChange, predict, state, teach, undo } from "./api.js";
import { candidateList, chips, explainNone, keyOf, predictedOf, probabilitiesOf } from "./candidates.js";
import { classSearch } from "./combo.js";
import { plainText, replaceByForm } from "./fields.js";
import { keptBy } from "./precision.js";
import { reasons } from "./reasons.js";
import { pathOf, siblings } from "./tree.js";

const SHOWN = 6; // candidates
const text = byId("text");
let result = null; // what the model says about the text
let shown = null; // the label whose reasons are shown
let target = null; // the class to teach
let picked = null; // classes to teach where a text may have several labels
let before = null; // probabilities before the last change
let sure = null; // the threshold below which the model abstains
let seen = ""; // the version of what is on the screen
let asked = 0;
let form = null; // of the fields, where documents are records
let branch = null; // the label of the node below which alone classes are looked for

const search = classSearch({
  label: "Another class, or a new one",
  mayCreate: true,
  onPick: (entry) => {
    if (!entry) target = null;
    else if (picked) { picked.set(keyOf(entry.label), entry); search.set(); showCandidates(); }
    else target = entry;
    showTeach();
  },
  onSubmit: teachText,
});
const teachButton = button("Teach", teachText, { class: "primary" });
const undoButton = button("Undo the last change", undoLast);
const others = el("div", {});
const beside = el("div", {}); // classes below the same node as the one that is shown
const within = el("div", {}); // below which node of the hierarchy is looked
const examples = el("div", { id: "examples" });
const hint = el("p", { class: "quiet" });

function showTeach() {
  const may = Boolean(state.model?.may_teach);
  const labels = picked ? [...picked.values()] : target ? [target] : [];
  teachButton.disabled = !may || !labels.length || !text.value.trim();
  undoButton.disabled = !may;
  others.replaceChildren(picked && result ? chips(picked, result.classes, (key) => { picked.delete(key); showTeach(); }) : "");
  hint.textContent = may
    ? picked ? "Tick the labels that the text should have. Ctrl+Enter teaches." : "Choose a class above, search for one, or name a new one. Ctrl+Enter teaches."
    : state.model?.read_only ? "This service is read-only." : "Teaching needs a token: the button at the top.";
}

const backsOff = () => state.model?.hierarchy && state.model.probabilities && !state.model.multilabel;

/** Look for classes below a node alone, or below all where there is none. */
export function lookBelow(label) {
  branch = label;
  showWithin();
  update();
}

/** Say below which node classes are looked for, and offer those above the class that is shown. */
function showWithin() {
  if (branch !== null) {
    within.replaceChildren(el("p", { id: "within" }, "Only classes below ", el("bdi", {}, visible(branch)), ". ", button("Look everywhere", () => lookBelow(null), { class: "link" })));
    return;
  }
  const above = result?.classes.find(({ label }) => label === shown)?.path?.slice(0, -1) ?? [];
  within.replaceChildren(above.length ? el("p", { id: "within", class: "quiet" }, "Look only below: ",
    ...above.flatMap((label, i) => [i ? ", " : "", button(el("bdi", {}, visible(label)), () => lookBelow(label), { class: "link" })])) : "");
}

/** Offer words of some classes to whoever has no text at hand. */
async function showExamples() {
  if (examples.childElementCount || !state.model) return;
  try {
    const offered = (await findExamples()).map(({ text: words, label, name }) => el("li", {},
      button(visible(words), () => { if (form) form.fill(words); else { text.value = words; update(); text.focus(); } }, { class: "link", title: `words of ${spoken({ label, text: name })}` })));
    if (offered.length) examples.replaceChildren(el("p", { class: "quiet" }, "Or try words of some classes:"), el("ul", {}, ...offered));
  } catch { /* the page says already that the service does not answer */ }
}

async function update() {
  const turn = ++asked;
  const value = text.value;
  if (!value.trim()) {
    result = null;
    beside.replaceChildren();
    showWithin();
    byId("candidates").replaceChildren(el("p", { class: "quiet" }, "What a text could be appears here while you type."), examples);
    byId("reasons").replaceChildren(el("p", { class: "quiet" }, "Why, word by word, appears here."));
    showTeach();
    showExamples();
    return null;
  }
  try {
    const [answer, threshold] = await Promise.all([predict([value], { k: SHOWN, ...(backsOff() ? { back_off: state.precision } : {}), ...(branch === null ? {} : { branch }) }), state.model?.probabilities ? findThreshold(state.precision, state.each) : null]);
    if (turn !== asked) return null; // a later one is under way
    seen = answer.version;
    result = answer.results[0];
    sure = threshold;
    if (state.model?.multilabel) picked = predictedOf(result);
    showCandidates();
    const labels = result.classes.map((entry) => entry.label);
    if (shown === null || !labels.includes(shown)) shown = labels[0] ?? null;
    markShown();
    showSiblings();
    showWithin();
    if (shown !== null) await showReasons(value, turn);
    else byId("reasons").replaceChildren(el("p", { class: "quiet", id: "no-known-word" }, "No word of the text is known, so nothing speaks for a class."));
    showTeach();
    summarise();
    return result;
  } catch (error) {
    warn(error.message);
    return null;
  }
}

function showCandidates() {
  const list = candidateList(result, {
    onChoose: choose, picked, before,
    onPick: (entry, isTicked) => { if (isTicked) picked.set(keyOf(entry.label), entry); else picked.delete(keyOf(entry.label)); showTeach(); },
  });
  const isSure = sure && keptBy(sure, result).length > 0;
  const several = picked && result.none != null && result.classes.length ? explainNone() : "";
  const verdict = sure && result.classes.length ? el("p", { class: `verdict ${isSure ? "sure" : "unsure"}`, id: "verdict" }, judge(isSure)) : "";
  byId("candidates").replaceChildren(list, several, verdict, whereSure());
  markShown();
}

/** Say which node the text is surely at or below; nothing where there is no hierarchy. */
function whereSure() {
  if (!backsOff() || !result.classes.length) return "";
  const node = result.node, wanted = percent(state.precision);
  return el("p", { class: `verdict ${node ? "sure" : "unsure"}`, id: "node" }, ...(node
    ? ["The answer for ", wanted, " precision: ", pathOf(node.path, true), ` (${percent(node.probability)})`]
    : [`No node of the hierarchy is certain enough for ${wanted} precision.`]));
}

/** Offer the classes beside the one that is shown; a click teaches one at once. */
async function showSiblings() {
  const entry = result?.classes.find(({ label }) => label === shown), turn = asked;
  if (!state.model?.may_teach || picked || !entry?.path) { beside.replaceChildren(); return; }
  try {
    const found = await siblings(entry, result.classes, (node) => { target = node; search.set(node); showTeach(); teachText(); });
    if (turn === asked && shown === entry.label) beside.replaceChildren(found);
  } catch (error) { warn(error.message); }
}

/** Say whether the model would decide, and why not. */
function judge(isSure) {
  const wanted = percent(state.precision), first = result.classes[0].probability;
  if (isSure) return state.each ? `At least ${wanted} probable.` : `Certain enough for ${wanted} precision on average.`;
  const reason = sure.threshold === null ? `This model cannot promise ${wanted}`
    : first >= sure.threshold ? "None of these is likelier"
      : state.each ? `Less than ${wanted} probable` : `Below what ${wanted} precision on average needs`;
  return `${reason}: a person should look.`;
}

// Listeners hear the outcome once typing pauses, not every bar.
const summarise = debounce(() => {
  const said = result?.classes.slice(0, 3).map((entry) => `${spoken(entry)} ${percent(entry.probability)}`) ?? [];
  byId("summary").textContent = said.join(", ") + (result?.none == null ? "" : `, none of these ${percent(result.none)}`);
}, 800);

function markShown() {
  for (const row of byId("candidates").querySelectorAll("button.candidate")) {
    row.setAttribute("aria-pressed", String(row.dataset.key === keyOf(shown)));
  }
}

function choose(entry) {
  shown = entry.label;
  if (!picked) { target = entry; search.set(entry); }
  markShown();
  showTeach();
  showSiblings();
  showWithin();
  showReasons(text.value, asked);
}

async function showReasons(value, turn) {
  try {
    const answer = await explain(value, shown);
    if (turn === asked) byId("reasons").replaceChildren(...reasons(plainText(state.model?.fields, value), answer));
  } catch (error) { warn(error.message); }
}

async function teachText() {
  if (teachButton.disabled) return;
  teachButton.disabled = true;
  const entries = picked ? [...picked.values()] : [target];
  const labels = entries.map((entry) => entry.label);
  before = result && probabilitiesOf(result);
  const answer = await teach([picked ? { text: text.value, labels } : { text: text.value, label: labels[0] }], seen);
  if (answer && !picked) shown = labels[0];
  const now = await update();
  before = null;
  if (!answer || !now) return;
  const first = now.classes.find((entry) => entry.label === labels[0]);
  say(`Change ${answer.change}: taught as ${entries.map(spoken).join(", ")}` + (first?.probability != null && labels.length === 1 ? `, which now has ${percent(first.probability)}.` : "."));
}

async function undoLast() {
  undoButton.disabled = true;
  before = result && probabilitiesOf(result);
  const answer = await undo();
  await update();
  before = null;
  if (answer) say(`Change ${answer.change}: the last change is undone.`);
}

export function startTry() {
  byId("candidates").after(within);
  byId("teach").append(others, beside, el("div", { class: "row" }, search.root, teachButton, undoButton), hint);
  text.addEventListener("input", debounce(update, 100));
  const onKey = (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); teachText(); }
  };
  text.addEventListener("keydown", onKey);
  let version = "", precision = state.precision, each = state.each;
  onChange(() => {
    if (state.model?.fields && !form) {
      form = replaceByForm(state.model.fields, text, update);
      form.element.addEventListener("keydown", onKey);
    }
    showTeach();
    if (!text.value.trim()) showExamples();
    if ((version && version !== state.version && seen !== state.version) || precision !== state.precision || each !== state.each) update();
    ({ version, precision, each } = state);
  });
  update();
}
