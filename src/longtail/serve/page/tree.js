// The hierarchy: paths, the classes beside one, and a tree whose nodes are read when they are opened.

import { button, count, el, nameOf, number, spoken, visible, warn } from "./dom.js";
import { classId, request } from "./api.js";

const PAGE = 50;
const BESIDE = 12; // siblings that are offered at a time

/** Return some children of a node, or roots where there is none; `id` is that of the node. */
export const findNodes = (id, offset = 0, limit = PAGE) =>
  request("GET", `/v1/hierarchy?${new URLSearchParams({ ...(id === null ? {} : { node: id }), offset, limit })}`);

/** Say where a node is, from the top; `isWhole` names the node itself, too. */
export function pathOf(path, isWhole = false) {
  const above = isWhole ? path : path?.slice(0, -1);
  return above?.length ? el("span", { class: "path quiet" }, ...above.flatMap((label, i) => [i ? " › " : "", el("bdi", {}, visible(label))])) : null;
}

/** Return the classes beside one, each a button that `onPick` is told of; candidates come first. */
export async function siblings(entry, candidates, onPick) {
  if (!entry?.path || entry.path.length < 2) return "";
  const parent = entry.path.at(-2), likely = candidates.map((other) => JSON.stringify(other.label));
  const rank = ({ label }) => { const i = likely.indexOf(JSON.stringify(label)); return i < 0 ? likely.length : i; };
  const list = el("ul", { class: "chips" });
  const more = async (offset) => {
    const answer = await findNodes(classId(parent), offset, BESIDE);
    const others = answer.nodes.filter((node) => node.size !== null && node.label !== entry.label).sort((a, b) => rank(a) - rank(b));
    list.querySelector(".more")?.remove();
    list.append(...others.map((node) => el("li", {}, button(nameOf(node), () => onPick(node), { "aria-label": `Teach as ${spoken(node)}` }))));
    if (offset + BESIDE < answer.total) list.append(el("li", { class: "more" }, button(`${number(answer.total - offset - BESIDE)} more`, () => more(offset + BESIDE).catch((error) => warn(error.message)))));
  };
  await more(0);
  return list.childElementCount ? el("div", { id: "siblings" }, el("p", { class: "quiet" }, "One beside it, below ", el("bdi", {}, visible(parent)), ", which is taught at once:"), list) : "";
}

/** Return the tree; `onShow` is told which class was chosen, `onAsk` below which node to look. */
export function treeView(onShow, onAsk) {
  const branch = (id) => {
    const list = el("ul", { class: "tree" });
    const more = async (offset) => {
      const answer = await findNodes(id, offset);
      list.querySelector(":scope > .more")?.remove();
      list.append(...answer.nodes.map(leaf));
      const last = offset + answer.nodes.length;
      if (last < answer.total) list.append(el("li", { class: "more" }, button(`More of ${number(answer.total)}`, () => more(last).catch((error) => warn(error.message)))));
    };
    return { list, ready: more(0) };
  };
  const leaf = (node) => {
    const name = node.size === null ? nameOf(node) : button(nameOf(node), () => onShow(node.label), { class: "link" });
    const size = node.size === null ? "" : el("small", { class: "number" }, count(node.size, "document"));
    const item = el("li", {});
    let below = null;
    const toggle = async () => {
      const isOpen = opener.getAttribute("aria-expanded") === "true";
      opener.setAttribute("aria-expanded", String(!isOpen));
      if (below) { below.hidden = isOpen; return; }
      const { list, ready } = branch(node.id);
      below = list;
      item.append(list);
      try { await ready; } catch (error) { below = null; list.remove(); opener.setAttribute("aria-expanded", "false"); warn(error.message); }
    };
    const opener = node.n_children ? button("", toggle, { class: "opener", "aria-expanded": "false", "aria-label": `Below ${spoken(node)}: ${number(node.n_children)}` }) : el("span", { class: "opener" });
    const ask = node.n_children ? button("Look here", () => onAsk(node.label), { class: "link", "aria-label": `Look here, below ${spoken(node)}` }) : "";
    item.append(el("div", { class: "node" }, opener, name, size, ask));
    return item;
  };
  const { list, ready } = branch(null);
  list.id = "class-tree";
  return ready.then(() => list);
}
