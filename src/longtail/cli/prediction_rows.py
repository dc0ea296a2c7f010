"""Predictions -> CSV, TSV, JSON lines and Parquet.

`Prediction` is a row; `Columns` says what is written of it.
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


@dataclass(frozen=True)
class Columns:
    """The columns of written predictions: document, label set or class, ranking."""

    has_files: bool  # whether there are several
    keep: list[str]
    multilabel: bool
    top: int  # classes of the ranking
    calibrated: bool  # whether scores are probabilities
    named: bool  # whether any class has a text
    separator: str | None  # of labels in a cell; None where the format has lists
    escape: bool  # whether texts that a spreadsheet would evaluate get an apostrophe
    truth: bool  # whether the true label is written

    @classmethod
    def of(
        cls,
        classifier: Any,
        source: Source,
        top: int | None,
        escape: bool,
        written: str,
        truth: bool = False,
    ) -> Columns:
        """Return the columns for the predictions of a model."""
        sets, has_lists = classifier.multilabel_, written in ("jsonl", "parquet")
        separator = None if has_lists else source.layout.label_separator or _SEPARATOR
        calibrated, named = knows_probabilities(classifier), bool(class_texts(classifier))
        top = top or (0 if sets else 1)
        has_files = len(source.paths) > 1
        return cls(has_files, source.keep, sets, top, calibrated, named, separator, escape, truth)

    @property
    def _values(self) -> str:
        return "probabilities" if self.calibrated else "scores"

    def kinds(self) -> dict[str, str]:
        """Return the kind of each column of a table by name: text, integer or number."""
        files = {"file": "text"} if self.has_files else {}
        kinds = {**files, "line": "integer", **dict.fromkeys(self.keep, "text")}
        text, score = ("texts", "numbers") if self.separator is None else ("text", "text")
        if self.truth:
            kinds["truth"] = text if self.multilabel else "text"
        if self.multilabel:
            names = {"label_texts": text} if self.named else {}
            kinds |= {"labels": text, **names, self._values: score}
        value = "probability" if self.calibrated else "score"
        for rank in range(1, self.top + 1):
            ending = "" if rank == 1 else f"_{rank}"
            texts = {f"class_text{ending}": "text"} if self.named else {}
            kinds |= {f"class{ending}": "text", **texts, f"{value}{ending}": "number"}
        return kinds

    def cells(self, row: Prediction) -> list[Any]:
        """Return a row of a table; None where there was no candidate."""
        cells = [row.path] * self.has_files + [row.line, *map(str, row.kept)]
        cells += [self._join(row.truth)] * self.truth
        if self.multilabel:
            n_labels = len(row.label)
            scores: Any = row.scores[:n_labels]
            texts: list[Any] = [row.texts[:n_labels]] * self.named
            if self.separator is not None:
                scores = self.separator.join(f"{score:.4f}" for score in scores)
                texts = [TEXT_SEPARATOR.join(text or "" for text in some) for some in texts]
            cells += [self._join([str(label) for label in row.label]), *texts, scores]
        for i in range(self.top):
            is_found = i < len(row.classes)
            label = row.classes[i] if is_found else None
            if i == 0 and not self.multilabel:
                label = row.label  # which is empty where the model is not sure enough
            texts = [row.texts[i] if is_found and label is not None else None] * self.named
            cells += [label, *texts, row.scores[i] if is_found else None]
        return cells

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

    def fields(self, row: Prediction) -> dict[str, Any]:
        """Return a row as a JSON object."""
        files = {"file": row.path} if self.has_files else {}
        kept = dict(zip(self.keep, row.kept, strict=True))
        truth = {"truth": row.truth} if self.truth else {}
        predicted = {"labels" if self.multilabel else "class": row.label}
        texts = {"class_texts": row.texts} if self.named else {}
        ranking = {"classes": row.classes, **texts, self._values: row.scores}
        return {**files, "line": row.line, **kept, **truth, **predicted, **ranking}


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
    """Open a file of predictions; yield the function that writes rows."""
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
