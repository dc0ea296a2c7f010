// Audit: a random sample of what was accepted unseen, judged by a person; measured beside promised precision.

import { state } from "./api.js";
import { button, el, nameOf, percent, warn } from "./dom.js";
import { showDocument } from "./fields.js";

const SAMPLE = 50;

/** The interval of Wilson for a share, at 95 %. */
function wilson(successes, n) {
  const z = 1.96, p = successes / n, middle = p + z * z / (2 * n);
  const half = z * Math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)), scale = 1 + z * z / n;
  return [(middle - half) / scale, (middle + half) / scale];
}

function shuffle(list) { // Fisher and Yates
  for (let i = list.length - 1; i > 0; i--) {
    const j = Math.floor(Math.random() * (i + 1));
    [list[i], list[j]] = [list[j], list[i]];
  }
  return list;
}

/**
 * Return a panel that asks, one by one, whether labels are correct. A sample is of (text, label)
 * pairs; `listItems` lists the texts, `onReject` is told of a wrong pair.
 */
export function auditPanel({ listItems, onReject }) {
  const root = el("div", { id: "queue-audit" });
  let sample = [], judged = [];

  function start() {
    const known = new Set(judged.map(({ item, entry }) => `${item.row} ${JSON.stringify(entry.label)}`));
    const pool = listItems().filter((item) => item.how === "by precision")
      .flatMap((item) => item.chosen.map((entry) => ({ item, entry, promised: item.promised })))
      .filter(({ item, entry }) => !known.has(`${item.row} ${JSON.stringify(entry.label)}`));
    if (!pool.length) { warn(judged.length ? "All of it is audited." : "Nothing was accepted by precision yet."); return; }
    sample = shuffle(pool).slice(0, SAMPLE);
    draw();
  }

  function judge(correct) {
    const pair = sample.shift();
    judged.push({ ...pair, correct });
    if (!correct) onReject(pair.item, pair.entry);
    draw();
  }

  function figures() {
    const n = judged.length, correct = judged.filter((pair) => pair.correct).length;
    const [low, high] = wilson(correct, n);
    const promised = judged.reduce((sum, pair) => sum + pair.promised, 0) / n;
    return el("dl", { id: "audit-figures", class: "figures" },
      el("div", {}, el("dt", {}, "promised"), el("dd", {}, percent(promised))),
      el("div", {}, el("dt", {}, "measured"), el("dd", {}, percent(correct / n))),
      el("div", {}, el("dt", {}, `${correct} of ${n}; 95 % interval`), el("dd", {}, `${percent(low)} to ${percent(high)}`)));
  }

  function draw() {
    const [pair] = sample;
    root.replaceChildren(
      judged.length ? figures() : "",
      pair ? el("div", { role: "group", "aria-label": "Audit" },
        el("div", { class: "text", tabindex: "0", role: "region", "aria-label": "Text to audit" }, ...showDocument(state.model?.fields, pair.item.text)),
        el("p", {}, "Is this ", nameOf(pair.entry), "?"),
        el("div", { class: "row" }, button("Yes", () => judge(true)), button("No", () => judge(false)),
          el("span", { class: "quiet keys" }, el("kbd", {}, "y"), " or ", el("kbd", {}, "n"), `; ${sample.length} to go`))) : "");
    if (pair) root.querySelector("button").focus();
  }

  return {
    root, start,
    clear() { sample = []; judged = []; root.replaceChildren(); },
    /** Take a key while a question is open and has the focus; return whether it was one. */
    onKey(key) {
      const isMine = sample.length > 0 && root.contains(document.activeElement) && (key === "y" || key === "n");
      if (isMine) judge(key === "y");
      return isMine;
    },
  };
}
