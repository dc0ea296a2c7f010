"""`longtail evaluate`: how good a model is on labelled documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longtail._words import count
from longtail.answers import class_texts
from longtail.cli.expect import compare_expected, expectations
from longtail.cli.findings import Findings, Section, compare_rows, describe_difference, find
from longtail.cli.inputs import (
    Source,
    as_model_labels,
    load_model,
    match_source,
    n_terms_of,
    read_documents,
)
from longtail.cli.outputs import check_writable, replacing, save_figure
from longtail.cli.prediction_rows import (
    Columns,
    Prediction,
    find_written,
    open_output,
    rank_rows,
)
from longtail.cli.shared_options import (
    AsJson,
    LabelColumns,
    Layout,
    ModelPath,
    Quiet,
    TablePaths,
    TextColumns,
    Threads,
    Unknown,
    takes,
)
from longtail.cli.show import (
    clear_errors,
    describe_sizes,
    model_sizes,
    print_json,
    print_note,
    print_table,
    progress,
    say,
)
from longtail.exceptions import DataFormatError

if TYPE_CHECKING:
    from longtail.datasets.records import Chunk
    from longtail.metrics import PairedDifference
    from longtail.metrics.evaluation import Evaluation
    from longtail.results import TopK


@dataclass(frozen=True)
class Asked:
    """What is measured: a precision, a share of unknown classes, the lengths of the lists."""

    precision: Annotated[
        float,
        typer.Option("--precision", help="Show how many documents can be had at this precision."),
    ] = 0.9
    unknown: Unknown = 0.0
    confusions: Annotated[
        int, typer.Option("--confusions", min=0, help="How many pairs of confused classes to list.")
    ] = 10
    mistakes: Annotated[
        int,
        typer.Option(
            "--mistakes", min=0, help="How many wrong documents the report explains, surest first."
        ),
    ] = 20


@dataclass(frozen=True)
class Written:
    """The files that an evaluation writes."""

    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE", help="Write one HTML page with all results."),
    ] = None
    documents: Annotated[
        bool,
        typer.Option("--documents/--no-documents", help="Whether the report quotes documents."),
    ] = True
    predictions: Annotated[
        Path | None,
        typer.Option(
            "--predictions",
            metavar="FILE",
            help="Write every document's true class, prediction and probability.",
        ),
    ] = None
    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep",
            metavar="COLUMN",
            help="A column that names documents, such as an id, in --predictions and --report; "
            "give it again for more.",
        ),
    ] = None
    figures: Annotated[
        Path | None, typer.Option("--figures", metavar="FOLDER", help="Write the figures there.")
    ] = None
    figure_format: Annotated[str, typer.Option("--figure-format", help="png or svg.")] = "png"

    def check(self, inputs: list[str | Path]) -> None:
        """Refuse files that cannot be written, before the work is done."""
        if self.figure_format not in ("png", "svg"):
            raise ValueError(f"--figure-format must be png or svg; got {self.figure_format!r}.")
        for target in filter(None, (self.report, self.predictions)):
            check_writable(target, inputs)
        if self.predictions is not None:
            find_written(self.predictions, None, "--predictions")
        if self.report is not None or self.figures is not None:
            from longtail.plotting import new_figure

            new_figure(1.0, 1.0)  # says what to install

    @contextmanager
    def open_predictions(
        self, classifier: Any, source: Source, inputs: list[str | Path]
    ) -> Iterator[Callable[[list[Prediction]], None] | None]:
        """Open the file of predictions; yield the function that writes rows, or None."""
        if self.predictions is None:
            yield None
            return
        written = find_written(self.predictions, None, "--predictions")
        columns = Columns.of(classifier, source, None, True, written, truth=True)
        with open_output(self.predictions, written, columns, inputs) as write:
            yield write

    def draw(self, findings: Findings, inputs: list[str | Path]) -> dict[str, Any]:
        """Return the figures where any are needed, and write them where asked."""
        if self.report is None and self.figures is None:
            return {}
        drawn = {name: draw() for name, draw in findings.figures.items()}
        if self.figures is not None:
            self.figures.mkdir(parents=True, exist_ok=True)
            for name, figure in drawn.items():
                save_figure(figure, self.figures / f"{name}.{self.figure_format}", inputs)
        return drawn

    def tell(self, n_figures: int) -> None:
        """Print which files were written."""
        if self.report is not None:
            print_note(f"the report is in {self.report}.")
        if self.figures is not None:
            print_note(f"{count(n_figures, 'figure')} are in {self.figures}.")
        if self.predictions is not None:
            print_note(f"the predictions are in {self.predictions}.")


@takes(asked=Asked, written=Written, layout=Layout)
def evaluate(
    model: ModelPath,
    files: TablePaths,
    text: TextColumns = None,
    label: LabelColumns = None,
    *,
    asked: Asked,
    compare: Annotated[
        Path | None,
        typer.Option(
            "--compare",
            metavar="OTHER",
            help="Another model file: both side by side, with a test of the difference.",
        ),
    ] = None,
    written: Written,
    layout: Layout,
    threads: Threads = -1,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Compare predictions with the labels of a table: accuracy, calibration, confusions."""
    with clear_errors():
        source = Source(files, text, label, layout, written.keep or [])
        inputs: list[str | Path] = [model, *source.paths, *([compare] if compare else [])]
        if not 0 < asked.precision < 1:
            raise ValueError(
                f"--precision must be between 0 and 1, such as 0.9; got {asked.precision}."
            )
        if compare is not None and "-" in source.paths:
            raise ValueError(
                "--compare reads the documents twice; give a file, not standard input."
            )
        written.check(inputs)
        classifier = load_model(model, threads)
        other = None if compare is None else load_model(compare, threads)
        source, told = match_source(source, classifier, quiet), source
        n_mistakes = 0 if written.report is None else asked.mistakes
        with written.open_predictions(classifier, source, inputs) as write:
            result = _evaluate(classifier, source, asked, quiet, n_mistakes, write)
        findings = find(result)
        expected = compare_expected(expectations(classifier), result)
        comparison, measures = None, dict[str, Any]()
        if other is not None and compare is not None:
            try:
                other_result = _evaluate(other, match_source(told, other, quiet), asked, quiet)
            except DataFormatError as error:
                raise ValueError(
                    f"{error}. --compare: {compare} was fitted on other columns, or on text in "
                    "another form. Give --text and --label for both models."
                ) from None
            measures = _compare(result, other_result)
            verdict = describe_difference(next(iter(measures.values())), "document")
            comparison = Section(
                f"Compared with {compare.name}", *compare_rows(measures), remark=verdict
            )
        drawn = written.draw(findings, inputs)
        if written.report is not None:
            from longtail.cli.report import ReportPage, html_report

            page = ReportPage(
                f"{model.name} evaluated on {source.name}",
                _facts(model, classifier, source),
                expected,
                comparison,
                written.documents,
            )
            with replacing(written.report, inputs) as file:
                file.write(html_report(page, findings, drawn))
        if as_json:
            compared = {name: found.as_dict() for name, found in measures.items()}
            print_json(result.as_dict() | ({"comparison": compared} if measures else {}))
        else:
            for section in filter(None, (*findings.sections, expected, comparison)):
                print_table(section.title, section.header, section.rows)
                if section.remark:
                    say(section.remark)
            for sentence in (*findings.sentences, f"{findings.headline}."):
                say(sentence)
        if not quiet:
            written.tell(len(drawn))


def _evaluate(
    classifier: Any,
    source: Source,
    asked: Asked,
    quiet: bool,
    n_mistakes: int = 0,
    write: Callable[[list[Prediction]], None] | None = None,
) -> Evaluation:
    """Predict all documents of a source, and write each prediction where asked."""
    from longtail.metrics.evaluation import evaluate as run

    with (
        progress(quiet) as update,
        read_documents(
            source, update, labelled=True, n_terms=n_terms_of(classifier), doing="evaluating"
        ) as chunks,
    ):
        read = _Reader(classifier, source, chunks, write)
        return run(
            classifier,
            read,
            precision=asked.precision,
            unknown=asked.unknown,
            n_confusions=asked.confusions,
            n_mistakes=n_mistakes,
            on_predicted=read.write,
        )


class _Reader:
    """Reads documents, labels and references of a source, and writes their predictions."""

    def __init__(
        self,
        classifier: Any,
        source: Source,
        chunks: Iterator[Chunk],
        write: Callable[[list[Prediction]], None] | None,
    ) -> None:
        self._classifier, self._source, self._chunks = classifier, source, chunks
        self._write, self._texts = write, class_texts(classifier)
        self._read: list[Chunk] = []  # and not yet written

    def __iter__(self) -> Iterator[tuple[Any, Any, list[str]]]:
        """Yield documents with labels of the type that the model's classes have."""
        for chunk in self._chunks:
            labels = chunk.labels
            if not hasattr(labels, "dtype"):  # numbers are as they were fitted
                labels = as_model_labels(self._classifier, chunk.label_lists())
            self._read.append(chunk)
            yield chunk.content, labels, [*self._references(chunk)]

    def write(self, labels: Any, top: TopK, sets: Any) -> None:
        """Write the predictions of the oldest chunk that is not written yet."""
        chunk = self._read.pop(0)
        if self._write is None:
            return
        # A model of one label gives one class each, also where the documents have several.
        best = [found[0][0] if (found := top[i]) else None for i in range(len(chunk))]
        given = sets if self._classifier.multilabel_ else best
        rows = rank_rows(chunk, top, given, None, self._texts)
        true = labels.tolist() if hasattr(labels, "tolist") else labels
        self._write([replace(row, truth=of_row) for row, of_row in zip(rows, true, strict=True)])

    def _references(self, chunk: Chunk) -> Iterator[str]:
        """Say where each document comes from: its line, and the columns that name it."""
        file = f"{Path(chunk.path).name}, " if len(self._source.paths) > 1 else ""
        for line, kept in zip(chunk.lines, chunk.kept, strict=True):
            named = zip(self._source.keep, kept, strict=True) if kept else ()
            yield ", ".join([f"{file}line {line:,}", *(f"{name} {value}" for name, value in named)])


def _compare(result: Evaluation, other: Evaluation) -> dict[str, PairedDifference]:
    """Compare two models document by document, and class by class."""
    from longtail.metrics import paired_difference

    if result.multilabel != other.multilabel:
        raise ValueError(
            "--compare needs two models of the same kind: one gives a class, the other label sets."
        )
    if result.n_documents != other.n_documents:
        raise ValueError(
            f"the models were given {result.n_documents:,} and {other.n_documents:,} documents; "
            "--compare needs the same for both. Give --text, --label and --label-separator."
        )
    name = "mean F1 of the documents' label sets" if result.multilabel else "accuracy"
    of_class = [
        {found.label: found.f1 for found in side.classes if found.n_true}
        for side in (result, other)
    ]
    labels = [label for label in of_class[0] if label in of_class[1]]
    return {
        name: paired_difference(result.document_f1, other.document_f1),
        "macro F1 of the classes that have documents": paired_difference(
            *([f1[label] for label in labels] for f1 in of_class)
        ),
    }


def _facts(path: Path, classifier: Any, source: Source) -> dict[str, str]:
    """Return what was evaluated, for the head of the report."""
    from longtail import __version__
    from longtail.store.container import open_model

    statistics = classifier.statistics_
    parameters = classifier.classifier_.get_params(deep=False).items()
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
