// The precision to abstain at: on average or of each answer, and which answers it keeps.

import { el, percent } from "./dom.js";

/** Return the classes that a threshold keeps: of one label the first, unless none of these is likelier. */
export function keptBy({ threshold }, { classes, none }) {
  const kept = threshold === null ? [] : classes.filter(({ probability }) => (probability ?? 0) >= threshold);
  return none == null ? kept : kept.slice(0, 1).filter(({ probability }) => probability >= none);
}

/** Say what is asked for. */
export const describePrecision = (precision, each) => (each ? `each answer at least ${percent(precision)}` : `${percent(precision)} on average`);

/** Return a switch between a precision on average and of each answer; `onPick` is told whether it is of each. */
export function eachSwitch(id, onPick) {
  const options = [false, true].map((each) => {
    const title = el("span", {});
    const input = el("input", { type: "radio", name: id, id: `${id}-${each ? "each" : "average"}`, on: { change: () => onPick(each) } });
    return { each, title, input };
  });
  const root = el("fieldset", { class: "switch" }, el("legend", { class: "hidden" }, "What must reach the precision"),
    ...options.map(({ input, title }) => el("label", {}, input, title)));
  const set = (precision, isEach) => {
    for (const { each, title, input } of options) {
      title.textContent = describePrecision(precision, each);
      input.checked = each === isEach;
    }
  };
  return { root, set };
}
