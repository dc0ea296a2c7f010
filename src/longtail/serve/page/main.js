// The page: tabs, the token, and what the model is.

import { byId, count, visible } from "./dom.js";
import { onChange, refresh, state } from "./api.js";
import { startTry } from "./try.js";
import { startQueue } from "./queue.js";
import { openClasses, startClasses } from "./classes.js";
import { openQuality } from "./quality.js";

const tabs = [...byId("tabs").children];
const opened = { try: () => byId("text").focus(), classes: openClasses, quality: openQuality };
const nameOfTab = (tab) => tab.id.slice("tab-".length);

function select(tab) {
  for (const other of tabs) {
    const is = other === tab;
    other.setAttribute("aria-selected", String(is));
    other.tabIndex = is ? 0 : -1;
    byId(other.getAttribute("aria-controls")).hidden = !is;
  }
  history.replaceState(null, "", `#${nameOfTab(tab)}`);
}

for (const [i, tab] of tabs.entries()) {
  tab.addEventListener("click", () => { select(tab); opened[nameOfTab(tab)]?.(); });
  tab.addEventListener("keydown", (event) => {
    const to = { ArrowRight: i + 1, ArrowLeft: i - 1 + tabs.length, Home: 0, End: tabs.length - 1 }[event.key];
    if (to === undefined) return;
    const next = tabs[to % tabs.length];
    next.focus();
    select(next);
    if (next.id !== "tab-try") opened[nameOfTab(next)]?.(); // the focus stays on the tabs
    event.preventDefault();
  });
}

// The token comes after #, which no server sees, and leaves the address at once.
const hash = location.hash.slice(1);
const given = new URLSearchParams(hash).get("token");
if (given) {
  sessionStorage.setItem("token", given);
  history.replaceState(null, "", location.pathname);
}
state.token = given ?? sessionStorage.getItem("token") ?? "";

const dialog = byId("token-dialog");
byId("sign-in").addEventListener("click", () => { byId("token").value = state.token; dialog.showModal(); });
dialog.addEventListener("close", () => {
  if (dialog.returnValue !== "use") return;
  state.token = byId("token").value.trim();
  sessionStorage.setItem("token", state.token);
  refresh();
});

onChange(() => {
  const { model } = state;
  byId("model-name").textContent = model ? visible(model.name) : "";
  document.title = model ? `${visible(model.name)} · longtail` : "longtail";
  byId("model").textContent = model ? `${count(model.n_classes, "class")}, ${count(model.n_documents, "document")}, version ${model.version}` : "";
  byId("rights").textContent = !model ? "" : model.may_teach ? "teaching is allowed" : model.read_only ? "read-only" : "reading only: no token that teaches";
});

startTry();
startQueue();
startClasses();
refresh().then(() => tabs.find((tab) => nameOfTab(tab) === hash)?.click());
setInterval(() => { if (!document.hidden) refresh(); }, 15000);
