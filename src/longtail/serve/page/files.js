// Files of texts: CSV (RFC 4180, also with tabs or semicolons) and JSON lines, read and written here.

const NOT_TEXT = [["PAR1", "a Parquet file"], ["PK\x03\x04", "a zip or Excel file"], ["\x1f\x8b", "compressed"], ["\x28\xb5\x2f\xfd", "compressed"], ["BZh", "compressed"], ["\xfd7zXZ", "compressed"]];

/** Return the text of a file; what is not text is refused with a sentence. */
export async function readFile(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  const start = String.fromCharCode(...bytes.subarray(0, 8));
  const kind = NOT_TEXT.find(([magic]) => start.startsWith(magic))?.[1] ?? (bytes.subarray(0, 65536).includes(0) ? "not a text" : null);
  if (kind) throw new Error(`${file.name} is ${kind}; Queue reads CSV and JSON Lines. On the command line, longtail predict reads Parquet and compressed files.`);
  try { return new TextDecoder("utf-8", { fatal: true }).decode(bytes); } catch { throw new Error(`${file.name} is not in UTF-8; save it as UTF-8 first.`); }
}

/** Return the rows of a CSV text, each an array of cells. */
export function parseCsv(text) {
  const head = text.slice(0, text.indexOf("\n") + 1 || text.length);
  const separator = ["\t", ";", ","].find((c) => head.includes(c)) ?? ",";
  const rows = [];
  let row = [], cell = "", quoted = false;
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (quoted) {
      if (c !== '"') cell += c;
      else if (text[i + 1] === '"') { cell += '"'; i++; }
      else quoted = false;
    } else if (c === '"' && cell === "") quoted = true;
    else if (c === separator) { row.push(cell); cell = ""; }
    else if (c === "\n" || c === "\r") {
      if (c === "\r" && text[i + 1] === "\n") i++;
      row.push(cell); rows.push(row); row = []; cell = "";
    } else cell += c;
  }
  if (cell !== "" || row.length) { row.push(cell); rows.push(row); }
  return rows.filter((cells) => cells.length > 1 || cells[0] !== "");
}

/** Return records with the columns that they have, the longest texts first; those wanted may hold numbers. */
export function readTexts(name, content, wanted = []) {
  const text = content.replace(/^\ufeff/, "");
  let records;
  if (/\.(jsonl|ndjson|json)$/i.test(name)) {
    records = text.split("\n").filter((line) => line.trim()).map((line, i) => {
      let value;
      try { value = JSON.parse(line); } catch { throw new Error(`Line ${i + 1} is not JSON.`); }
      if (typeof value === "string") return { text: value };
      if (value === null || typeof value !== "object" || Array.isArray(value)) throw new Error(`Line ${i + 1} is neither a text nor an object.`);
      return value;
    });
  } else {
    const [header, ...rows] = parseCsv(text);
    if (!header) throw new Error("The file is empty.");
    const names = header.length === 1 && rows.length === 0 ? null : header;
    records = names ? rows.map((cells) => Object.fromEntries(names.map((column, i) => [column, cells[i] ?? ""]))) : [{ text: header[0] }];
  }
  if (!records.length) throw new Error("The file has no texts.");
  const columns = [...new Set(records.slice(0, 100).flatMap(Object.keys))].filter((column) => wanted.includes(column) || records.some((r) => typeof r[column] === "string"));
  if (!columns.length) throw new Error("The file has no column of texts.");
  const total = (column) => records.slice(0, 100).reduce((sum, r) => sum + String(r[column] ?? "").length, 0);
  columns.sort((a, b) => (b === "text") - (a === "text") || total(b) - total(a));
  return { records, columns };
}

/** Return what a text may be read from, by title: the columns of the fit together, then each column. A record may lack some. */
export function textChoices(columns, wanted, areFields = false) {
  const isThere = wanted.length && (areFields ? wanted.some((name) => columns.includes(name)) : wanted.every((name) => columns.includes(name)));
  return new Map([...(isThere ? [[wanted.join(" + "), wanted]] : []), ...columns.map((name) => [name, [name]])]);
}

/** Return a cell of a CSV file; what a spreadsheet would take for a formula gets a quote before it. */
function cell(value, separator) {
  const joined = Array.isArray(value) ? value.join(separator) : value; // as --label-separator reads it
  let text = joined == null ? "" : typeof joined === "object" ? JSON.stringify(joined) : String(joined);
  if (/^[=+\-@\t\r]/.test(text) && typeof joined === "string") text = `'${text}`;
  return /[",\n\r;\t]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function writeCsv(records, separator) {
  const columns = [...new Set(records.flatMap(Object.keys))];
  return [columns, ...records.map((r) => columns.map((c) => r[c]))].map((row) => row.map((value) => cell(value, separator)).join(",")).join("\r\n") + "\r\n";
}

export const writeJsonl = (records) => records.map((record) => JSON.stringify(record)).join("\n") + "\n";

export function download(name, content) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type: "text/plain" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
