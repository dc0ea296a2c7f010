"""Options of `predict` that say what to answer: how sure, how many labels, which classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longtail.answers import (
    as_label,
    class_texts,
    count_candidates,
    knows_probabilities,
    rank,
    read_limits,
)
from longtail.cli.prediction_rows import Prediction, rank_rows
from longtail.cli.shared_options import Unknown

if TYPE_CHECKING:
    from longtail.datasets.records import Chunk
    from longtail.results import Threshold


@dataclass(frozen=True)
class Choice:
    """What is asked of a model for each document."""

    precision: Annotated[
        float | None,
        typer.Option(
            "--precision",
            help="Leave the class empty where it is not sure enough for this precision, "
            "such as 0.9.",
        ),
    ] = None
    each: Annotated[
        bool,
        typer.Option(
            "--each",
            help="With --precision: every class must be that probable, not all on average.",
        ),
    ] = False
    unknown: Unknown = 0.0
    max_labels: Annotated[
        int | None,
        typer.Option("--max-labels", min=1, help="Label sets: the most labels of a document."),
    ] = None
    within: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Choose among these classes alone: a label in each line."
        ),
    ] = None
    exclude: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Leave out these classes, likewise.")
    ] = None
    branch: Annotated[
        str | None,
        typer.Option(metavar="NODE", help="Choose among the classes at or below this node alone."),
    ] = None
    back_off: Annotated[
        float | None,
        typer.Option(
            metavar="PRECISION",
            help="With a hierarchy: where it is not sure enough of a class, the deepest node of "
            "which it is, such as 0.9.",
        ),
    ] = None
    level: Annotated[
        int | None,
        typer.Option(min=1, help="With a hierarchy: rank the nodes at this depth."),
    ] = None

    def check(self, top: int | None) -> None:
        """Refuse options that do not go together."""
        is_limited = self.precision is not None or self.level or (top or 1) > 1
        if self.back_off is not None and is_limited:
            raise ValueError(
                "--back-off gives one answer at a precision; it does not go with --precision, "
                "--level or --top."
            )
        if self.unknown and self.precision is None and self.back_off is None:
            raise ValueError("--unknown goes with --precision or --back-off, which it changes.")
        if self.each and self.precision is None:
            raise ValueError("--each goes with --precision, such as --precision 0.9 --each.")

    def make_predictor(self, model: Any) -> Callable[[Chunk, int | None], list[Prediction]]:
        """Return what predicts a chunk and lists so many classes of each document.

        Raises
        ------
        ValueError
            If the model cannot do what is asked.
        """
        from longtail.results import TopK
        from longtail.training.calibration import count_predicted

        threshold = self._find_threshold(model)
        if self.max_labels is not None and not model.multilabel_:
            raise ValueError(
                "--max-labels is for models of label sets; this one gives one class each."
            )
        texts, among = class_texts(model), self._read_limits(model)
        # A label set is the beginning of the ranking, so its probabilities are there too.
        depth = count_candidates(model) if model.multilabel_ else 1

        def predict(chunk: Chunk, top: int | None) -> list[Prediction]:
            ranking = rank(model, chunk.content, max(top or 1, depth), **among)
            sizes = count_predicted(ranking, model.multilabel_, threshold, self.max_labels)
            sets = [[label for label, _ in ranking[i][:n]] for i, n in enumerate(sizes.tolist())]
            labels = sets if model.multilabel_ else [found[0] if found else None for found in sets]
            return rank_rows(chunk, ranking, labels, top, texts)

        def answer_nodes(chunk: Chunk, _: int | None) -> list[Prediction]:
            found = model.predict_nodes(chunk.content, self.back_off, **among)
            ranking = TopK(
                found.labels[:, None], found.probabilities[:, None], found.valid[:, None]
            )
            nodes = zip(found.labels.tolist(), found.valid.tolist(), strict=True)
            labels = [label if valid else None for label, valid in nodes]
            return rank_rows(chunk, ranking, labels, 1, texts)

        return predict if self.back_off is None else answer_nodes

    def _find_threshold(self, model: Any) -> Threshold | None:
        """Return what decides where the class is left empty; None where nothing was asked for."""
        if self.precision is None:
            return None
        if not knows_probabilities(model):
            raise ValueError(
                f"--precision needs a model with probabilities; this is a {type(model).__name__}."
            )
        at_level = {} if self.level is None else {"level": self.level}
        threshold: Threshold = model.threshold_for(
            self.precision, self.unknown, each=self.each, **at_level
        )
        if not threshold.n_documents:
            raise ValueError(
                f"a precision of {self.precision} cannot be reached: no threshold gave it on the "
                "documents held out in fit. Ask for less, or fit with more documents."
            )
        return threshold

    def _read_limits(self, model: Any) -> dict[str, Any]:
        """Return the classes to choose among, as the model's methods take them.

        A model that answers by nodes is told the share of documents of unknown classes.
        """
        from longtail.estimators.within import read_subsets

        needs_hierarchy = self.branch is not None or self.level is not None
        if needs_hierarchy and getattr(model, "hierarchy_", None) is None:
            raise ValueError(
                "this model has no hierarchy; fit one with --hierarchy FILE, --parent-column, "
                "--path-separator or --taxonomy FILE."
            )
        labels = {
            name: _read_labels(name, path, model)
            for name, path in (("within", self.within), ("exclude", self.exclude))
            if path is not None
        }
        branch = None if self.branch is None else as_label(model, self.branch)
        given = read_limits(model, **labels, branch=branch)
        read_subsets(given.get("within"), given.get("exclude"), model.classes_, 1)  # checks them
        if self.unknown and self.back_off is not None:
            model.expect_unknown(self.unknown)
        return given if self.level is None else given | {"level": self.level}


def _read_labels(name: str, path: Path, model: Any) -> list[Any]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"--{name} {path}: cannot be read as UTF-8 text: {error}") from None
    return [as_label(model, line.strip()) for line in lines if line.strip()]
