"use strict";
// The table of classes, worst first: sorted by a click on a column, filtered, twenty-five rows at a time.
(() => {
  const data = JSON.parse(document.getElementById("classes-data").textContent);
  const table = document.getElementById("classes"), body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const filter = document.getElementById("classes-filter"), shown = document.getElementById("classes-shown");
  const more = document.getElementById("classes-more"), least = document.getElementById("classes-least");
  const PAGE = 25;
  let column = heads.length - 1, falling = false, limit = PAGE;

  const compare = (a, b) => {
    const x = a[column], y = b[column];
    if (x === y) return 0;
    if (x === null) return 1;  // what is not known comes last, either way
    if (y === null) return -1;
    const order = typeof x === "string" ? x.localeCompare(y) : x - y;
    return falling ? -order : order;
  };
  const write = (value, i) => value === null ? "–" : i === 0 ? value : i > 4 ? (100 * value).toFixed(1) + "%" : value.toLocaleString("en");

  function draw() {
    const wanted = filter.value.toLowerCase();
    const fewest = Number(least.value) || 0;
    const rows = data.filter((row) => row[2] >= fewest && row[0].toLowerCase().includes(wanted)).sort(compare);
    body.replaceChildren(...rows.slice(0, limit).map((row) => {
      const line = document.createElement("tr");
      row.forEach((value, i) => {
        const cell = line.insertCell();
        cell.textContent = write(value, i);
        if (i) cell.className = "number";
      });
      return line;
    }));
    heads.forEach((head, i) => head.setAttribute("aria-sort", i !== column ? "none" : falling ? "descending" : "ascending"));
    shown.textContent = `${Math.min(limit, rows.length).toLocaleString("en")} of ${rows.length.toLocaleString("en")} classes`;
    more.hidden = limit >= rows.length;
  }
  heads.forEach((head, i) => head.firstElementChild.addEventListener("click", () => {
    falling = column === i ? !falling : i > 0 && i < 5;  // shares worst first
    column = i;
    limit = PAGE;
    draw();
  }));
  for (const field of [filter, least]) field.addEventListener("input", () => { limit = PAGE; draw(); });
  more.addEventListener("click", () => { limit += 250; draw(); });
  draw();
})();
