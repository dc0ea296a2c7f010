// The service: one function for each thing it does, and what all views share.

import { warn } from "./dom.js";

const PRECISION = "longtail precision";
const EACH = "longtail each";

export const state = {
  model: null, version: "", token: "",
  precision: Number(localStorage.getItem(PRECISION)) || 0.9, each: localStorage.getItem(EACH) === "true",
};
const listeners = new Set();

/** Be told when the model has another version, or the caller another token. */
export const onChange = (listener) => listeners.add(listener);
const tell = () => listeners.forEach((listener) => listener());

export class ApiError extends Error {
  constructor(body) { super(body.detail || body.title || "The service does not answer."); this.status = body.status || 0; }
}

export async function request(method, path, body) {
  const headers = {};
  if (state.token) headers.Authorization = `Bearer ${state.token}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch {
    throw new ApiError({ detail: "The service does not answer. Is it still running?" });
  }
  const answer = await response.json().catch(() => ({ status: response.status }));
  if (!response.ok) throw new ApiError({ status: response.status, ...answer });
  if (answer.version && answer.version !== state.version) {
    const known = state.version !== "";
    state.version = answer.version;
    if (known && !path.startsWith("/v1/model")) refresh();
  }
  return answer;
}

/** Set below which precision the model abstains, on average or `each` answer; this browser remembers it. */
export function setPrecision(precision, each = state.each) {
  Object.assign(state, { precision, each });
  localStorage.setItem(PRECISION, String(precision));
  localStorage.setItem(EACH, String(each));
  tell();
}

/** Ask what is served, and tell the views. */
export async function refresh() {
  try {
    state.model = await request("GET", "/v1/model");
    state.version = state.model.version;
  } catch (error) {
    state.model = null;
    warn(error.message);
  }
  tell();
}

export const predict = (documents, more = {}) => request("POST", "/v1/predict", { documents, ...more });
export const explain = (text, label) => request("POST", "/v1/explain", { text, label, top_terms: 8 });

/** Return from which probability on a precision is reached; asked once for each version. */
export function findThreshold(precision, each) {
  const key = `${state.version} ${precision} ${each}`;
  if (findThreshold.key !== key) {
    findThreshold.key = key;
    findThreshold.found = request("GET", `/v1/threshold?${new URLSearchParams({ precision, each })}`);
    findThreshold.found.catch(() => { findThreshold.key = ""; });
  }
  return findThreshold.found;
}

/** Return texts to begin with; asked once. */
export async function findExamples() {
  findExamples.found ??= request("GET", "/v1/examples").catch((error) => { findExamples.found = null; throw error; });
  return (await findExamples.found).examples;
}

export const searchClasses = (query, limit = 12) =>
  request("GET", `/v1/classes?${new URLSearchParams({ query, limit })}`);

/** Make a change against the version that is on the screen; someone else's is shown first. */
export async function change(method, path, body, against = state.version) {
  try {
    const answer = await request(method, path, { ...body, version: against });
    await refresh();
    return answer;
  } catch (error) {
    if (error.status === 409) {
      await refresh();
      warn("Someone else has changed the model since. What you see is up to date now: look again, then repeat.");
    } else warn(error.message);
    return null;
  }
}

export const teach = (documents, against) => change("POST", "/v1/teach", { documents }, against);
export const undo = (changes, against) => change("POST", "/v1/undo", changes ? { changes } : {}, against);

/** The id of a class in an address: s and base64url of its UTF-8, or n and a number. */
export function classId(label) {
  if (typeof label !== "string") return `n${label}`;
  const bytes = new TextEncoder().encode(label);
  const text = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  return `s${btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
}
