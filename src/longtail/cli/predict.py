"""`longtail predict`: the classes of new documents, row by row."""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from longtail.cli.files import (
    STANDARD_OUTPUT,
    check_writable,
    escape_formula,
    replaced_path,
    replacing,
)
from longtail.cli.inputs import (
    Documents,
    Source,
    check_kind,
    load_model,
    n_terms_of,
    one_document,
    read_documents,
)
from longtail.cli.options import (
    AsJson,
    Layout,
    ModelPath,
    Quiet,
    TextColumns,
    Threads,
    reads_table,
)
from longtail.cli.show import (
    as_json_text,
    clean,
    clear_errors,
    count,
    print_json,
    print_note,
    print_table,
    progress,
)

_WRITTEN = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
}
_FORMATS = "csv, tsv, jsonl or parquet"
_TOP_OF_A_TEXT = 5


@dataclass(frozen=True)
class _Row:
    """What is predicted for one document; `label` is None where the model is not sure enough."""

    path: str
    line: int
    kept: list[str]
    label: Any
    classes: list[Any]
    scores: list[float]


@reads_table
def predict(
    model: ModelPath,
    documents: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...|TEXT",
            help="Tables, with --text, or svmlight files, as for fit; or one text itself.",
        ),
    ],
    text: TextColumns = None,
    top: Annotated[
        int | None,
        typer.Option("--top", min=1, help="Classes for each document: 1, or 5 for a text."),
    ] = None,
    precision: Annotated[
        float | None,
        typer.Option(
            "--precision",
            help="Leave the class empty where it is not sure enough for this precision, "
            "such as 0.9.",
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="Where to write; - is the terminal.")
    ] = STANDARD_OUTPUT,
    out_format: Annotated[
        str | None,
        typer.Option("--out-format", help=f"{_FORMATS}; by the ending when left out."),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option("--keep", metavar="COLUMN", help="A column to copy; give it again for more."),
    ] = None,
    escape_formulas: Annotated[
        bool,
        typer.Option(
            help="CSV, TSV: an apostrophe before texts that a spreadsheet would evaluate."
        ),
    ] = True,
    *,
    layout: Layout,
    threads: Threads = -1,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Predict the classes of the documents in a table, with their probabilities, or of one text.

    Documents are read and written in chunks, so the table may be larger than memory.
    """
    with clear_errors():
        source = Source(documents[0], text, None, layout, keep or [], tuple(documents[1:]))
        if _is_text(source):
            classifier = load_model(model, threads)
            _predict_text(classifier, source, top or _TOP_OF_A_TEXT, precision, as_json)
            return
        written = _find_written(out, "jsonl" if as_json else out_format)
        inputs: list[str | Path] = [model, *source.paths]
        if out != STANDARD_OUTPUT:
            check_writable(out, inputs)
        classifier = load_model(model, threads)
        check_kind(classifier, source)
        threshold = _find_threshold(classifier, precision)
        n_documents = n_kept = 0
        header = _Header(source, top or 1, _knows_probabilities(classifier), escape_formulas)
        with (
            progress(quiet) as update,
            read_documents(
                source, update, labelled=False, n_terms=n_terms_of(classifier)
            ) as chunks,
            _open_output(out, written, header, inputs) as write,
        ):
            for chunk in chunks:
                rows = _predict_rows(classifier, chunk, top or 1, threshold)
                write(rows)
                n_kept += sum(row.label is not None for row in rows)
                n_documents += len(chunk)
        if not quiet and out != STANDARD_OUTPUT:
            held = (
                "" if precision is None else f", {n_documents - n_kept:,} of them without a class"
            )
            print_note(f"{count(n_documents, 'document')} predicted{held}; they are in {out}.")


def _is_text(source: Source) -> bool:
    """Return whether what was given is a document, not a file: it names no file and no format."""
    from longtail.datasets.tables import find_format

    if source.text or source.more or source.path == "-" or source.layout.format:
        return False
    if any(map(os.path.exists, source.paths)):
        return False
    try:
        find_format(source.path)
    except ValueError:
        return True
    return any(map(str.isspace, source.path))


def _predict_text(
    classifier: Any, source: Source, top: int, precision: float | None, as_json: bool
) -> None:
    """Print the best classes of one text."""
    threshold = _find_threshold(classifier, precision)
    document = one_document(classifier, source.path, source.layout.zero_based)
    [row] = _predict_rows(classifier, Documents(document, [], [1], [[]], 0), top, threshold)
    value = "probability" if _knows_probabilities(classifier) else "score"
    if as_json:
        ranked = [
            {"class": label, value: s} for label, s in zip(row.classes, row.scores, strict=True)
        ]
        print_json({"class": row.label, "ranking": ranked})
        return
    cells = [
        (str(label), f"{score:.1%}" if value == "probability" else f"{score:.4f}")
        for label, score in zip(row.classes, row.scores, strict=True)
    ]
    title = "not sure enough of a class" if row.label is None else str(row.label)
    print_table(title, ("class", value), cells)


def _find_written(out: Path, given: str | None) -> str:
    """Return the format to write."""
    ending = "csv" if out == STANDARD_OUTPUT else _WRITTEN.get(out.suffix.lower(), "")
    written = given or ending
    if written not in _WRITTEN.values():
        raise ValueError(
            f"--out-format must be {_FORMATS}; got {given!r}."
            if given
            else f"the ending of {out} does not tell the format to write; end it in "
            f"{' '.join(_WRITTEN)} or give --out-format {_FORMATS}."
        )
    if written == "parquet" and out == STANDARD_OUTPUT:
        raise ValueError("Parquet is written to a file; give --out FILE.parquet.")
    return written


def _find_threshold(classifier: Any, precision: float | None) -> float:
    """Return the probability below which the class is left empty."""
    if precision is None:
        return float("-inf")
    if not _knows_probabilities(classifier):
        raise ValueError(
            f"--precision needs a model with probabilities; this is a {type(classifier).__name__}."
        )
    threshold = float(classifier.threshold_for(precision))
    if threshold != threshold:
        raise ValueError(
            f"a precision of {precision} cannot be reached: no threshold gave it on the documents "
            "held out in fit. Ask for less, or fit with more documents."
        )
    return threshold


def _predict_rows(classifier: Any, chunk: Documents, top: int, threshold: float) -> list[_Row]:
    """Predict a chunk."""
    calibrated = _knows_probabilities(classifier)
    rank = classifier.predict_proba_topk if calibrated else classifier.predict_topk
    ranking = rank(chunk.content, top)
    rows = []
    for i, valid in enumerate(ranking.valid.tolist()):
        classes = [c for c, ok in zip(ranking.classes[i].tolist(), valid, strict=True) if ok]
        scores = [s for s, ok in zip(ranking.scores[i].tolist(), valid, strict=True) if ok]
        label = classes[0] if classes and scores[0] >= threshold else None
        rows.append(_Row(chunk.path, chunk.lines[i], chunk.kept[i], label, classes, scores))
    return rows


class _Header:
    """The columns of the predictions."""

    def __init__(self, source: Source, top: int, calibrated: bool, escape: bool) -> None:
        self.keep, self.top, self.escape = source.keep, top, escape
        self.value = "probability" if calibrated else "score"
        self.values = "probabilities" if calibrated else "scores"
        self.files = len(source.paths) > 1

    def names(self) -> list[str]:
        """Return the names of the columns of a table."""
        names = ["file"] * self.files + ["line", *self.keep, "class", self.value]
        for i in range(2, self.top + 1):
            names += [f"class_{i}", f"{self.value}_{i}"]
        return names

    def cells(self, row: _Row) -> list[Any]:
        """Return a row of a table; None where there was no candidate."""
        pairs: list[Any] = [row.label, row.scores[0] if row.scores else None]
        for i in range(1, self.top):
            found = i < len(row.classes)
            pairs += [row.classes[i], row.scores[i]] if found else [None, None]
        return [row.path] * self.files + [row.line, *row.kept, *pairs]

    def fields(self, row: _Row) -> dict[str, Any]:
        """Return a row as a JSON object."""
        return {
            **({"file": row.path} if self.files else {}),
            "line": row.line,
            **dict(zip(self.keep, row.kept, strict=True)),
            "class": row.label,
            "classes": row.classes,
            self.values: row.scores,
        }


@contextmanager
def _open_output(
    out: Path, written: str, header: _Header, inputs: list[Any]
) -> Iterator[Callable[[list[_Row]], None]]:
    """Open a file of predictions; give what writes rows to it."""
    if written == "parquet":
        with replaced_path(out, inputs) as beside, _open_parquet(beside, header) as write:
            yield write
        return
    with replacing(out, inputs) as target:
        if written == "jsonl":
            yield lambda rows: target.writelines(
                as_json_text(header.fields(row)) + "\n" for row in rows
            )
            return
        shown = out == STANDARD_OUTPUT and sys.stdout.isatty()
        writer = csv.writer(
            target, delimiter="," if written == "csv" else "\t", lineterminator="\n"
        )

        def field(cell: Any) -> Any:
            if isinstance(cell, float):
                return f"{cell:.4f}"
            cell = escape_formula(cell) if header.escape else cell
            return clean(cell) if shown and isinstance(cell, str) else cell

        writer.writerow(map(field, header.names()))
        yield lambda rows: writer.writerows(map(field, header.cells(row)) for row in rows)


@contextmanager
def _open_parquet(path: Path, header: _Header) -> Iterator[Callable[[list[_Row]], None]]:
    """Open a Parquet file; classes are text there."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise ImportError(
            "writing a Parquet file needs the package pyarrow: pip install 'longtail[data]'"
        ) from error
    names = header.names()
    kinds = [
        pa.int64()
        if name == "line"
        else pa.float64()
        if name.startswith(header.value)
        else pa.string()
        for name in names
    ]
    first = names.index("line")
    kinds[first + 1 : first + 1 + len(header.keep)] = [pa.string()] * len(header.keep)
    schema = pa.schema([pa.field(name, kind) for name, kind in zip(names, kinds, strict=True)])
    with parquet.ParquetWriter(path, schema) as writer:

        def write(rows: list[_Row]) -> None:
            columns = zip(*map(header.cells, rows), strict=True)
            arrays = [
                pa.array(
                    [str(v) if v is not None and kind == pa.string() else v for v in column], kind
                )
                for column, kind in zip(columns, kinds, strict=True)
            ]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))

        yield write


def _knows_probabilities(classifier: Any) -> bool:
    """Return whether a model knows probabilities; the others have scores."""
    from longtail.metrics.evaluation import knows_probabilities

    return knows_probabilities(classifier)
