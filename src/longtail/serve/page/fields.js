// Records: a form for the fields of a model, and the text that holds a record whole (a JSON object).

import { debounce, el, visible } from "./dom.js";

/** Return the record of some values as a text; blank ones are left out. */
export function writeRecord(names, values) {
  const known = names.filter((name) => values[name] != null && String(values[name]).trim() !== "");
  return known.length ? JSON.stringify(Object.fromEntries(known.map((name) => [name, values[name]]))) : "";
}

/** Return the values of a text that holds a record; null for a plain text. */
function readRecord(fields, text) {
  if (!fields || !text.startsWith("{")) return null;
  try { return JSON.parse(text); } catch { return null; }
}

/** Return the words of a document: its texts, joined by a blank, as the service counts characters. */
export function plainText(fields, text) {
  const record = readRecord(fields, text);
  return record ? Object.keys(fields).filter((name) => fields[name] === "text" && record[name] != null).map((name) => record[name]).join(" ") : text;
}

/** Return a document as people read it: a line for each field. */
export function showDocument(fields, text) {
  const record = readRecord(fields, text);
  return record ? Object.entries(record).map(([name, value]) => el("div", {}, el("span", { class: "quiet" }, `${visible(name)}: `), visible(Array.isArray(value) ? value.join("; ") : value))) : [visible(text)];
}

/** Put a form in place of a box for texts; what it holds is written into the box. */
export function replaceByForm(fields, box, onInput) {
  const names = Object.keys(fields);
  const inputs = names.map((name, i) => fields[name] === "text"
    ? el("textarea", { id: `field-${i}`, rows: 2, spellcheck: "false" })
    : el("input", { id: `field-${i}`, type: "text", inputmode: fields[name] === "number" ? "decimal" : "text", autocomplete: "off", spellcheck: "false" }));
  const read = (name, i) => (fields[name] === "number" && Number.isFinite(Number(inputs[i].value)) && inputs[i].value.trim() ? Number(inputs[i].value) : inputs[i].value);
  const write = debounce(() => {
    box.value = writeRecord(names, Object.fromEntries(names.map((name, i) => [name, read(name, i)])));
    onInput();
  }, 100);
  for (const input of inputs) input.addEventListener("input", write);
  const form = el("div", { id: "fields" }, ...names.flatMap((name, i) => [el("label", { for: `field-${i}` }, visible(name)), inputs[i]]));
  box.hidden = true;
  document.querySelector(`label[for="${box.id}"]`).hidden = true;
  box.before(form);
  return {
    /** Show words in the first field of text. */
    fill: (words) => {
      const first = Math.max(0, names.findIndex((name) => fields[name] === "text"));
      inputs.forEach((input, i) => { input.value = i === first ? words : ""; });
      write();
      inputs[first].focus();
    },
    element: form,
  };
}
