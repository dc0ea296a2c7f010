"""Class texts of a fit over partitions: kept as files, counted, weighed; the bits of a plain fit.

In: what `fit` takes as `class_texts`. Out: `TextFiles`. Which labels have a text
decides the classes and the draws; what their texts count is seen by the self-check first. So a text
that changes leaves all earlier results as they are; a label that is added or left out does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from longtail._columns import as_labels
from longtail._validation import look_up
from longtail.distributed.memory_plan import Plan
from longtail.distributed.on_disk import OnDisk
from longtail.distributed.stages import Stages
from longtail.distributed.tables_to_blocks import read_vocabulary
from longtail.distributed.task_results import TaskResult, read_flat_labels, read_part, read_result
from longtail.distributed.tasks import Run
from longtail.estimators.class_texts import read_class_texts
from longtail.estimators.embedder import Embedder
from longtail.sparse import CountMatrix, Integers
from longtail.store.texts import pack_texts
from longtail.text import TokenizerOptions
from longtail.training.name_rows import count_names
from longtail.training.pipeline import ClassTexts

STAGE = "class texts"
_COUNTS, _TEXTS, _EMBEDDINGS = "counts", "texts", "embeddings"


@dataclass(frozen=True)
class TextFiles:
    """The files of class texts."""

    labels: str  # labels that have a text, sorted
    rows: str  # the counts of their texts, in the same order

    @property
    def n_entries(self) -> int:
        """How many terms the texts of all classes have."""
        return len(read_result(self.rows).arrays[f"{_COUNTS}.data"])

    def view(self, run: OnDisk, classes: str) -> ClassTexts:
        """Return the texts as a fit takes them, now that the file of the classes is known."""
        return ClassTexts(
            run.view(_read_rows, path=self.rows),
            run.view(_find_rows, labels=self.labels, classes=classes),
        )


def _read_rows(path: str) -> CountMatrix:
    return read_part(CountMatrix, read_result(path), _COUNTS)


def _find_rows(labels: str, classes: str) -> Integers:
    return look_up(read_flat_labels(labels), read_flat_labels(classes))


def keep_rows(class_texts: Any, n_terms: int, stages: Stages) -> TextFiles:
    """Keep rows of counts, now that the number of terms is known."""
    labels, rows = _not_none(read_class_texts(class_texts, n_terms))
    return TextFiles(
        stages.keep(STAGE, TaskResult().add_labels(labels)),
        stages.keep(STAGE, TaskResult().add(_COUNTS, rows)),
    )


def keep_texts(
    class_texts: Mapping[Any, str],
    vocabulary: str,
    options: TokenizerOptions,
    stages: Stages,
    plan: Plan,
    embedder: Embedder | None = None,
) -> TextFiles:
    """Keep texts with their embeddings, and count the terms of the vocabulary in them."""
    labels, texts = as_labels(list(class_texts)), list(class_texts.values())
    order = np.argsort(labels, kind="stable").tolist()
    plan.check_class_texts(read_vocabulary(vocabulary, options), texts)
    ordered = pack_texts(_TEXTS, (texts[i] for i in order))
    if embedder is not None:
        ordered[_EMBEDDINGS] = embedder.embed(texts)[order]
    return TextFiles(
        stages.keep(STAGE, TaskResult().add_labels(labels[order])),
        stages.one(
            STAGE,
            count_class_texts,
            texts=stages.keep(STAGE, TaskResult({}, ordered)),
            vocabulary=vocabulary,
            options=options,
        ),
    )


def count_class_texts(
    run: Run, texts: str, vocabulary: str, options: TokenizerOptions
) -> TaskResult:
    """Count the terms of a vocabulary in texts, by the words that look like theirs."""
    known = read_vocabulary(vocabulary, options)
    file = read_result(texts)
    rows = count_names(known, file.texts(_TEXTS), run.n_jobs)
    labels = np.arange(rows.shape[0])  # a text for each, in their order
    counts = _not_none(read_class_texts((labels, rows), known.n_terms))[1]
    counts = replace(counts, embeddings=file.arrays.get(_EMBEDDINGS))
    return TaskResult().add(_COUNTS, counts)


def _not_none(texts: Any) -> Any:
    """Return texts that were checked before."""
    if texts is None:
        raise ValueError("class_texts has no text any more; it must stay as it is during a fit.")
    return texts
