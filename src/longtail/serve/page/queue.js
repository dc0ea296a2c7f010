// Queue: a file of texts, the least certain first; accept, correct, accept by precision, audit, save.

import { byId, count, el, nameOf, percent, say, visible, warn } from "./dom.js";
import { onChange, predict, state, teach } from "./api.js";
import { classSearch } from "./combo.js";
import { download, readTexts, writeCsv, writeJsonl } from "./files.js";

const BATCH = 64;
const view = byId("view-queue");
const queue = { name: "", items: [], waiting: [], current: null, picked: null, version: "", audit: [], promised: null };

const ORDERS = {
  uncertain: ["least certain first", (item) => item.classes[0]?.probability ?? 0],
  none: ["most likely none of the classes first", (item) => -(item.none ?? 0)],
  words: ["most new words first", (item) => -item.newWords],
  file: ["as in the file", (item) => item.row],
};

const file = el("input", { type: "file", id: "queue-file", accept: ".csv,.tsv,.jsonl,.ndjson,.json,.txt", on: { change: () => file.files[0] && open(file.files[0]) } });
const drop = el("div", { class: "drop" }, el("label", { for: "queue-file" }, "Drop a CSV or JSON Lines file of texts here, or choose one"), file);
const column = el("select", { id: "queue-column", on: { change: load } });
const order = el("select", { id: "queue-order", on: { change: sort } }, ...Object.entries(ORDERS).map(([key, [title]]) => el("option", { value: key }, title)));
const precision = el("input", { id: "queue-precision", type: "number", min: 50, max: 99.9, step: 0.5, value: 90 });
const progress = el("p", { class: "quiet", id: "queue-progress", role: "status" });
const item = el("div", { id: "queue-item", tabindex: "-1" });
const audit = el("div", { id: "queue-audit" });
const tools = el("div", { hidden: true },
  el("div", { class: "row" },
    el("div", {}, el("label", { for: "queue-column" }, "Column"), column),
    el("div", { class: "grow" }, el("label", { for: "queue-order" }, "Order"), order)),
  progress, item,
  el("h2", {}, "All at once"),
  el("div", { class: "row" },
    el("div", {}, el("label", { for: "queue-precision" }, "Precision, %"), precision),
    el("button", { type: "button", id: "queue-accept-all", on: { click: acceptAll } }, "Accept everything above it"),
    el("button", { type: "button", id: "queue-audit-start", on: { click: startAudit } }, "Audit a random sample")),
  audit,
  el("h2", {}, "Save"),
  el("div", { class: "row" },
    el("button", { type: "button", id: "save-csv", on: { click: () => save("csv") } }, "Download as CSV"),
    el("button", { type: "button", id: "save-jsonl", on: { click: () => save("jsonl") } }, "Download as JSON Lines")),
  el("p", { class: "quiet" }, "What you accept or correct one by one is also taught, if you have a token. What is accepted all at once is not: nobody has looked at it."));

const search = classSearch({ label: "Another class", mayCreate: true, onPick: (label) => { queue.picked = label; } });

async function open(chosen) {
  try {
    const { records, columns } = readTexts(chosen.name, await chosen.text());
    queue.name = chosen.name.replace(/\.[^.]*$/, "");
    queue.records = records;
    column.replaceChildren(...columns.map((name) => el("option", { value: name }, visible(name))));
    tools.hidden = false;
    await load();
  } catch (error) { warn(error.message); }
}

async function load() {
  queue.items = queue.records.map((record, row) => ({ record, row, text: String(record[column.value] ?? ""), classes: [], none: null, newWords: 0, label: null, how: "" }));
  queue.audit = []; queue.promised = null; audit.replaceChildren();
  if (await score(queue.items)) { sort(); item.focus(); }
}

async function score(items) {
  try {
    for (let i = 0; i < items.length; i += BATCH) {
      const some = items.slice(i, i + BATCH);
      const answer = await predict(some.map((entry) => entry.text.slice(0, 100000)), { k: 5, new_words: true });
      answer.results.forEach((result, j) => Object.assign(some[j], { classes: result.classes, none: result.none, newWords: result.new_words.length }));
      queue.version = answer.version;
      progress.textContent = `${Math.min(i + BATCH, items.length).toLocaleString("en")} of ${count(items.length, "text")} predicted`;
    }
    return true;
  } catch (error) { warn(error.message); return false; }
}

function sort() {
  const key = ORDERS[order.value][1];
  queue.waiting = queue.items.filter((entry) => entry.label === null && !entry.skipped).sort((a, b) => key(a) - key(b) || a.row - b.row);
  next();
}

function next() {
  queue.current = queue.waiting[0] ?? null;
  queue.picked = null;
  search.set("");
  const done = queue.items.filter((entry) => entry.label !== null).length;
  progress.textContent = `${done.toLocaleString("en")} of ${count(queue.items.length, "text")} labelled, ${queue.waiting.length.toLocaleString("en")} waiting`;
  if (!queue.current) { item.replaceChildren(el("p", {}, "Nothing waits.")); return; }
  const { text, classes, none, newWords } = queue.current;
  item.replaceChildren(el("div", { class: "card" },
    el("div", { class: "text", id: "queue-text" }, visible(text)),
    el("ol", { class: "candidates" }, ...classes.slice(0, 5).map((entry, i) => el("li", {}, el("button",
      { type: "button", class: "candidate", on: { click: () => accept(entry.label) } },
      el("span", { class: "fill", style: { width: `${100 * (entry.probability ?? 0)}%` } }),
      el("span", {}, el("kbd", {}, String(i + 1)), " ", nameOf(entry.label)),
      el("span", { class: "number" }, percent(entry.probability)))))),
    el("p", { class: "quiet" }, `None of these: ${percent(none)}. New words: ${newWords}.`),
    el("div", { class: "row" }, search.root,
      el("button", { type: "button", on: { click: () => queue.picked !== null && accept(queue.picked) } }, "Correct"),
      el("button", { type: "button", id: "queue-skip", on: { click: skip } }, "Skip")),
    el("p", { class: "quiet" }, "Keys: ", el("kbd", {}, "a"), " or ", el("kbd", {}, "1"), " accepts the first, ", el("kbd", {}, "2"), " to ", el("kbd", {}, "5"), " another, ", el("kbd", {}, "s"), " skips, ", el("kbd", {}, "/"), " searches.")));
}

async function accept(label) {
  const entry = queue.current;
  if (!entry) return;
  entry.how = label === entry.classes[0]?.label ? "accepted" : "corrected";
  entry.label = label;
  queue.waiting.shift();
  next();
  item.focus();
  if (state.model?.may_teach && entry.text.trim()) {
    // A document of its own commutes with what others teach, so any version will do.
    const answer = await teach([{ text: entry.text.slice(0, 100000), label }], "*");
    if (answer) say(`Change ${answer.change}: ${entry.how}, ${visible(label)}.`);
  }
}

function skip() {
  if (queue.current) queue.current.skipped = true;
  queue.waiting.shift();
  next();
  item.focus();
}

async function acceptAll() {
  const wanted = Number(precision.value) / 100;
  if (!queue.waiting.length || !(wanted > 0 && wanted < 1)) return;
  try {
    const { threshold } = await predict([queue.waiting[0].text], { k: 1, precision: wanted });
    if (threshold?.threshold == null) { warn(`This model cannot promise ${percent(wanted)}.`); return; }
    const sure = queue.waiting.filter((entry) => (entry.classes[0]?.probability ?? 0) >= threshold.threshold);
    for (const entry of sure) { entry.label = entry.classes[0].label; entry.how = "by precision"; }
    queue.promised = threshold.expected_precision;
    sort();
    say(`${count(sure.length, "text")} accepted at ${percent(wanted)} precision.`);
  } catch (error) { warn(error.message); }
}

function startAudit() {
  const pool = queue.items.filter((entry) => entry.how === "by precision" && entry.correct === undefined);
  if (!pool.length) { warn("Nothing was accepted by precision yet."); return; }
  for (let i = pool.length - 1; i > 0; i--) { // Fisher and Yates
    const j = Math.floor(Math.random() * (i + 1));
    [pool[i], pool[j]] = [pool[j], pool[i]];
  }
  queue.audit = pool.slice(0, 50);
  showAudit();
}

/** The interval of Wilson for a share, at 95 %. */
export function wilson(successes, n) {
  const z = 1.96, p = successes / n, middle = p + z * z / (2 * n);
  const half = z * Math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)), scale = 1 + z * z / n;
  return [(middle - half) / scale, (middle + half) / scale];
}

function showAudit() {
  const judged = queue.items.filter((entry) => entry.correct !== undefined);
  const correct = judged.filter((entry) => entry.correct).length;
  const current = queue.audit.find((entry) => entry.correct === undefined);
  const figures = judged.length ? (() => {
    const [low, high] = wilson(correct, judged.length);
    return `Measured ${percent(correct / judged.length)} (${correct} of ${judged.length}; 95 % interval ${percent(low)} to ${percent(high)}), promised ${percent(queue.promised)}.`;
  })() : "";
  const judge = (value) => { current.correct = value; if (!value) { current.label = null; current.how = ""; sort(); } showAudit(); audit.querySelector("button")?.focus(); };
  audit.replaceChildren(
    figures ? el("p", { id: "audit-figures", role: "status" }, figures) : "",
    current ? el("div", { class: "card" },
      el("div", { class: "text" }, visible(current.text)),
      el("p", {}, "Is this ", nameOf(current.label), "?"),
      el("div", { class: "row" },
        el("button", { type: "button", on: { click: () => judge(true) } }, "Yes"),
        el("button", { type: "button", on: { click: () => judge(false) } }, "No"))) : "");
}

function save(kind) {
  const records = queue.items.map((entry) => ({ ...entry.record, label: entry.label, how: entry.how || null,
    predicted: entry.classes[0]?.label ?? null, probability: entry.classes[0]?.probability ?? null }));
  download(`${queue.name}.labelled.${kind}`, kind === "csv" ? writeCsv(records) : writeJsonl(records));
}

export function startQueue() {
  view.append(drop, tools);
  for (const kind of ["dragover", "dragenter"]) drop.addEventListener(kind, (event) => { event.preventDefault(); drop.classList.add("over"); });
  for (const kind of ["dragleave", "drop"]) drop.addEventListener(kind, () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => { event.preventDefault(); const [first] = event.dataTransfer.files; if (first) open(first); });
  document.addEventListener("keydown", (event) => {
    if (view.hidden || !queue.current || event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.target.matches("input, select, textarea")) return;
    const { classes } = queue.current;
    if (event.key === "a") accept(classes[0].label);
    else if (/^[1-5]$/.test(event.key) && classes[event.key - 1]) accept(classes[event.key - 1].label);
    else if (event.key === "s") skip();
    else if (event.key === "/") search.input.focus();
    else return;
    event.preventDefault();
  });
  // What was taught changes what waits; the next texts are predicted anew.
  onChange(async () => {
    if (!queue.waiting.length || queue.version === state.version) return;
    queue.version = state.version;
    const soon = queue.waiting.slice(1, 1 + BATCH);
    if (soon.length) await score(soon);
    const done = queue.items.filter((entry) => entry.label !== null).length;
    progress.textContent = `${done.toLocaleString("en")} of ${count(queue.items.length, "text")} labelled, ${queue.waiting.length.toLocaleString("en")} waiting`;
  });
  window.addEventListener("beforeunload", (event) => { if (queue.items.some((entry) => entry.label !== null)) event.preventDefault(); });
}
