"""The model of the present moment, with its version; changes to it; what other processes taught.

In: the path of a model file. Out: a `Snapshot` that stays as it is while others come. Changes run
one after the other in a thread of their own; predictions go on with the snapshot before.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from longtail._caching import cached_property
from longtail._records import Fields
from longtail.answers import class_texts, count_candidates, knows_probabilities, rank
from longtail.class_names import ClassNames
from longtail.estimators.text import TextClassifier
from longtail.exceptions import ModelFileError
from longtail.model.state import LongTailState
from longtail.model.statistics import ClassStatistics
from longtail.results import Health, Threshold
from longtail.serve.problems import Problem, busy
from longtail.sparse import Integers
from longtail.store.changes import Change
from longtail.taxonomy.hierarchy import Hierarchy
from longtail.teaching.versions import Follower, VersionedTeacher, fingerprint, read_history
from longtail.training.changing import gather_statistics, merged_class_sizes
from longtail.training.health import PRECISION, OutcomeFigures, measure_outcomes

_LOGGER = logging.getLogger("longtail.serve")
_WARM_UP = ("warm up: a first text compiles or loads every kernel",)


class Snapshot:
    """A model, its version, and what is derived from them once.

    The model never changes. The index of class names of an earlier snapshot is used again.
    """

    def __init__(self, model: TextClassifier, version: str, before: Snapshot | None) -> None:
        self.model, self.version = model, version
        self.classes = model.classes_
        self.is_multilabel = model.multilabel_
        self.has_probabilities = knows_probabilities(model)
        self._before = None if before is None else vars(before).get("names")

    @property
    def n_candidates(self) -> int:
        """How many classes are found for a text."""
        return count_candidates(self.model)

    @property
    def fields(self) -> Fields | None:
        """The fields of documents that are records."""
        fields: Fields | None = self.model.vocabulary_.options.fields
        return fields

    @property
    def text_columns(self) -> tuple[str, ...]:
        """The columns of a record that make up its text, or all its fields."""
        if self.fields is not None:
            return self.fields.names
        columns = self.model.columns_
        return columns.text if columns is not None and columns.text else ("text",)

    @cached_property
    def texts(self) -> dict[Any, str]:
        """Names or descriptions of the classes that have any."""
        return dict(class_texts(self.model))

    @cached_property
    def names(self) -> ClassNames:
        """The names of the classes, searchable."""
        return ClassNames.index(self.classes, self.texts, self._before)

    @cached_property
    def roots(self) -> NDArray[Any]:
        """The nodes without a parent, and the classes that are no nodes, sorted."""
        hierarchy: Hierarchy | None = self.model.hierarchy_
        if hierarchy is None:
            return np.asarray(self.classes)
        outside = self.classes[hierarchy.find(self.classes) < 0]
        return np.asarray(np.sort(np.concatenate([hierarchy.nodes[hierarchy.roots], outside])))

    @cached_property
    def class_sizes(self) -> Integers:
        """The number of documents of each class."""
        state = self.model.classifier_.state_
        if isinstance(state, LongTailState):
            return merged_class_sizes(state)
        sizes: Integers = state.statistics.class_sizes
        return sizes

    def count_documents(self, row: int) -> int | float:
        """Return how many documents a class has; weights of documents may give fractions."""
        size: int | float = self.class_sizes[row].item()
        return int(size) if size == int(size) else size

    @cached_property
    def health(self) -> Health | None:
        """How far the model has moved from what was learned; None where it does not say."""
        measure = getattr(self.model, "health", None)
        return None if measure is None else measure()

    @cached_property
    def outcomes(self) -> OutcomeFigures:
        """How the last outcomes turned out; cheap beside `health`, which puts all sums together."""
        state = self.model.classifier_.state_
        if not isinstance(state, LongTailState):
            return OutcomeFigures(0, math.nan, math.nan, math.nan)
        return measure_outcomes(state)

    @cached_property
    def threshold(self) -> Threshold:
        """The threshold of the precision by which abstentions are counted."""
        found: Threshold = self.model.threshold_for(PRECISION)
        return found

    @property
    def n_labels(self) -> int:
        """The number of labels of all documents."""
        total: float = self.class_sizes.sum().item()
        return round(total)

    @property
    def n_documents(self) -> int:
        """The number of documents; of a model of label sets, those of the last fit."""
        return self.model.n_documents_ if self.is_multilabel else self.n_labels

    def sum_class(self, row: int) -> ClassStatistics:
        """Return the sums of one class, without those of all others."""
        state = self.model.classifier_.state_
        rows = np.array([row])
        if isinstance(state, LongTailState):
            return gather_statistics(state, rows)
        sums: ClassStatistics = state.statistics.gather(rows)
        return sums


class ServedModel:
    """The model file of a service.

    Raises
    ------
    ValueError
        If the model does not take texts.
    """

    def __init__(
        self,
        path: Path,
        *,
        read_only: bool,
        most_queued: int,
        refine: Literal["auto", "never"] = "auto",
        memory: Literal["auto", "never"] = "auto",
        embedder: Any = None,
    ) -> None:
        self.path = path
        self._seen = fingerprint(path)
        self._source: Any
        if read_only:
            self._source = Follower(path, embedder=embedder)
        else:
            self._source = VersionedTeacher(path, refine=refine, memory=memory, embedder=embedder)
        self._most_queued, self._n_queued = most_queued, 0
        self._executor = ThreadPoolExecutor(1, "longtail-change")
        model, version = self._source.current
        self._snapshot = Snapshot(_check_model(path, model), version, None)
        _ = self._snapshot.names
        self._warm_up()

    @property
    def snapshot(self) -> Snapshot:
        """The model of this moment."""
        model, version = self._source.current
        if version != self._snapshot.version or model is not self._snapshot.model:
            self._snapshot = Snapshot(model, version, self._snapshot)
        return self._snapshot

    async def change(self, action: Callable[[VersionedTeacher], int], against: str | None) -> int:
        """Make a change in its turn; return its number once the disk has it.

        `against` is the version that it was made against; None accepts any.

        Raises
        ------
        Problem
            503 where too many changes wait.
        longtail.exceptions.VersionConflictError
            If the model has another version by then.
        """

        def run() -> int:
            with self._source.made_against(against):
                return action(self._source)

        change_number: int = await self._run_in_turn(run)
        return change_number

    def read_changes(self) -> list[Change]:
        """Return the journal, oldest first."""
        return read_history(self.path)

    async def refresh(self) -> bool:
        """Take in another model file, or what others taught; return whether anything was new.

        Raises
        ------
        longtail.exceptions.ModelFileError, OSError
            If it cannot be read; the model stays as it was.
        """
        seen = fingerprint(self.path)
        if seen == self._seen:
            return False
        before = self.snapshot.version
        await self._run_in_turn(self._source.refresh)
        self._seen = seen
        return self.snapshot.version != before

    async def follow(self, seconds: float) -> None:
        """Look for news every so often, for ever; what cannot be read is logged and left."""
        failed = ""
        while True:
            await asyncio.sleep(seconds)
            try:
                if await self.refresh():
                    _LOGGER.info("the model has version %s now", self.snapshot.version)
                failed = ""
            except (ModelFileError, OSError, Problem) as error:
                if str(error) != failed:  # once for each reason
                    _LOGGER.warning("the model stays as it is: %s", error)
                failed = str(error)

    def close(self) -> None:
        """Finish the change under way, and close the journal."""
        self._executor.shutdown(wait=True, cancel_futures=True)
        self._source.close()

    async def _run_in_turn(self, function: Callable[[], Any]) -> Any:
        if self._n_queued >= self._most_queued:
            raise busy(f"{self._n_queued} changes are waiting already; try again in a second.")
        self._n_queued += 1
        loop = asyncio.get_running_loop()
        task = loop.run_in_executor(self._executor, function)
        # A client that goes away does not undo what has begun.
        task.add_done_callback(self._is_done)
        return await asyncio.shield(task)

    def _is_done(self, task: asyncio.Future[Any]) -> None:
        self._n_queued -= 1
        if not task.cancelled():
            task.exception()  # whoever waited may be gone

    def _warm_up(self) -> None:
        model = self._snapshot.model
        rank(model, list(_WARM_UP), 1)
        model.explain(list(_WARM_UP))


def _check_model(path: Path, model: Any) -> TextClassifier:
    """Refuse a model that does not take texts."""
    if not model.takes_texts:
        raise ValueError(
            f"{path}: holds a {type(model).__name__}, which takes counts; a service needs a model "
            "that takes texts. Fit one with: longtail fit, or TextClassifier."
        )
    texts: TextClassifier = model
    _ = texts.state_.embed([])  # says that an encoder is missing
    return texts
