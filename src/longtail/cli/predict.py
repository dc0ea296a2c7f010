"""`longtail predict`: the classes of new documents, row by row."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Annotated, Any, Protocol, TextIO

import typer

from longtail.cli.files import STANDARD_OUTPUT, replacing
from longtail.cli.inputs import (
    Documents,
    Source,
    check_kind,
    load_model,
    n_terms_of,
    read_documents,
)
from longtail.cli.options import (
    AsJson,
    Layout,
    ModelPath,
    Quiet,
    TablePath,
    TextColumns,
    Threads,
    reads_table,
)
from longtail.cli.show import clear_errors, count, note, plain, progress

_WRITTEN = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl"}


@reads_table
def predict(
    model: ModelPath,
    file: TablePath,
    text: TextColumns = None,
    top: Annotated[int, typer.Option("--top", min=1, help="Classes for each document.")] = 1,
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
        typer.Option("--out-format", help="csv, tsv or jsonl; by the ending when left out."),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option("--keep", metavar="COLUMN", help="A column to copy; give it again for more."),
    ] = None,
    *,
    layout: Layout,
    threads: Threads = -1,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Predict the classes of the documents in a table, with their probabilities.

    Documents are read and written in chunks, so the table may be larger than memory.
    """
    with clear_errors():
        source = Source(file, text, None, layout, keep or [])
        written = _find_written(out, "jsonl" if as_json else out_format)
        classifier = load_model(model, threads)
        check_kind(classifier, source)
        threshold = _find_threshold(classifier, precision)
        n_documents = n_kept = 0
        with (
            progress(quiet) as update,
            read_documents(
                source, update, labelled=False, n_terms=n_terms_of(classifier)
            ) as chunks,
            replacing(out) as target,
        ):
            write: _Rows = (
                _Objects(target, top, source.keep, classifier)
                if written == "jsonl"
                else _Fields(target, written, top, source.keep, classifier)
            )
            for chunk in chunks:
                n_kept += write(chunk, threshold)
                n_documents += len(chunk)
        if not quiet and out != STANDARD_OUTPUT:
            held = (
                "" if precision is None else f", {n_documents - n_kept:,} of them without a class"
            )
            note(f"{count(n_documents, 'document')} predicted{held}; they are in {out}.")


def _find_written(out: Path, given: str | None) -> str:
    """Return the format to write."""
    written = given or ("csv" if out == STANDARD_OUTPUT else _WRITTEN.get(out.suffix.lower()))
    if written not in ("csv", "tsv", "jsonl"):
        raise ValueError(
            f"--out-format must be csv, tsv or jsonl; got {given!r}."
            if given
            else f"the ending of {out} does not tell the format to write; end it in "
            f"{' '.join(_WRITTEN)} or give --out-format csv, tsv or jsonl."
        )
    return written


def _find_threshold(classifier: Any, precision: float | None) -> float:
    """Return the probability below which the class is left empty."""
    if precision is None:
        return float("-inf")
    if not _is_probable(classifier):
        raise ValueError(
            f"--precision needs a model with probabilities; this is a {type(classifier).__name__}."
        )
    return float(classifier.threshold_for(precision))


class _Rows(Protocol):
    """What writes predictions, chunk by chunk."""

    def __call__(self, chunk: Documents, threshold: float) -> int:
        """Predict a chunk and write it; return how many documents have a class."""


def _rank(classifier: Any, chunk: Documents, top: int) -> tuple[list[Any], list[Any]]:
    """Return labels and probabilities (or scores) of a chunk; None where there is no chance."""
    probable = _is_probable(classifier)
    rank = classifier.predict_proba_topk if probable else classifier.predict_topk
    ranking = rank(chunk.content, top)
    padding = ranking.scores == (0.0 if probable else float("-inf"))
    padding[:, 0] = False
    classes = ranking.classes.astype(object)
    scores = ranking.scores.astype(object)
    classes[padding] = None
    scores[padding] = None
    return classes.tolist(), scores.tolist()


class _Fields:
    """Write predictions as CSV or TSV."""

    def __init__(
        self, target: TextIO, written: str, top: int, keep: list[str], classifier: Any
    ) -> None:
        self._top, self._classifier = top, classifier
        self._writer = csv.writer(
            target, delimiter="," if written == "csv" else "\t", lineterminator="\n"
        )
        value = "probability" if _is_probable(classifier) else "score"
        names = ["class", value]
        for place in range(2, top + 1):
            names += [f"class_{place}", f"{value}_{place}"]
        self._writer.writerow(["line", *keep, *names])

    def __call__(self, chunk: Documents, threshold: float) -> int:
        """Predict a chunk and write it; return how many documents have a class."""
        classes, scores = _rank(self._classifier, chunk, self._top)
        n_kept = 0
        for i, line in enumerate(chunk.lines):
            sure = scores[i][0] >= threshold
            n_kept += sure
            cells: list[Any] = [classes[i][0] if sure else ""]
            cells.append(_short(scores[i][0]))
            for label, score in zip(classes[i][1:], scores[i][1:], strict=True):
                cells += [label, _short(score)]
            self._writer.writerow([line, *chunk.kept[i], *cells])
        return n_kept


class _Objects:
    """Write predictions as JSON lines."""

    def __init__(self, target: TextIO, top: int, keep: list[str], classifier: Any) -> None:
        self._target, self._top, self._keep = target, top, keep
        self._classifier = classifier
        probable = _is_probable(classifier)
        self._value = "probabilities" if probable else "scores"

    def __call__(self, chunk: Documents, threshold: float) -> int:
        """Predict a chunk and write it; return how many documents have a class."""
        classes, scores = _rank(self._classifier, chunk, self._top)
        n_kept = 0
        for i, line in enumerate(chunk.lines):
            sure = scores[i][0] >= threshold
            n_kept += sure
            row = {
                "line": line,
                **dict(zip(self._keep, chunk.kept[i], strict=True)),
                "class": classes[i][0] if sure else None,
                "classes": [label for label in classes[i] if label is not None],
                self._value: [score for score in scores[i] if score is not None],
            }
            self._target.write(json.dumps(plain(row), ensure_ascii=False) + "\n")
        return n_kept


def _is_probable(classifier: Any) -> bool:
    """Tell whether a model knows probabilities; the others have scores."""
    from longtail.metrics.evaluation import knows_probabilities

    return knows_probabilities(classifier)


def _short(score: float | None) -> str:
    """Return a number with as many digits as mean something."""
    return "" if score is None else f"{score:.4f}"
