// A search for a class by name, with suggestions: the combobox pattern of WAI-ARIA.

import { debounce, el, nameOf, number, spoken, warn } from "./dom.js";
import { searchClasses } from "./api.js";

let made = 0;

/** Return an element in which a class is searched; `onPick` is told the class, or null while it is searched. */
export function classSearch({ label, onPick, mayCreate = false }) {
  const id = `search-${++made}`;
  const options = el("ul", { class: "options", id: `${id}-options`, role: "listbox", "aria-label": label, hidden: true });
  const input = el("input", {
    id, type: "text", role: "combobox", autocomplete: "off", spellcheck: "false", maxlength: 1000,
    "aria-expanded": "false", "aria-controls": options.id, "aria-autocomplete": "list",
  });
  const root = el("div", { class: "combo grow" }, el("label", { for: id }, label), input, options);
  let found = [];
  let active = -1;

  function close() {
    options.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
    active = -1;
  }

  function mark(i) {
    active = found.length ? (i + found.length) % found.length : -1;
    [...options.children].forEach((option, j) => option.setAttribute("aria-selected", j === active ? "true" : "false"));
    if (active >= 0) {
      input.setAttribute("aria-activedescendant", options.children[active].id);
      options.children[active].scrollIntoView({ block: "nearest" });
    }
  }

  function pick(i) {
    const entry = found[i];
    if (!entry) return;
    input.value = spoken(entry);
    close();
    onPick(entry);
  }

  const look = debounce(async () => {
    const query = input.value.trim();
    if (!query) return close();
    try {
      const answer = await searchClasses(query);
      if (query !== input.value.trim()) return;
      found = answer.classes;
      if (mayCreate && !found.some((entry) => String(entry.label) === query)) {
        const isNumber = found.some((entry) => typeof entry.label === "number") && /^-?\d{1,15}$/.test(query);
        found = [...found, { label: isNumber ? Number(query) : query, isNew: true }];
      }
      options.replaceChildren(...found.map((entry, i) => el(
        "li", { role: "option", id: `${id}-${i}`, "aria-selected": "false", on: { mousedown: (event) => { event.preventDefault(); pick(i); } } },
        el("span", {}, entry.isNew ? "Create class " : "", nameOf(entry.label)),
        entry.isNew ? null : el("span", { class: "quiet number", title: "documents" }, `${entry.match === "score" ? "≈ " : ""}${number(entry.size)}`),
      )));
      options.hidden = !found.length;
      input.setAttribute("aria-expanded", String(found.length > 0));
    } catch (error) { warn(error.message); }
  }, 100);

  input.addEventListener("input", () => { onPick(null); look(); });
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" && options.hidden) look();
    else if (event.key === "ArrowDown") mark(active + 1);
    else if (event.key === "ArrowUp") mark(active <= 0 ? found.length - 1 : active - 1);
    else if (event.key === "Enter" && active >= 0) pick(active);
    else if (event.key === "Escape" && !options.hidden) close();
    else return;
    event.preventDefault();
  });
  return { root, input, set(value) { input.value = value ?? ""; close(); } };
}
