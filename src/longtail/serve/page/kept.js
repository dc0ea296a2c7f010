// The queue of a model, kept in this browser (IndexedDB): its file once, then each decision by row.

const STORE = "queue";
const FILE = "file"; // the key of the file; those of decisions are numbers
let database = null;

const settled = (request) => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});

/** Run something in a transaction until it is committed; return false where this browser keeps nothing. */
async function run(mode, work) {
  try {
    const transaction = (await database).transaction(STORE, mode);
    const committed = new Promise((resolve, reject) => {
      transaction.oncomplete = resolve;
      transaction.onabort = () => reject(transaction.error);
    });
    const [found] = await Promise.all([work(transaction.objectStore(STORE)), committed]);
    return found ?? true;
  } catch { return false; }
}

/** Return what was kept for a model: the file and its decisions, each with its row; null where there is nothing. */
export async function readKept(model) {
  database = new Promise((resolve, reject) => {
    const request = indexedDB.open(`longtail queue of ${model}`, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE);
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
  const kept = await run("readonly", (store) => Promise.all([settled(store.getAllKeys()), settled(store.getAll())]));
  if (!kept) return null;
  const entries = new Map(kept[0].map((key, i) => [key, kept[1][i]]));
  const file = entries.get(FILE);
  entries.delete(FILE);
  return file ? { file, decisions: entries } : null;
}

/** Keep a file instead of the one before and its decisions. */
export const keepFile = (file) => run("readwrite", async (store) => { store.clear(); await settled(store.put(file, FILE)); });

/** Keep decisions by row; null takes one away. */
export const keepDecisions = (decisions) => run("readwrite", (store) => Promise.all(
  decisions.map(([row, decision]) => settled(decision ? store.put(decision, row) : store.delete(row)))));

export const dropKept = () => run("readwrite", (store) => settled(store.clear()));
