// History: what was changed since the model file was written, by whom, each with its undo.

import { button, count, el, nameOf, say, visible, warn } from "./dom.js";
import { request, state, undo } from "./api.js";

const PAGE = 20;

function describe({ action, content, n_documents: n }) {
  if (action === "rename") return el("span", {}, "renamed ", nameOf(content.old), " to ", nameOf(content.new));
  if (action === "merge") return el("span", {}, "merged ", nameOf(content.source), " into ", nameOf(content.into));
  if (action === "remove") return el("span", {}, "removed ", nameOf(content.label));
  if (action === "describe") return el("span", {}, "described ", nameOf(content.label), content.text ? el("small", { class: "quiet clipped" }, visible(content.text)) : "");
  if (action === "hierarchy") return el("span", {}, content.n_nodes ? `gave the classes a hierarchy of ${count(content.n_nodes, "node")}` : "took the hierarchy away");
  if (action === "move") return el("span", {}, "moved ", nameOf(content.label), content.parents.length ? " below " : " to the top", nameOf(content.parents.join(", ")));
  if (action === "undo") return el("span", {}, `undid ${content.changes.join(", ")}`);
  if (!content.labels) return el("span", {}, visible(action));
  const labels = [...new Set(content.labels.flat())];
  return el("span", {}, `${action === "teach" ? "taught" : "forgot"} ${count(n, "document")}: `, nameOf(labels.slice(0, 3).join(", ") + (labels.length > 3 ? ", …" : "")),
    el("small", { class: "quiet clipped" }, visible(content.documents?.[0] ?? "")));
}

/** Return a panel with the newest changes; `show` reads them again. */
export function historyPanel() {
  const list = el("div", { id: "history" });
  let offset = 0;

  const take = async (entry) => {
    const answer = await undo([entry.number]);
    if (answer) say(`Change ${answer.change}: change ${entry.number} is undone.`);
  };
  const turn = (step) => () => { offset = Math.max(0, offset + step); show(); };

  async function show() {
    try {
      const answer = await request("GET", `/v1/changes?${new URLSearchParams({ limit: PAGE, offset })}`);
      if (!answer.total) { list.replaceChildren(el("p", { class: "quiet" }, "Nothing was changed since the model file was written.")); return; }
      list.replaceChildren(
        el("table", {},
          el("caption", { class: "quiet" }, `${count(answer.total, "change")} since the model file was written`),
          el("thead", {}, el("tr", {}, ...["No.", "Who, when", "What"].map((title) => el("th", { scope: "col" }, title)), el("th", { scope: "col" }, el("span", { class: "hidden" }, "Undo")))),
          el("tbody", {}, ...answer.changes.map((entry) => el("tr", { class: entry.in_effect ? "" : "undone" },
            el("td", { class: "number" }, String(entry.number)),
            el("td", {}, el("bdi", {}, visible(entry.by ?? "")), el("small", { class: "quiet" }, new Date(entry.time).toLocaleString())),
            el("td", {}, describe(entry)),
            el("td", {}, entry.in_effect && state.model?.may_teach ? button("Undo", () => take(entry), { "aria-label": `Undo change ${entry.number}` }) : ""))))),
        answer.total > PAGE ? el("div", { class: "row" },
          button("Newer", turn(-PAGE), { disabled: offset === 0 }), button("Older", turn(PAGE), { disabled: offset + PAGE >= answer.total })) : "");
    } catch (error) { warn(error.message); }
  }

  return { root: el("section", { class: "card" }, el("h2", {}, "History"), list), show };
}
