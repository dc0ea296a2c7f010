"""Tables of a report, as Markdown and HTML."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """Cells of text with a title and notes; `**` around a cell is bold."""

    title: str
    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    notes: tuple[str, ...] = ()

    def to_markdown(self) -> str:
        """Return the table in Markdown."""
        lines = [f"## {self.title}", ""]
        lines += ["| " + " | ".join(_escape_cell(cell) for cell in self.header) + " |"]
        lines += ["|" + "---|" * len(self.header)]
        lines += ["| " + " | ".join(_escape_cell(cell) for cell in row) + " |" for row in self.rows]
        if self.notes:
            lines += ["", *[f"- {footnote}" for footnote in self.notes]]
        return "\n".join(lines) + "\n"

    def to_html(self) -> str:
        """Return the table in HTML."""
        head = "".join(f"<th>{html.escape(cell)}</th>" for cell in self.header)
        body = "\n".join(
            "<tr>" + "".join(f"<td>{_html_cell(cell)}</td>" for cell in row) + "</tr>"
            for row in self.rows
        )
        notes = "".join(f"<li>{html.escape(footnote)}</li>" for footnote in self.notes)
        return (
            f"<h2>{html.escape(self.title)}</h2>\n<table>\n<thead><tr>{head}</tr></thead>\n"
            f"<tbody>\n{body}\n</tbody>\n</table>\n" + (f"<ul>{notes}</ul>\n" if notes else "")
        )


def _escape_cell(cell: str) -> str:
    """Keep a cell from ending its column."""
    return cell.replace("|", "\\|").replace("\n", " ")


def _html_cell(cell: str) -> str:
    """Return a cell in HTML, bold where asterisks say so."""
    if cell.startswith("**") and cell.endswith("**"):
        return f"<b>{html.escape(cell[2:-2])}</b>"
    return html.escape(cell)
