"""Predictions -> CSV, TSV, JSON lines and Parquet.

`Prediction` is a row; `Columns` and, for label sets, `SetColumns` say what is written of it.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longtail._optional import import_optional
from longtail.answers import class_texts, knows_probabilities
from longtail.cli.inputs import Source
from longtail.cli.outputs import STANDARD_OUTPUT, escape_formula, replaced_path, replacing
from longtail.cli.show import as_json_text, clean

if TYPE_CHECKING:
    from longtail.datasets.records import Chunk
    from longtail.results import TopK

FORMATS = "csv, tsv, jsonl or parquet"
_WRITTEN = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
}
_SEPARATOR = ";"  # of the labels of a document, where none is given
# Of the texts of labels in one cell, for people: a text may hold any mark, such as ';'.
TEXT_SEPARATOR = " | "


@dataclass(frozen=True)
class Prediction:
    """The prediction of one document.

    `label` is the class, or the list of labels of a model of label sets; None, or an empty list,
    where the model is not sure enough. `classes` and `scores` are the ranking; `texts` names its
    classes, None for those without a text.
    """

    path: str
    line: int
    kept: list[Any]
    label: Any
    classes: list[Any]
    scores: list[float]
    texts: list[str | None]
    truth: Any = None


def rank_rows(
    chunk: Chunk, ranking: TopK, labels: list[Any], top: int | None, texts: dict[Any, str]
) -> list[Prediction]:
    """Return the predictions of a chunk; of a label set the whole is shown at least."""
    rows = []
    for i, label in enumerate(labels):
        n_shown = max(top or 1, len(label) if isinstance(label, list) else 0)
        found = ranking[i][:n_shown]
        classes, scores = [c for c, _ in found], [s for _, s in found]
        named = [*map(texts.get, classes)]
        rows.append(
            Prediction(chunk.path, chunk.lines[i], chunk.kept[i], label, classes, scores, named)
        )
    return rows


class Columns:
    """The columns of predictions of one class each."""

    def __init__(
        self,
        source: Source,
        top: int,
        calibrated: bool,
        escape: bool,
        named: bool,
        separator: str | None = None,
        truth: bool = False,
    ) -> None:
        self.keep, self.top, self.escape = source.keep, top, escape
        self.separator = separator  # of label sets; None where the format has lists
        self.truth = truth  # whether the true label is written
        self.named = named  # whether any class has a text
        self.value = "probability" if calibrated else "score"
        self.values = "probabilities" if calibrated else "scores"
        self.files = len(source.paths) > 1

    def kinds(self) -> dict[str, str]:
        """Return what the columns of a table hold: text, an integer or a number, by name."""
        return {**self._first_kinds(), **self._ranked_kinds(1)}

    def cells(self, row: Prediction) -> list[Any]:
        """Return a row of a table; None where there was no candidate."""
        text = row.texts[0] if row.texts and row.label is not None else None
        best = [row.label, *[text] * self.named, row.scores[0] if row.scores else None]
        return [*self._first_cells(row), *best, *self._ranked_cells(row, 1)]

    def fields(self, row: Prediction) -> dict[str, Any]:
        """Return a row as a JSON object."""
        return {**self._first_fields(row), "class": row.label, **self._ranking(row)}

    def _ranking(self, row: Prediction) -> dict[str, Any]:
        """Return the ranking as parts of a JSON object."""
        texts = {"class_texts": row.texts} if self.named else {}
        return {"classes": row.classes, **texts, self.values: row.scores}

    def _first_kinds(self) -> dict[str, str]:
        """Return the columns that say which document it is."""
        files = {"file": "text"} if self.files else {}
        truth = {"truth": self._truth_kind} if self.truth else {}
        return {**files, "line": "integer", **dict.fromkeys(self.keep, "text"), **truth}

    _truth_kind = "text"

    def _first_cells(self, row: Prediction) -> list[Any]:
        """Return which document it is, as cells of a table."""
        truth = [self._join(row.truth)] * self.truth
        return [row.path] * self.files + [row.line, *map(str, row.kept), *truth]

    def _join(self, labels: Any) -> Any:
        """Return labels as one cell of a table of text."""
        if self.separator is None or not isinstance(labels, list):
            return labels
        for label in map(str, labels):
            if self.separator in label:
                raise ValueError(
                    f"the label {label!r} contains the separator {self.separator!r}; choose "
                    "another one (--label-separator), or write JSON lines or Parquet."
                )
        return self.separator.join(map(str, labels))

    def _first_fields(self, row: Prediction) -> dict[str, Any]:
        """Return which document it is, as parts of a JSON object."""
        files = {"file": row.path} if self.files else {}
        truth = {"truth": row.truth} if self.truth else {}
        return {**files, "line": row.line, **dict(zip(self.keep, row.kept, strict=True)), **truth}

    def _ranked_kinds(self, first: int) -> dict[str, str]:
        """Return the columns of the ranking from a rank on; the first has no number."""
        kinds: dict[str, str] = {}
        for i in range(first, self.top + 1):
            ending = "" if i == 1 else f"_{i}"
            texts = {f"class_text{ending}": "text"} if self.named else {}
            kinds |= {f"class{ending}": "text", **texts, f"{self.value}{ending}": "number"}
        return kinds

    def _ranked_cells(self, row: Prediction, first: int) -> list[Any]:
        """Return the cells of the ranking after the first so many."""
        cells: list[Any] = []
        for i in range(first, self.top):
            found = i < len(row.classes)
            text = [row.texts[i] if found else None] * self.named
            cells += [row.classes[i], *text, row.scores[i]] if found else [None, *text, None]
        return cells


class SetColumns(Columns):
    """The columns of predictions of label sets; in a table of text a separator joins labels."""

    @property
    def _truth_kind(self) -> str:  # type: ignore[override]
        return "texts" if self.separator is None else "text"

    def kinds(self) -> dict[str, str]:
        """Return what the columns of a table hold, by name."""
        text, score = ("texts", "numbers") if self.separator is None else ("text", "text")
        texts = {"label_texts": text} if self.named else {}
        labels_kinds = {"labels": text, **texts, self.values: score}
        return {**self._first_kinds(), **labels_kinds, **self._ranked_kinds(1)}

    def cells(self, row: Prediction) -> list[Any]:
        """Return a row of a table."""
        scores = row.scores[: len(row.label)]
        labels: Any = [str(label) for label in row.label]
        texts: list[Any] = [row.texts[: len(row.label)]] * self.named
        labels_cells: list[Any] = [labels, *texts, scores]
        if self.separator is not None:
            labels_cells = [
                self._join(labels),
                *(TEXT_SEPARATOR.join(text or "" for text in some) for some in texts),
                self.separator.join(f"{score:.4f}" for score in scores),
            ]
        return [*self._first_cells(row), *labels_cells, *self._ranked_cells(row, 0)]

    def fields(self, row: Prediction) -> dict[str, Any]:
        """Return a row as a JSON object."""
        return {**self._first_fields(row), "labels": row.label, **self._ranking(row)}


def choose_columns(
    classifier: Any,
    source: Source,
    top: int | None,
    escape: bool,
    written: str,
    truth: bool = False,
) -> Columns:
    """Return what is written of each prediction of a model."""
    calibrated, named = knows_probabilities(classifier), bool(class_texts(classifier))
    if not classifier.multilabel_:
        return Columns(source, top or 1, calibrated, escape, named, truth=truth)
    separator = source.layout.label_separator or _SEPARATOR
    has_lists = written in ("jsonl", "parquet")
    return SetColumns(
        source, top or 0, calibrated, escape, named, None if has_lists else separator, truth
    )


def find_written(out: Path, given: str | None, option: str = "--out") -> str:
    """Return the format to write; `option` is the one that names the file."""
    ending = "csv" if out == STANDARD_OUTPUT else _WRITTEN.get(out.suffix.lower(), "")
    written = given or ending
    if written not in _WRITTEN.values():
        choice = " or give --out-format " + FORMATS if option == "--out" else ""
        raise ValueError(
            f"--out-format must be {FORMATS}; got {given!r}."
            if given
            else f"the ending of {out} does not tell the format to write; end it in "
            f"{' '.join(_WRITTEN)}{choice}."
        )
    if written == "parquet" and out == STANDARD_OUTPUT:
        raise ValueError(f"Parquet is written to a file; give {option} FILE.parquet.")
    return written


@contextmanager
def open_output(
    out: Path, written: str, columns: Columns, inputs: list[Any]
) -> Iterator[Callable[[list[Prediction]], None]]:
    """Open a file of predictions; give what writes rows to it."""
    if written == "parquet":
        with replaced_path(out, inputs) as beside, _open_parquet(beside, columns) as write:
            yield write
        return
    with replacing(out, inputs) as target:
        if written == "jsonl":
            yield lambda rows: target.writelines(
                as_json_text(columns.fields(row)) + "\n" for row in rows
            )
            return
        shown = out == STANDARD_OUTPUT and sys.stdout.isatty()
        writer = csv.writer(
            target, delimiter="," if written == "csv" else "\t", lineterminator="\n"
        )

        def field(cell: Any) -> Any:
            if isinstance(cell, float):
                return f"{cell:.4f}"
            cell = escape_formula(cell) if columns.escape else cell
            return clean(cell) if shown and isinstance(cell, str) else cell

        writer.writerow(map(field, columns.kinds()))
        yield lambda rows: writer.writerows(map(field, columns.cells(row)) for row in rows)


@contextmanager
def _open_parquet(path: Path, columns: Columns) -> Iterator[Callable[[list[Prediction]], None]]:
    """Open a Parquet file; classes are text there."""
    pa = import_optional("pyarrow", "writing a Parquet file", "'longtail[data]'")
    from pyarrow import parquet

    types = {
        "text": pa.string(),
        "integer": pa.int64(),
        "number": pa.float64(),
        "texts": pa.list_(pa.string()),
        "numbers": pa.list_(pa.float64()),
    }
    kinds = columns.kinds()
    schema = pa.schema([pa.field(name, types[kind]) for name, kind in kinds.items()])
    with parquet.ParquetWriter(path, schema) as writer:

        def write(rows: list[Prediction]) -> None:
            cells = zip(*map(columns.cells, rows), strict=True)
            arrays = [
                pa.array(
                    [str(v) if v is not None and kind == "text" else v for v in column],
                    types[kind],
                )
                for column, kind in zip(cells, kinds.values(), strict=True)
            ]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))

        yield write
