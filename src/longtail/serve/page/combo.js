// A search for a class by name, with suggestions: the combobox pattern of WAI-ARIA.

import { debounce, el, nameOf, number, spoken, warn } from "./dom.js";
import { searchClasses } from "./api.js";

let made = 0;

/**
 * Return an element in which a class is searched; `onPick` is told the class, or null while it is
 * searched. What Enter picks is marked: the first class whose name begins so, or the one to be
 * created. Ctrl+Enter picks it and calls `onSubmit`, and so does Enter once something is picked.
 */
export function classSearch({ label, onPick, onSubmit = () => {}, mayCreate = false }) {
  const id = `search-${++made}`;
  const options = el("ul", { class: "options", id: `${id}-options`, role: "listbox", "aria-label": label, hidden: true });
  const input = el("input", {
    id, type: "text", role: "combobox", autocomplete: "off", spellcheck: "false", maxlength: 1000,
    "aria-expanded": "false", "aria-controls": options.id, "aria-autocomplete": "list",
  });
  const root = el("div", { class: "combo grow" }, el("label", { for: id }, label), input, options);
  let found = [];
  let active = -1;
  let picked = null;
  let awaited = null; // what to do with the suggestions that are on their way

  function close() {
    options.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
    active = -1;
  }

  function mark(i, isMoved = true) {
    active = found.length ? (i + found.length) % found.length : -1;
    [...options.children].forEach((option, j) => option.setAttribute("aria-selected", j === active ? "true" : "false"));
    if (active >= 0) {
      input.setAttribute("aria-activedescendant", options.children[active].id);
      if (isMoved) options.children[active].scrollIntoView({ block: "nearest" });
    }
  }

  function pick(i) {
    const entry = found[i];
    if (!entry) return;
    input.value = spoken(entry);
    close();
    picked = entry;
    onPick(entry);
  }

  /** Pick what is marked, once it is known, then go on. */
  function settle(next) {
    if (!input.value.trim()) return next();
    if (options.hidden || found.query !== input.value.trim()) { awaited = next; return look(); }
    pick(active);
    return next();
  }

  const look = debounce(async () => {
    const query = input.value.trim(), next = awaited;
    awaited = null;
    if (!query) return close();
    try {
      const answer = await searchClasses(query);
      if (query !== input.value.trim()) return;
      const isExact = (entry) => String(entry.label) === query || entry.text === query;
      found = [...answer.classes].sort((a, b) => isExact(b) - isExact(a));
      if (mayCreate && !found.some(isExact)) {
        const isNumber = found.some((entry) => typeof entry.label === "number") && /^-?\d{1,15}$/.test(query);
        // Behind the first class whose name begins so; before those that are only alike.
        found.splice(found[0]?.match === "prefix" ? 1 : 0, 0, { label: isNumber ? Number(query) : query, isNew: true });
      }
      found.query = query;
      options.replaceChildren(...found.map((entry, i) => el(
        "li", { role: "option", id: `${id}-${i}`, "aria-selected": "false", on: { mousedown: (event) => { event.preventDefault(); pick(i); } } },
        el("span", {}, entry.isNew ? "Create class " : "", nameOf(entry.label)),
        entry.isNew ? null : el("span", { class: "quiet number", title: "documents" }, `${entry.match === "score" ? "≈ " : ""}${number(entry.size)}`),
      )));
      options.hidden = !found.length;
      input.setAttribute("aria-expanded", String(found.length > 0));
      mark(0, false);
      if (next && found.length) settle(next);
    } catch (error) { warn(error.message); }
  }, 100);

  input.addEventListener("input", () => { picked = awaited = null; onPick(null); look(); });
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" && options.hidden) look();
    else if (event.key === "ArrowDown") mark(active + 1);
    else if (event.key === "ArrowUp") mark(active <= 0 ? found.length - 1 : active - 1);
    else if (event.key === "Enter" && picked) onSubmit();
    else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) settle(onSubmit);
    else if (event.key === "Enter" && input.value.trim()) settle(() => {});
    else if (event.key === "Escape" && !options.hidden) close();
    else return;
    event.preventDefault();
  });
  /** Show a class that was chosen elsewhere, or nothing. */
  function set(entry = null) {
    input.value = entry ? spoken(entry) : "";
    picked = entry;
    awaited = null;
    close();
  }

  return { root, input, set };
}
