// Queue: a file of texts, the least certain first; accept, correct, accept by precision, save.

import { button, byId, count, el, number, percent, say, spoken, visible, warn } from "./dom.js";
import { findExamples, findThreshold, onChange, predict, setPrecision, state, teach, undo } from "./api.js";
import { auditPanel } from "./audit.js";
import { candidateList, chips, explainNone, keyOf, predictedOf } from "./candidates.js";
import { classSearch } from "./combo.js";
import { showDocument, writeRecord } from "./fields.js";
import { download, readFile, readTexts, textChoices, writeCsv, writeJsonl } from "./files.js";
import { dropKept, keepDecisions, keepFile, readKept } from "./kept.js";
import { describePrecision, eachSwitch, keptBy } from "./precision.js";

const BATCH = 128;
const LONGEST = 100000; // characters that the service takes
const view = byId("view-queue");
const queue = { name: "", records: [], choices: new Map(), items: [], waiting: [], done: [], current: null, picked: null, version: "", isSaved: true, isKept: true };

const DECIDED = ["chosen", "how", "skipped", "promised", "change", "at", "classes", "predicted", "none", "newWords"]; // what is kept of a decision

const ORDERS = {
  uncertain: ["least certain first", (item) => item.classes[0]?.probability ?? 0],
  none: ["most likely none of the classes first", (item) => -(item.none ?? 0)],
  words: ["most new words first", (item) => -item.newWords],
  file: ["as in the file", (item) => item.row],
};

const file = el("input", { type: "file", id: "queue-file", accept: ".csv,.tsv,.jsonl,.ndjson,.json,.txt", on: { change: () => file.files[0] && open(file.files[0]) } });
const drop = el("div", { class: "drop" },
  el("label", { for: "queue-file" }, "Drop a CSV or JSON Lines file of texts here, or choose one"), file,
  el("p", { class: "quiet" }, "It stays in this browser, with what you decide, until you close it; texts go to the service to be predicted."),
  el("p", {}, button("Begin with three examples", openExamples, { id: "queue-examples" })));
const column = el("select", { id: "queue-column", on: { change: () => load() } });
const order = el("select", { id: "queue-order", on: { change: sort } }, ...Object.entries(ORDERS).map(([key, [title]]) => el("option", { value: key }, title)));
const precision = el("input", { id: "queue-precision", type: "number", min: 50, max: 99.9, step: 0.5, value: 90 });
const which = eachSwitch("queue-of", (each) => setPrecision(Number(precision.value) / 100 || state.precision, each));
const bar = el("progress", { id: "queue-bar", max: 1, value: 0, "aria-label": "Labelled" });
const progress = el("p", { class: "quiet", id: "queue-progress", role: "status" });
const item = el("div", { id: "queue-item", tabindex: "-1" });
const audit = auditPanel({ listItems: () => queue.items, onReject: reject });
const closing = button("", closeFile, { id: "queue-close", class: "clipped" });
const tools = el("div", { hidden: true },
  el("div", { class: "row" },
    el("div", {}, el("label", { for: "queue-column" }, "Column"), column),
    el("div", {}, el("label", { for: "queue-order" }, "Order"), order),
    closing),
  bar, progress, item,
  el("div", { class: "columns" },
    el("div", { class: "card" }, el("h2", {}, "All at once"),
      el("p", { class: "quiet" }, "Accepts what the model is certain enough of. It is not taught: nobody has looked at it. Audit a sample."),
      el("div", { class: "row" },
        el("div", {}, el("label", { for: "queue-precision" }, "Precision, %"), precision), which.root,
        button("Accept everything above it", acceptAll, { id: "queue-accept-all" }),
        button("Audit a random sample", audit.start, { id: "queue-audit-start" })),
      audit.root),
    el("div", { class: "card" }, el("h2", {}, "Save"),
      el("p", { class: "quiet" }, "One row per text: its label and who decided it. What you accept or correct one by one is also taught, if you have a token."),
      el("div", { class: "row" },
        button("Download as CSV", () => save("csv"), { id: "save-csv" }),
        button("Download as JSON Lines", () => save("jsonl"), { id: "save-jsonl" })))));

const search = classSearch({
  label: "Another class, or a new one", mayCreate: true,
  onPick: (entry) => {
    if (!entry || !queue.current) return;
    if (!queue.picked) return accept([entry]);
    queue.picked.set(keyOf(entry.label), entry);
    search.set();
    draw();
  },
  onSubmit: () => queue.picked && acceptShown(),
});

/** Ask before labels are lost that nobody has downloaded; return whether to go on. */
const mayLeave = () => queue.isSaved || confirm(`The labels of ${visible(queue.name)} are not downloaded. Give them up?`);

async function open(chosen) {
  try {
    const wanted = wantedColumns();
    const { records, columns } = readTexts(chosen.name, await readFile(chosen), wanted);
    const missing = wanted.filter((name) => !columns.includes(name));
    if (mayLeave()) await begin({ name: chosen.name.replace(/\.[^.]*$/, ""), records, columns });
    if (missing.length) warn(`The model was fitted on ${wanted.join(" and ")}; this file has no column ${missing.join(" and ")}.`);
  } catch (error) { warn(error.message); }
  file.value = ""; // so that the same file can be chosen again
}

async function openExamples() {
  try {
    const records = (await findExamples()).map(({ text }) => ({ text }));
    if (records.length) await begin({ name: "examples", records, columns: ["text"] });
  } catch (error) { warn(error.message); }
}

/** Return the columns that the model was fitted on, or the fields of its records. */
const wantedColumns = () => (state.model?.fields ? Object.keys(state.model.fields) : state.model?.columns?.text ?? []);

/** Return the document of a row: its columns joined as in the fit, or the record of its fields. */
function documentOf(record, names) {
  const isRecord = state.model?.fields && names === queue.choices.get(wantedColumns().join(" + "));
  return isRecord ? writeRecord(names, record) : names.map((name) => record[name] ?? "").join(" ");
}

/** Begin with a file, or go on with one that was kept. */
async function begin({ name, records, columns, choice }, decisions = null) {
  Object.assign(queue, { name, records, columns, choices: textChoices(columns, wantedColumns(), Boolean(state.model?.fields)) });
  column.replaceChildren(...[...queue.choices.keys()].map((title) => el("option", { value: title }, visible(title))));
  if (queue.choices.has(choice)) column.value = choice;
  closing.textContent = `Close ${visible(name)}`;
  tools.hidden = false;
  drop.classList.add("small");
  await load(decisions);
}

async function closeFile() {
  if (!mayLeave()) return;
  await dropKept(); // what looks closed stays so, however soon the page is left
  Object.assign(queue, { name: "", records: [], items: [], waiting: [], done: [], current: null, picked: null, isSaved: true });
  audit.clear();
  tools.hidden = true;
  drop.classList.remove("small");
}

/** Predict the texts of the chosen column; `decisions` are those that were kept, by row. */
async function load(decisions) {
  const names = queue.choices.get(column.value) ?? []; // joined as in the fit
  queue.items = queue.records.map((record, row) => ({ record, row, text: documentOf(record, names), classes: [], predicted: [], none: null, newWords: 0, chosen: null, how: "" }));
  for (const [row, { change, ...decision }] of decisions ?? []) {
    if (queue.items[row]) Object.assign(queue.items[row], decision, { change, taught: change ? Promise.resolve({ change }) : null });
  }
  queue.done = queue.items.filter((entry) => entry.at).sort((a, b) => a.at - b.at);
  queue.isSaved = !queue.items.some((entry) => entry.chosen);
  audit.clear();
  if (!decisions) queue.isKept = await keepFile({ name: queue.name, records: queue.records, columns: queue.columns, choice: column.value });
  const waiting = queue.items.filter((entry) => entry.chosen === null && !entry.skipped);
  if (await score(waiting, true)) { sort(); if (!view.hidden) item.focus(); }
}

/** Keep what was decided of some texts, so that a reload does not lose it. */
async function keep(entries) {
  queue.isKept = await keepDecisions(entries.map((entry) =>
    [entry.row, entry.chosen || entry.skipped ? Object.fromEntries(DECIDED.map((key) => [key, entry[key]])) : null]));
}

/** Go on with the file of this model that was open before a reload. */
async function restore() {
  if (restore.begun || !state.model) return;
  restore.begun = true;
  const kept = await readKept(state.model.name);
  if (kept && !queue.items.length) await begin(kept.file, kept.decisions);
}

async function score(items, isAll = false) {
  try {
    for (let i = 0; i < items.length; i += BATCH) {
      const some = items.slice(i, i + BATCH);
      const answer = await predict(some.map((entry) => entry.text.slice(0, LONGEST)), { k: 5, new_words: true });
      answer.results.forEach((result, j) => Object.assign(some[j], { classes: result.classes, predicted: result.labels, none: result.none, newWords: result.new_words.length }));
      queue.version = answer.version;
      if (isAll) {
        bar.value = Math.min(1, (i + BATCH) / items.length);
        progress.textContent = `${number(Math.min(i + BATCH, items.length))} of ${count(items.length, "text")} predicted`;
      }
    }
    return true;
  } catch (error) { warn(error.message); return false; }
}

function sort() {
  const key = ORDERS[order.value][1];
  queue.waiting = queue.items.filter((entry) => entry.chosen === null && !entry.skipped).sort((a, b) => key(a) - key(b) || a.row - b.row);
  next();
}

function next() {
  queue.current = queue.waiting[0] ?? null;
  tickPredicted();
  draw();
}

/** Begin with a text anew: what is ticked is what the model says. */
function tickPredicted() {
  search.set();
  const { current } = queue;
  queue.picked = current && state.model?.multilabel ? predictedOf({ ...current, labels: current.predicted }) : null;
}

function showProgress() {
  const done = queue.items.filter((entry) => entry.chosen !== null).length;
  bar.value = queue.items.length ? done / queue.items.length : 0;
  progress.textContent = `${number(done)} of ${count(queue.items.length, "text")} labelled, ${number(queue.waiting.length)} waiting`;
}

function draw() {
  showProgress();
  const { current, picked } = queue;
  if (!current) { item.replaceChildren(el("div", { class: "card done" }, el("p", {}, "Nothing waits."), back())); return; }
  const isNone = !picked && (current.none ?? 0) > (current.classes[0]?.probability ?? 0);
  const keys = (...names) => names.map((name) => el("kbd", {}, name));
  item.replaceChildren(el("div", { class: "card" }, el("div", { class: "columns" },
    el("div", {},
      el("div", { class: "text", id: "queue-text", tabindex: "0", role: "region", "aria-label": "Text" }, ...showDocument(state.model?.fields, current.text)),
      el("p", { class: "quiet" }, current.newWords ? `${count(current.newWords, "new word")}.` : "")),
    el("div", {},
      candidateList(current, { keys: true, picked, onChoose: (entry) => (picked ? toggle(entry) : accept([entry])), onPick: toggle }),
      picked ? chips(picked, current.classes, (key) => { picked.delete(key); draw(); }) : "",
      picked && current.none != null && current.classes.length ? explainNone() : "",
      search.root,
      el("div", { class: "row" },
        isNone ? button("Name its class", () => search.input.focus(), { class: "primary", id: "queue-name" }) : "",
        button(picked ? "Accept these labels" : "Accept the first", acceptShown, { class: isNone ? "" : "primary", id: "queue-accept", disabled: picked ? !picked.size : !current.classes.length }),
        button("Skip", skip, { id: "queue-skip" }), back()),
      el("p", { class: "quiet keys" }, ...keys("a"), " accepts, ", ...keys("1"), " to ", ...keys("5"), picked ? " tick, " : " choose, ", ...keys("s"), " skips, ", ...keys("u"), " goes back, ", ...keys("/"), " searches")))));
}

const back = () => button("Back", goBack, { id: "queue-back", disabled: !queue.done.length });

function toggle(entry) {
  const key = keyOf(entry.label);
  if (!queue.picked.delete(key)) queue.picked.set(key, entry);
  draw();
  [...item.querySelectorAll("input[type=checkbox]")].find((box) => box.dataset.key === key)?.focus();
}

const acceptShown = () => accept(queue.picked ? [...queue.picked.values()] : queue.current?.classes.slice(0, 1) ?? []);

async function accept(entries) {
  const entry = queue.current;
  if (!entry || !entries.length) return;
  const labels = entries.map(({ label }) => label);
  const shown = [...predictedOf({ ...entry, labels: entry.predicted }).values()];
  const isPredicted = labels.length === shown.length && shown.every(({ label }) => labels.includes(label));
  entry.how = isPredicted ? "accepted" : "corrected";
  entry.chosen = entries;
  finish(entry);
  if (!state.model?.may_teach || !entry.text.trim()) return;
  // A document of its own commutes with what others teach, so any version will do.
  const document = { text: entry.text.slice(0, LONGEST), ...(state.model.multilabel ? { labels } : { label: labels[0] }) };
  entry.taught = teach([document], "*");
  const answer = await entry.taught;
  if (answer && entry.chosen === entries) { entry.change = answer.change; keep([entry]); }
  if (answer) say(`Change ${answer.change}: ${entry.how}, ${entries.map(spoken).join(", ")}.`);
}

function skip() {
  if (!queue.current) return;
  queue.current.skipped = true;
  finish(queue.current);
}

function finish(entry) {
  queue.waiting.shift();
  entry.at = (queue.done.at(-1)?.at ?? 0) + 1;
  queue.done.push(entry);
  queue.isSaved = false;
  keep([entry]);
  next();
  item.focus();
}

/** Take back the last text: its label is gone, and what was taught is undone. */
async function goBack() {
  const entry = queue.done.pop();
  if (!entry) return;
  const taught = entry.taught;
  Object.assign(entry, { chosen: null, how: "", skipped: false, taught: null, change: null, at: 0 });
  keep([entry]);
  queue.waiting.unshift(entry);
  next();
  item.focus();
  const answer = await taught;
  if (answer && (await undo([answer.change], "*"))) say(`Change ${answer.change} is undone.`);
}

async function acceptAll() {
  const wanted = Number(precision.value) / 100;
  if (!queue.waiting.length || !(wanted > 0 && wanted < 1)) return;
  try {
    const { each } = state, found = await findThreshold(wanted, each);
    if (found.threshold === null) { warn(`This model cannot promise ${percent(wanted)}.`); return; }
    const accepted = queue.waiting.filter((entry) => keptBy(found, entry).length);
    for (const entry of accepted) {
      Object.assign(entry, { chosen: keptBy(found, entry), how: "by precision", promised: found.expected_precision });
    }
    queue.isSaved &&= !accepted.length;
    keep(accepted);
    sort();
    say(`${count(accepted.length, "text")} accepted, precision ${describePrecision(wanted, each)}.`);
  } catch (error) { warn(error.message); }
}

/** Take a label away that an audit found wrong; a text without any waits again. */
function reject(entry, rejected) {
  const left = entry.chosen.filter(({ label }) => label !== rejected.label);
  Object.assign(entry, left.length ? { chosen: left } : { chosen: null, how: "" });
  queue.isSaved = false;
  keep([entry]);
  if (!left.length) sort(); else showProgress();
}

function save(kind) {
  const asLabel = (entries) => (entries === null ? null : state.model?.multilabel ? entries.map(({ label }) => label) : entries[0].label);
  const records = queue.items.map((entry) => ({ ...entry.record, label: asLabel(entry.chosen), how: entry.how || null,
    predicted: entry.classes[0]?.label ?? null, probability: entry.classes[0]?.probability ?? null }));
  download(`${queue.name}.labelled.${kind}`, kind === "csv" ? writeCsv(records, state.model?.columns?.label_separator || ";") : writeJsonl(records));
  queue.isSaved = true;
}

function onKey(event) {
  if (view.hidden || !queue.items.length || event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.target.matches("input:not([type=checkbox], [type=radio]), select, textarea")) return;
  const entry = /^[1-5]$/.test(event.key) ? queue.current?.classes[event.key - 1] : null;
  if (audit.onKey(event.key)) { /* it was for the audit */ }
  else if (event.key === "u") goBack();
  else if (!queue.current) return;
  else if (event.key === "a") acceptShown();
  else if (entry) (queue.picked ? toggle : (one) => accept([one]))(entry);
  else if (event.key === "s") skip();
  else if (event.key === "/") search.input.focus();
  else return;
  event.preventDefault();
}

/** What was taught changes what waits: the next texts are predicted anew. */
async function rescore() {
  if (!queue.waiting.length || !queue.version || queue.version === state.version) return;
  queue.version = state.version;
  const { current } = queue;
  const before = current && JSON.stringify(current.classes);
  await score(queue.waiting.slice(0, BATCH));
  // What someone has begun to choose stays as it is.
  const isUntouched = current === queue.current && !search.input.value && !item.querySelector(":focus");
  if (current && isUntouched && before !== JSON.stringify(current.classes)) { tickPredicted(); draw(); } else showProgress();
}

export function startQueue() {
  view.append(drop, tools);
  for (const kind of ["dragover", "dragenter"]) drop.addEventListener(kind, (event) => { event.preventDefault(); drop.classList.add("over"); });
  for (const kind of ["dragleave", "drop"]) drop.addEventListener(kind, () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => { event.preventDefault(); const [first] = event.dataTransfer.files; if (first) open(first); });
  document.addEventListener("keydown", onKey);
  onChange(rescore);
  onChange(restore);
  const showPrecision = () => which.set(Number(precision.value) / 100 || state.precision, state.each);
  precision.addEventListener("input", showPrecision);
  onChange(() => {
    if (document.activeElement !== precision) precision.value = String(+(100 * state.precision).toFixed(1));
    showPrecision();
  });
  window.addEventListener("beforeunload", (event) => { if (!queue.isSaved && !queue.isKept) event.preventDefault(); });
}
