// Classes: browse, look at, rename, merge and remove them; the history of changes, with undo.

import { byId, count, debounce, el, nameOf, say, visible, warn } from "./dom.js";
import { change, classId, onChange, request, state, undo } from "./api.js";
import { classSearch } from "./combo.js";

const PAGE = 25;
const view = byId("view-classes");
let offset = 0;
let shown = null;

const query = el("input", { id: "class-query", type: "search", maxlength: 1000, on: { input: debounce(() => { offset = 0; list(); }, 150) } });
const sort = el("select", { id: "class-sort", on: { change: () => { offset = 0; list(); } } },
  el("option", { value: "size" }, "largest first"), el("option", { value: "name" }, "by name"));
const rows = el("div", { id: "class-list" });
const details = el("div", { id: "class-details", "aria-live": "polite" });
const history = el("div", { id: "history" });

async function list() {
  const parameters = { limit: PAGE, offset, sort: sort.value };
  if (query.value.trim()) Object.assign(parameters, { query: query.value, offset: 0 });
  try {
    const answer = await request("GET", `/v1/classes?${new URLSearchParams(parameters)}`);
    const paged = !query.value.trim();
    rows.replaceChildren(
      el("table", {}, el("caption", { class: "quiet" }, count(answer.total, "class")),
        el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Class"), el("th", { scope: "col", class: "number" }, "Documents"))),
        el("tbody", {}, ...answer.classes.map((entry) => el("tr", {},
          el("td", {}, el("button", { type: "button", on: { click: () => show(entry.label) } }, nameOf(entry.label))),
          el("td", { class: "number" }, entry.size.toLocaleString("en")))))),
      paged ? el("div", { class: "row" },
        el("button", { type: "button", disabled: offset === 0, on: { click: () => { offset = Math.max(0, offset - PAGE); list(); } } }, "Previous"),
        el("button", { type: "button", disabled: offset + PAGE >= answer.total, on: { click: () => { offset += PAGE; list(); } } }, "Next")) : "");
  } catch (error) { warn(error.message); }
}

async function show(label) {
  shown = label;
  try {
    const answer = await request("GET", `/v1/classes/${classId(label)}`);
    const may = Boolean(state.model?.may_teach);
    details.replaceChildren(
      el("h2", {}, nameOf(answer.label)),
      el("p", { class: "quiet" }, count(answer.size, "document")),
      el("h3", {}, "Terms"),
      el("p", {}, ...answer.terms.flatMap((entry) => [el("bdi", {}, visible(entry.term)), " · "]).slice(0, -1)),
      el("h3", {}, "Easily taken for"),
      el("ul", {}, ...answer.neighbours.map((entry) => el("li", {}, el("button", { type: "button", on: { click: () => show(entry.label) } }, nameOf(entry.label))))),
      may ? editor(answer.label) : el("p", { class: "quiet" }, "Changing it needs a token."));
  } catch (error) { details.replaceChildren(); warn(error.message); }
}

function editor(label) {
  let into = null;
  const name = el("input", { id: "new-name", type: "text", value: label, maxlength: 1000 });
  const target = classSearch({ label: "Merge into", onPick: (picked) => { into = picked; } });
  const edit = async (body, done, next) => {
    const answer = await change("PATCH", `/v1/classes/${classId(label)}`, body);
    if (answer) { say(`Change ${answer.change}: ${done}`); if (next === null) { shown = null; details.replaceChildren(); } else await show(next); await list(); }
  };
  return el("div", { class: "card" },
    el("div", { class: "row" }, el("div", { class: "grow" }, el("label", { for: "new-name" }, "Name"), name),
      el("button", { type: "button", on: { click: () => name.value !== String(label) && edit({ rename: name.value }, "renamed.", name.value) } }, "Rename")),
    el("div", { class: "row" }, target.root,
      el("button", { type: "button", on: { click: () => into !== null && edit({ merge_into: into }, "merged.", into) } }, "Merge")),
    el("div", { class: "row" }, el("button", { type: "button", on: { click: () => confirm(`Remove ${visible(label)} with all its documents? It can be undone.`) && edit({ remove: true }, "removed.", null) } }, "Remove")));
}

async function showHistory() {
  try {
    const answer = await request("GET", "/v1/changes?limit=30");
    history.replaceChildren(answer.total ? el("table", {},
      el("caption", { class: "quiet" }, `${count(answer.total, "change")} since the model file was written`),
      el("thead", {}, el("tr", {}, ...["No.", "When", "Who", "What", ""].map((title) => el("th", { scope: "col" }, title || el("span", { class: "quiet" }, "Undo"))))),
      el("tbody", {}, ...answer.changes.map((entry) => el("tr", { class: entry.in_effect ? "" : "undone" },
        el("td", { class: "number" }, String(entry.number)),
        el("td", {}, new Date(entry.time).toLocaleString()),
        el("td", {}, el("bdi", {}, visible(entry.by ?? ""))),
        el("td", {}, describe(entry)),
        el("td", {}, entry.in_effect && state.model?.may_teach
          ? el("button", { type: "button", "aria-label": `Undo change ${entry.number}`, on: { click: async () => { const answer = await undo([entry.number]); if (answer) say(`Change ${answer.change}: change ${entry.number} is undone.`); } } }, "Undo") : ""))))) : el("p", { class: "quiet" }, "Nothing was changed since the model file was written."));
  } catch (error) { warn(error.message); }
}

function describe({ action, content, n_documents: n }) {
  if (action === "rename") return el("span", {}, "renamed ", nameOf(content.old), " to ", nameOf(content.new));
  if (action === "merge") return el("span", {}, "merged ", nameOf(content.source), " into ", nameOf(content.into));
  if (action === "remove") return el("span", {}, "removed ", nameOf(content.label));
  if (action === "undo") return el("span", {}, `undid ${content.changes.join(", ")}`);
  if (content.labels) return el("span", {}, `${action === "teach" ? "taught" : "forgot"} ${count(n, "document")}: `, nameOf(content.labels.slice(0, 3).join(", ")));
  return el("span", {}, visible(action));
}

export function startClasses() {
  view.append(el("div", { class: "columns" },
    el("div", {}, el("div", { class: "row" },
      el("div", { class: "grow" }, el("label", { for: "class-query" }, "Search"), query),
      el("div", {}, el("label", { for: "class-sort" }, "Order"), sort)), rows),
    el("div", {}, details, el("h2", {}, "History"), history)));
  onChange(() => { if (!view.hidden) { list(); showHistory(); if (shown !== null) show(shown); } });
}

export function openClasses() { list(); showHistory(); }
