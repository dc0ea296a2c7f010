"""`longtail evaluate`: how good a model is on labelled documents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longtail.cli.files import check_writable, replacing, save_figure
from longtail.cli.inputs import (
    Documents,
    Source,
    as_label,
    check_kind,
    load_model,
    n_terms_of,
    read_documents,
)
from longtail.cli.options import (
    AsJson,
    LabelColumn,
    Layout,
    ModelPath,
    Quiet,
    TablePaths,
    TextColumns,
    Threads,
    reads_table,
)
from longtail.cli.show import clear_errors, count, print_json, print_table, progress, say

if TYPE_CHECKING:
    from longtail.metrics.evaluation import Evaluation

# Title, header, rows: for the terminal and for the report alike.
_Table = tuple[str, tuple[str, ...], list[tuple[str, ...]]]


@reads_table
def evaluate(
    model: ModelPath,
    files: TablePaths,
    text: TextColumns = None,
    label: LabelColumn = None,
    precision: Annotated[
        float,
        typer.Option("--precision", help="Show how many documents can be had at this precision."),
    ] = 0.9,
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE", help="Write one HTML page with all results."),
    ] = None,
    figures: Annotated[
        Path | None, typer.Option("--figures", metavar="FOLDER", help="Write the figures there.")
    ] = None,
    figure_format: Annotated[str, typer.Option("--figure-format", help="png or svg.")] = "png",
    confusions: Annotated[
        int, typer.Option("--confusions", min=0, help="How many confused classes to list.")
    ] = 10,
    *,
    layout: Layout,
    threads: Threads = -1,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Compare predictions with the labels of a table: accuracy, calibration, confusions."""
    with clear_errors():
        source = Source(files[0], text, label, layout, more=tuple(files[1:]))
        if not 0 < precision < 1:
            raise ValueError(f"--precision must be between 0 and 1, such as 0.9; got {precision}.")
        if figure_format not in ("png", "svg"):
            raise ValueError(f"--figure-format must be png or svg; got {figure_format!r}.")
        inputs: list[str | Path] = [model, *source.paths]
        if report is not None:
            check_writable(report, inputs)
        if report is not None or figures is not None:
            from longtail.plotting import new_figure

            new_figure(1.0, 1.0)  # says what to install before the work is done
        result = _evaluate(model, source, precision, confusions, threads, quiet)
        title = f"{model} on {source.name}"
        tables = list(_tables(result))
        if report is not None or figures is not None:
            _draw(title, result, tables, report, figures, figure_format, inputs)
        if as_json:
            print_json(_as_json(result))
            return
        for table in tables:
            print_table(*table)
        for sentence in _sentences(result):
            say(sentence)


def _evaluate(
    path: Path, source: Source, precision: float, confusions: int, threads: int, quiet: bool
) -> Evaluation:
    """Predict all documents of a source."""
    from longtail.metrics.evaluation import evaluate as run

    classifier = load_model(path, threads)
    check_kind(classifier, source)
    with (
        progress(quiet) as update,
        read_documents(source, update, labelled=True, n_terms=n_terms_of(classifier)) as chunks,
    ):
        return run(
            classifier,
            _pairs(classifier, chunks),
            precision=precision,
            n_confusions=confusions,
        )


def _pairs(classifier: Any, chunks: Iterator[Documents]) -> Iterator[tuple[Any, Any]]:
    """Yield documents with labels of the type that the model's classes have."""
    for chunk in chunks:
        if isinstance(chunk.labels, list):
            yield chunk.content, [as_label(classifier, label) for label in chunk.labels]
        else:
            yield chunk.content, chunk.labels


def _tables(result: Evaluation) -> Iterator[_Table]:
    """Yield the results as tables."""
    measures: list[tuple[str, ...]] = [
        ("accuracy", f"{result.accuracy:.1%}"),
        ("accuracy on known classes", _share(result.accuracy_known)),
        ("documents of classes unknown to the model", f"{result.n_unknown:,}"),
        ("macro F1, mean of the per-class F1", f"{result.macro_f1:.1%}"),
        ("macro F1, of mean precision and recall", f"{result.macro_f1_of_means:.1%}"),
        *((f"in the top {k}", f"{share:.1%}") for k, share in result.top.items() if k > 1),
    ]
    certainty = result.certainty
    if certainty is not None:
        low, high = certainty.calibration_interval
        measures.append(("calibration error", f"{certainty.calibration_error:.3f}"))
        measures.append(("calibration error, 90% interval", f"{low:.3f} to {high:.3f}"))
        measures += _abstention_rows(certainty.abstention)
    sizes = f"{count(result.n_documents, 'document')} of {count(result.n_classes, 'class')}"
    yield sizes, ("measure", "value"), measures
    yield (
        "By how many documents of the class the model has seen",
        ("documents seen", "classes", "documents", "accuracy", "macro F1"),
        [
            (
                band.name,
                f"{band.n_classes:,}",
                f"{band.n_documents:,}",
                _share(band.accuracy),
                _share(band.macro_f1),
            )
            for band in result.bands
        ],
    )
    if certainty is not None:
        yield (
            "Calibration: probabilities and how often they were correct",
            ("probability", "documents", "on average", "correct"),
            [
                (
                    f"{group.lowest:.1f} to {group.highest:.1f}",
                    f"{group.n_documents:,}",
                    _share(group.mean_probability),
                    _share(group.accuracy),
                )
                for group in certainty.bins
            ],
        )
    if result.confusions:
        yield (
            "Most confused classes",
            ("class", "predicted as", "documents", "of"),
            [
                (str(pair.true), str(pair.predicted), f"{pair.n_documents:,}", f"{pair.n_true:,}")
                for pair in result.confusions
            ],
        )


def _sentences(result: Evaluation) -> Iterator[str]:
    """Yield what has to be said beside the tables."""
    if result.n_unknown:
        yield (
            f"{count(result.n_unknown, 'document')} of classes that the model does not have: they "
            "count as wrong in every measure but the accuracy on known classes."
        )
    yield from [] if result.certainty is None else result.certainty.remarks


def _abstention_rows(abstention: Any) -> list[tuple[str, str]]:
    """Return what is reached by holding unsure predictions back."""
    if abstention is None:
        return [("threshold for that precision", "none is known")]
    return [
        (f"threshold for a precision of {abstention.wanted:.0%}", f"{abstention.threshold:.3f}"),
        ("precision above it", _share(abstention.precision)),
        ("documents above it", f"{abstention.coverage:.1%}"),
    ]


def _share(value: float) -> str:
    """Return a share, or a dash where there is none."""
    return "-" if value != value else f"{value:.1%}"


def _draw(
    title: str,
    result: Evaluation,
    tables: list[_Table],
    report: Path | None,
    folder: Path | None,
    ending: str,
    inputs: list[Any],
) -> None:
    """Write the figures, and the page."""
    from longtail.cli.report import evaluation_figures, html_report

    drawn = evaluation_figures(result)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        for name, figure in drawn.items():
            save_figure(figure, folder / f"{name}.{ending}", inputs)
    if report is not None:
        with replacing(report, inputs) as file:
            file.write(html_report(title, tables, drawn, list(_sentences(result))))


def _as_json(result: Evaluation) -> dict[str, Any]:
    """Return the results without the curve's every point."""
    value = asdict(result)
    if value["certainty"] is not None:
        del value["certainty"]["curve"]
    return value
