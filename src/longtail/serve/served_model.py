"""The current model and its version, changes to it, and changes by other processes.

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
from longtail.answers import (
    check_takes_texts,
    class_texts,
    count_candidates,
    knows_probabilities,
    rank,
    text_columns,
)
from longtail.class_search import ClassSearch
from longtail.estimators.text import TextClassifier
from longtail.exceptions import ModelFileError
from longtail.model.state import LongTailState
from longtail.model.statistics import ClassStatistics
from longtail.results import Health, Threshold
from longtail.serve.problems import Problem, busy
from longtail.sparse import Integers
from longtail.store.changes import Change
from longtail.store.journal import waiting_changes
from longtail.taxonomy.hierarchy import Hierarchy
from longtail.teaching.versions import Follower, VersionedTeacher, fingerprint
from longtail.training.health import PRECISION, OutcomeFigures, measure_outcomes

_LOGGER = logging.getLogger("longtail.serve")
_WARM_UP = ("warm up: a first text compiles or loads every kernel",)


class Snapshot:
    """A model, its version, and what is derived from them, once.

    The model never changes. The index of class names of an earlier snapshot is reused.
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
        return text_columns(self.model)

    @cached_property
    def texts(self) -> dict[Any, str]:
        """Names or descriptions of the classes that have any."""
        return dict(class_texts(self.model))

    @cached_property
    def names(self) -> ClassSearch:
        """The names of the classes, searchable."""
        return ClassSearch.index(self.classes, self.texts, self._before)

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
        sizes: Integers = self.model.classifier_.state_.class_sizes
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
        sums: ClassStatistics = state.gather_statistics(np.array([row]))
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
        rank(model, list(_WARM_UP), 1)
        model.explain(list(_WARM_UP))

    @property
    def snapshot(self) -> Snapshot:
        """The current model."""
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
        return waiting_changes(self.path)

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
        """Check for news periodically; log what cannot be read, and go on."""
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
            task.exception()  # the client may be gone


def _check_model(path: Path, model: Any) -> TextClassifier:
    """Refuse a model that does not take texts, or lacks its encoder."""
    check_takes_texts(model, path, "a service needs")
    texts: TextClassifier = model
    _ = texts.state_.embed([])  # says that an encoder is missing
    return texts
