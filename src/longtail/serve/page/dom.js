// Elements from plain data. No markup is ever parsed: texts and names are text, whatever they hold.

const INVISIBLE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;
const SHORT = 80; // characters of a class's text up to which it stands for the class

/** Return a text in which what cannot be seen, or turns the direction, is spelled out. */
export function visible(text) {
  return String(text).replace(INVISIBLE, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Create an element; `on` holds event listeners, `style` CSS properties. */
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    else if (name === "style") Object.assign(element.style, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child != null && child !== false));
  return element;
}

export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

export const button = (title, click, attributes = {}) => el("button", { type: "button", ...attributes, on: { click } }, title);

/** Return what a class is called first, and what else there is to say: a short text goes before an id. */
function namesOf({ label, text }) {
  const name = visible(label);
  if (!text || text === label) return [name, ""];
  const said = visible(text.length > SHORT ? `${text.slice(0, SHORT)}…` : text);
  return text.length > SHORT ? [name, said] : [said, name];
}

/** A class by its name, isolated from the direction of what is around it. */
export function nameOf(entry) {
  const [first, second] = namesOf(typeof entry === "object" ? entry : { label: entry });
  return el("span", { class: "name" }, el("bdi", {}, first), second ? el("small", {}, el("bdi", {}, second)) : null);
}

export const spoken = (entry) => namesOf(typeof entry === "object" ? entry : { label: entry })[0];
export const percent = (p) => (p == null ? "" : `${(100 * p).toFixed(p > 0 && p < 0.0995 ? 1 : 0)} %`);
export const byId = (id) => document.getElementById(id);
export const number = (n) => n.toLocaleString("en");
export const count = (n, noun) => `${number(n)} ${noun}${n === 1 ? "" : noun.endsWith("s") ? "es" : "s"}`;

let timer;
function show(where, text, milliseconds) {
  for (const id of ["status", "alert"]) byId(id).textContent = id === where ? text : "";
  clearTimeout(timer);
  timer = setTimeout(() => { byId(where).textContent = ""; }, milliseconds);
}

export const say = (text) => show("status", text, 8000);
export const warn = (text) => show("alert", text, 15000);

/** Call a function once its calls have paused. */
export function debounce(fn, ms) {
  let waiting;
  return (...args) => { clearTimeout(waiting); waiting = setTimeout(() => fn(...args), ms); };
}
