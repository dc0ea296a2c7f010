"""`longtail evaluate`: how good a model is on labelled documents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longtail._words import count
from longtail.cli.evaluate_sets import (
    set_figures,
    set_json,
    set_page,
    set_sentences,
    set_tables,
)
from longtail.cli.expect import expectation_sentence, expectations
from longtail.cli.files import check_writable, replacing, save_figure
from longtail.cli.inputs import (
    Documents,
    Source,
    as_model_labels,
    gives_label_sets,
    load_model,
    match_source,
    n_terms_of,
    read_documents,
)
from longtail.cli.options import (
    AsJson,
    LabelColumns,
    Layout,
    ModelPath,
    Quiet,
    TablePaths,
    TextColumns,
    Threads,
    Unknown,
    reads_table,
)
from longtail.cli.show import (
    clear_errors,
    describe_sizes,
    model_sizes,
    print_json,
    print_table,
    progress,
    say,
)

if TYPE_CHECKING:
    from longtail.metrics.evaluation import Evaluation

# Title, header, rows: for the terminal and for the report alike.
_Table = tuple[str, tuple[str, ...], list[tuple[str, ...]]]


@reads_table
def evaluate(
    model: ModelPath,
    files: TablePaths,
    text: TextColumns = None,
    label: LabelColumns = None,
    precision: Annotated[
        float,
        typer.Option("--precision", help="Show how many documents can be had at this precision."),
    ] = 0.9,
    unknown: Unknown = 0.0,
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
    mistakes: Annotated[
        int,
        typer.Option(
            "--mistakes", min=0, help="How many wrong documents the report explains, surest first."
        ),
    ] = 20,
    documents: Annotated[
        bool,
        typer.Option("--documents/--no-documents", help="Whether the report quotes documents."),
    ] = True,
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
        classifier = load_model(model, threads)
        source = match_source(source, classifier, quiet)
        listed = (confusions, mistakes if report is not None else 0)
        result = _evaluate(classifier, source, (precision, unknown), listed, quiet)
        sets = None if isinstance(result, _single()) else result
        tables = list(_tables(result) if sets is None else set_tables(sets))
        sentences = list(_sentences(result) if sets is None else set_sentences(sets))
        sentences += filter(None, [expectation_sentence(expectations(classifier))])
        drawn = {} if report is None and figures is None else _draw(result)
        if figures is not None:
            figures.mkdir(parents=True, exist_ok=True)
            for name, figure in drawn.items():
                save_figure(figure, figures / f"{name}.{figure_format}", inputs)
        if report is not None:
            from longtail.cli.report import ReportPage, html_report

            page = ReportPage(
                f"{model.name} evaluated on {source.name}",
                _facts(model, classifier, source),
                tables[1:],  # the measures are shown by the page itself
                sentences,
                documents,
            )
            with replacing(report, inputs) as file:
                drawing: Any = html_report if sets is None else set_page
                file.write(drawing(page, result, drawn))
        if as_json:
            print_json(_as_json(result) if sets is None else set_json(sets))
            return
        for table in tables:
            print_table(*table)
        for sentence in sentences:
            say(sentence)


def _evaluate(
    classifier: Any,
    source: Source,
    wanted: tuple[float, float],
    listed: tuple[int, int],
    quiet: bool,
) -> Any:
    """Predict all documents of a source; `listed` are the numbers of confusions and mistakes.

    Label sets, of the model or of the source, give a LabelSetEvaluation.
    """
    from longtail.metrics.evaluation import evaluate as run
    from longtail.metrics.label_set_evaluation import evaluate_label_sets

    with (
        progress(quiet) as update,
        read_documents(
            source, update, labelled=True, n_terms=n_terms_of(classifier), doing="evaluating"
        ) as chunks,
    ):
        pairs = _pairs(classifier, chunks)
        first = next(pairs, None)
        documents = pairs if first is None else chain([first], pairs)
        if gives_label_sets(classifier) or (first and isinstance(first[1][0], list)):
            return evaluate_label_sets(classifier, documents, precision=wanted[0])
        return run(
            classifier,
            documents,
            precision=wanted[0],
            unknown=wanted[1],
            n_confusions=listed[0],
            n_mistakes=listed[1],
        )


def _pairs(classifier: Any, chunks: Iterator[Documents]) -> Iterator[tuple[Any, Any]]:
    """Yield documents with labels of the type that the model's classes have."""
    for chunk in chunks:
        if isinstance(chunk.labels, list) or chunk.label_counts is not None:
            yield chunk.content, as_model_labels(classifier, chunk.label_lists())
        else:
            yield chunk.content, chunk.labels


def _tables(result: Evaluation) -> Iterator[_Table]:
    """Yield the results as tables."""
    certainty = result.certainty
    sizes = f"{count(result.n_documents, 'document')} of {count(result.n_classes, 'class')}"
    yield sizes, ("measure", "value", "95 % interval"), list(_measures(result))
    yield (
        "By how many documents of the class the model has seen",
        ("documents seen", "classes", "documents", "accuracy", "95 % interval", "macro F1"),
        [
            (
                band.name,
                f"{band.n_classes:,}",
                f"{band.n_documents:,}",
                *_shares(band.accuracy, band.n_documents),
                _share(band.macro_f1),
            )
            for band in result.bands
        ],
    )
    if certainty is not None:
        yield (
            "Calibration: probabilities and how often they were correct",
            ("probability", "documents", "on average", "correct", "95 % interval"),
            [
                (
                    f"{group.lowest:.1f} to {group.highest:.1f}",
                    f"{group.n_documents:,}",
                    _share(group.mean_probability),
                    *_shares(group.accuracy, group.n_documents),
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


def _measures(result: Evaluation) -> Iterator[tuple[str, str, str]]:
    """Yield name, value and interval of every measure."""
    from longtail.metrics import mean_interval

    n, n_known = result.n_documents, result.n_documents - result.n_unknown
    f1 = mean_interval([of_class.f1 for of_class in result.classes] or [0.0])
    yield "accuracy", *_shares(result.accuracy, n)
    yield "accuracy on known classes", *_shares(result.accuracy_known, n_known)
    yield "documents of classes unknown to the model", f"{result.n_unknown:,}", ""
    yield "macro F1, mean of the per-class F1", f"{result.macro_f1:.1%}", _spread(f1)
    yield "macro F1, of mean precision and recall", f"{result.macro_f1_of_means:.1%}", ""
    for k, share in result.top.items():
        if k > 1:
            yield f"true class in the top {k}", *_shares(share, n)
    certainty = result.certainty
    if certainty is None:
        return
    low, high = certainty.calibration_interval
    error = f"{certainty.calibration_error:.3f}"
    yield "calibration error", error, f"{low:.3f} to {high:.3f} (90 %)"
    abstention = certainty.abstention
    if abstention is None:
        yield "threshold for that precision", "none is known", ""
        return
    name = f"threshold for a precision of {abstention.wanted:.0%}"
    yield name, f"{abstention.threshold:.3f}", ""
    yield "precision above it", *_shares(abstention.precision, round(abstention.coverage * n))
    yield "documents above it", *_shares(abstention.coverage, n)


def _sentences(result: Evaluation) -> Iterator[str]:
    """Yield what has to be said beside the tables."""
    if result.n_unknown:
        yield (
            f"{count(result.n_unknown, 'document')} of classes that the model does not have: they "
            "count as wrong in every measure but the accuracy on known classes."
        )
    yield from [] if result.certainty is None else result.certainty.remarks


def _shares(value: float, n: int) -> tuple[str, str]:
    """Return a share of n documents and its interval, or dashes where there is none."""
    from longtail.metrics import wilson_interval

    return (_share(value), _spread(wilson_interval(value, n))) if value == value else ("-", "-")


def _share(value: float) -> str:
    """Return a share, or a dash where there is none."""
    return "-" if value != value else f"{value:.1%}"


def _spread(interval: tuple[float, float]) -> str:
    """Return an interval of shares."""
    return f"{interval[0]:.1%} to {interval[1]:.1%}"


def _single() -> type[Evaluation]:
    """Return the class of results of documents with one label each."""
    from longtail.metrics.evaluation import Evaluation

    return Evaluation


def _draw(result: Any) -> dict[str, Any]:
    """Return the figures by name."""
    from longtail.cli.report import evaluation_figures

    drawing: Any = evaluation_figures if isinstance(result, _single()) else set_figures
    return dict(drawing(result))


def _facts(path: Path, classifier: Any, source: Source) -> dict[str, str]:
    """Return what was evaluated, for the head of the report."""
    from longtail import __version__
    from longtail.store.container import open_model

    statistics = classifier.statistics_
    inner = getattr(classifier, "classifier_", classifier)
    parameters = inner.get_params(deep=False).items()
    sizes = f"{describe_sizes(model_sizes(classifier))}, {count(statistics.n_terms, 'term')}"
    written_by = open_model(path, verify=False).library_version
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "model": f"{path} ({type(classifier).__name__}, written by longtail {written_by})",
        "learned from": sizes,
        "parameters": ", ".join(f"{name}={value!r}" for name, value in parameters),
        "data": ", ".join(source.paths),
        "evaluated by": f"longtail {__version__}",
    }


def _as_json(result: Evaluation) -> dict[str, Any]:
    """Return the results without the curve's every point, every class and every mistake."""
    value = asdict(replace(result, classes=[], mistakes=[]))
    del value["classes"], value["mistakes"]
    if value["certainty"] is not None:
        del value["certainty"]["curve"]
    return value
