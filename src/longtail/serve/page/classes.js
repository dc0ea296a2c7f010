// Classes: browse, look at, rename, describe, merge and remove them.

import { button, byId, count, debounce, el, nameOf, number, say, spoken, visible, warn } from "./dom.js";
import { change, classId, onChange, request, state } from "./api.js";
import { classSearch } from "./combo.js";
import { historyPanel } from "./history.js";
import { pathOf, treeView } from "./tree.js";
import { lookBelow } from "./try.js";

const PAGE = 25;
const view = byId("view-classes");
let offset = 0;
let shown = null;

const query = el("input", { id: "class-query", type: "search", maxlength: 1000, placeholder: "A name, a part of one, or words of its texts", on: { input: debounce(() => { offset = 0; list(); }, 150) } });
const sort = el("select", { id: "class-sort", on: { change: () => { offset = 0; list(); } } },
  el("option", { value: "size" }, "largest first"), el("option", { value: "name" }, "by name"));
const rows = el("div", { id: "class-list" });
const details = el("div", { id: "class-details", class: "card" }, el("p", { class: "quiet" }, "Choose a class to see its terms and the classes that it is easily taken for."));
const history = historyPanel();

let treeOf = ""; // the version whose tree is shown

/** Show the tree in place of the list, where that is wanted; a new version closes its nodes. */
async function listTree() {
  if (treeOf === state.version && byId("class-tree")) return;
  try {
    const tree = await treeView(show, (label) => { lookBelow(label); byId("tab-try").click(); });
    treeOf = state.version;
    if (sort.value === "tree") rows.replaceChildren(tree);
  } catch (error) { warn(error.message); }
}

async function list() {
  const byTree = sort.querySelector("[value=tree]");
  if (state.model?.hierarchy && !byTree) sort.append(el("option", { value: "tree" }, "by hierarchy"));
  if (!state.model?.hierarchy && byTree) byTree.remove();
  if (sort.value === "tree" && !query.value.trim()) { await listTree(); return; }
  const parameters = { limit: PAGE, offset, sort: sort.value === "tree" ? "name" : sort.value };
  if (query.value.trim()) Object.assign(parameters, { query: query.value, offset: 0 });
  try {
    const answer = await request("GET", `/v1/classes?${new URLSearchParams(parameters)}`);
    const paged = !query.value.trim();
    const last = Math.min(offset + PAGE, answer.total);
    const turn = (step) => () => { offset = Math.max(0, offset + step); list(); };
    rows.replaceChildren(
      el("table", { class: "listing" },
        el("caption", { class: "quiet" }, paged ? `${number(offset + 1)} to ${number(last)} of ${count(answer.total, "class")}` : `${answer.classes.length ? "best of" : "none of"} ${count(answer.total, "class")}`),
        el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Class"), el("th", { scope: "col", class: "number" }, "Documents"))),
        el("tbody", {}, ...answer.classes.map((entry) => el("tr", { class: entry.label === shown ? "chosen" : "" },
          el("td", {}, button(nameOf(entry), () => show(entry.label), { class: "link" }), entry.match === "score" ? el("small", { title: "found by the texts of the class, not by its name" }, "by its texts") : ""),
          el("td", { class: "number" }, number(entry.size)))))),
      paged ? el("div", { class: "row" },
        button("Previous", turn(-PAGE), { disabled: offset === 0 }), button("Next", turn(PAGE), { disabled: last >= answer.total })) : "");
  } catch (error) { warn(error.message); }
}

/** Show a class; `isMoved` says that a person asked for it, who is led there. */
async function show(label, isMoved = true) {
  shown = label;
  try {
    const answer = await request("GET", `/v1/classes/${classId(label)}`);
    if (shown !== label) return; // another class was asked for meanwhile
    const largest = answer.terms[0]?.weight || 1;
    const title = el("h2", { tabindex: "-1" }, nameOf(answer));
    details.replaceChildren(
      title,
      pathOf(answer.path) ?? "",
      el("p", { class: "quiet" }, count(answer.size, "document")),
      answer.text && answer.text !== spoken(answer) ? el("p", { class: "text" }, visible(answer.text)) : "",
      el("h3", {}, "Terms"),
      answer.terms.length ? el("ul", { class: "terms" }, ...answer.terms.map((entry) => el("li", { style: { opacity: String(0.6 + 0.4 * entry.weight / largest) } }, el("bdi", {}, visible(entry.term))))) : el("p", { class: "quiet" }, "None yet: it has no document."),
      el("h3", {}, "Easily taken for"),
      el("ul", { class: "terms" }, ...answer.neighbours.map((entry) => el("li", {}, button(nameOf(entry), () => show(entry.label), { class: "link" })))),
      state.model?.may_teach ? editor(answer) : el("p", { class: "quiet" }, "Changing it needs a token."));
    if (isMoved) { title.focus(); title.scrollIntoView({ block: "nearest" }); }
  } catch (error) {
    if (shown !== label) return;
    shown = null;
    details.replaceChildren();
    if (isMoved) warn(error.message); // else someone has renamed or removed it
  }
}

function editor({ label, text, parents }) {
  let into = null;
  const name = el("input", { id: "new-name", type: "text", value: label, maxlength: 1000 });
  const said = el("textarea", { id: "class-text", rows: 2, maxlength: 100000 }, text ?? "");
  const above = el("textarea", { id: "class-parents", rows: 2, maxlength: 100000 }, (parents ?? []).map((parent) => String(parent.label)).join("\n"));
  const target = classSearch({ label: "Merge into", onPick: (entry) => { into = entry; } });
  const edit = async (body, done, next, where = "classes") => {
    const answer = await change("PATCH", `/v1/${where}/${classId(label)}`, body);
    if (!answer) return;
    say(`Change ${answer.change}: ${done}`);
    if (next === null) { shown = null; details.replaceChildren(); } else await show(next);
    await list();
  };
  const rename = () => {
    const next = typeof label === "number" ? Number(name.value) : name.value;
    if (next !== label) edit({ rename: next }, "renamed.", next);
  };
  const move = () => edit({ parents: above.value.split("\n").filter((line) => line.trim()) }, "moved.", label, "hierarchy");
  const remove = () => confirm(`Remove ${visible(label)} with all its documents? It can be undone.`) && edit({ remove: true }, "removed.", null);
  return el("div", { class: "editor" },
    el("div", { class: "row" }, el("div", { class: "grow" }, el("label", { for: "new-name" }, "Name"), name), button("Rename", rename)),
    state.model.may_describe ? el("div", { class: "row" }, el("div", { class: "grow" }, el("label", { for: "class-text" }, "Text: another name, or a description"), said),
      button("Describe", () => said.value !== (text ?? "") && edit({ text: said.value }, "described.", label))) : "",
    state.model.hierarchy ? el("div", { class: "row" }, el("div", { class: "grow" }, el("label", { for: "class-parents" }, "Below: a node of the hierarchy in each line; none for the top"), above), button("Move", move)) : "",
    el("div", { class: "row" }, target.root, button("Merge", () => into !== null && edit({ merge_into: into.label }, "merged.", into.label))),
    el("div", { class: "row" }, button("Remove the class", remove, { class: "danger" })));
}

export function startClasses() {
  view.append(el("div", { class: "columns" },
    el("div", {}, el("div", { class: "row" },
      el("div", { class: "grow" }, el("label", { for: "class-query" }, "Search"), query),
      el("div", {}, el("label", { for: "class-sort" }, "Order"), sort)), rows),
    el("div", {}, details, history.root)));
  onChange(() => { if (!view.hidden) { list(); history.show(); if (shown !== null) show(shown, false); } });
}

export function openClasses() { list(); history.show(); }
