"""`fit_partitions`: the stages of a fit over partitions, with the bits of a plain `fit`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from longtail._labels import LabelSets, replicate
from longtail._progress import OnStage, StageReporter
from longtail.distributed.blocks import Block, number_labels
from longtail.distributed.class_text_files import TextFiles, keep_rows, keep_texts
from longtail.distributed.double_sampling_blocks import fit_double_sampling_blocks
from longtail.distributed.memory_plan import Plan, plan_memory
from longtail.distributed.on_disk import OnDisk
from longtail.distributed.partitions import Partition, hash_partition, list_partitions
from longtail.distributed.stages import OnTask, Stages
from longtail.distributed.tables_to_blocks import (
    count_terms,
    list_classes,
    merge_terms,
    read_counts,
    read_texts,
    read_vocabulary,
    select_terms,
)
from longtail.distributed.task_results import read_flat_labels, read_labels, read_result
from longtail.distributed.tasks import check_client, check_sendable, count_workers
from longtail.estimators import fit_elsewhere
from longtail.estimators.added_documents import AddedDocuments
from longtail.estimators.embedder import Embedder
from longtail.estimators.long_tail import LongTailClassifier
from longtail.estimators.text import TextClassifier
from longtail.paper.estimator import DoubleSamplingClassifier
from longtail.text import TermSelection, TokenizerOptions
from longtail.text.vectorizer import select_parameters
from longtail.training.pipeline import learn, sum_statistics

Estimator = TypeVar("Estimator", LongTailClassifier, DoubleSamplingClassifier, TextClassifier)


def fit_partitions(
    estimator: Estimator,
    partitions: Any,
    *,
    client: Any = None,
    scratch: str | os.PathLike[str],
    memory_limit: int | str | None = None,
    on_stage: OnStage | None = None,
    on_task: OnTask | None = None,
    clean: bool = False,
    class_texts: Any = None,
) -> Estimator:
    """Fit an estimator on partitions: the same model, bit for bit, as from one `fit`.

    Parameters
    ----------
    estimator : LongTailClassifier, DoubleSamplingClassifier or TextClassifier
        Is fitted in place. Its `n_jobs` is for tasks that run alone.
    partitions : path, Table, CountFile, callable, or a sequence of these
        The documents, in order: svmlight files by their path, tables of text as
        `longtail.datasets.Table`, functions that return ``(X, y)`` or ``(texts, y)``; `y` as for
        `fit`. A path may be a pattern or a folder.
    client : dask.distributed.Client, concurrent.futures.Executor or None, default=None
        Where tasks run; None is this process.
    scratch : path-like
        A folder that all workers see, for the results of tasks. What is there already is used: a
        second call after a failure does only what is missing.
    memory_limit : int or str, optional
        Bytes, or such as ``"6GB"``, for all processes on one machine together. Blocks and shards
        are made small enough, or the call is refused.
    on_stage : callable, optional
        Hears ``(stage, tasks done, tasks)``.
    on_task : callable, optional
        Hears a `TaskReport` of each task that was run.
    clean : bool, default=False
        Whether the results are removed at the end; the fitted model keeps what it needs.
    class_texts : mapping, or pair (labels, matrix), optional
        Names, synonyms or descriptions of classes, as for `fit` of the estimator: texts for a
        `TextClassifier`, rows of counts for a `LongTailClassifier`.

    Returns
    -------
    estimator
        The same object, fitted.

    Raises
    ------
    PartitionError
        A partition cannot be read; which one, and why.
    MemoryLimitError
        The memory limit is too low; says what is needed.

    Examples
    --------
    >>> import tempfile
    >>> from longtail import LongTailClassifier
    >>> parts = [lambda: ([[2, 0], [0, 1]], ["a", "b"]), lambda: ([[3, 0], [0, 4]], ["a", "b"])]
    >>> with tempfile.TemporaryDirectory() as scratch:
    ...     model = fit_partitions(LongTailClassifier(random_state=0), parts, scratch=scratch)
    >>> model.predict([[1, 0]]).tolist()
    ['a']
    """
    check_client(client)
    fit_elsewhere.refuse_parameters(estimator)
    given_texts = fit_elsewhere.check_text_form(estimator, class_texts)
    listed = list_partitions(partitions)
    n_workers = count_workers(client)
    n_processes = 1 if client is None else n_workers + 1
    plan = plan_memory(memory_limit, listed, n_workers, n_processes)
    folder = os.path.abspath(scratch)
    Path(folder).mkdir(parents=True, exist_ok=True)
    stages = Stages(
        folder,
        client,
        estimator.n_jobs,
        on_stage or StageReporter(estimator.verbose),
        on_task or (lambda _: None),
    )
    if estimator.takes_texts:
        _fit_texts(estimator, listed, stages, plan, given_texts)
    else:
        fit_elsewhere.check_parameters(estimator)
        read = _read(estimator, listed, stages, read_counts, block_size=plan.block_entries)
        blocks = _as_blocks(read)
        texts = None
        if given_texts is not None:
            texts = keep_rows(given_texts, blocks[0].n_terms, stages)
        _fit_counts(estimator, blocks, read, stages, plan, texts)
    if clean:
        remove_results(stages)
    return estimator


def remove_results(stages: Stages) -> None:
    """Remove the results of a fit; maps of them stay valid."""
    for target in stages.targets:
        path = Path(target)
        for file in path.parent.glob(f"{path.name}*"):
            file.unlink(missing_ok=True)
    for folder in {Path(target).parent for target in stages.targets}:
        if not any(folder.iterdir()):
            shutil.rmtree(folder, ignore_errors=True)


def _fit_texts(
    estimator: TextClassifier,
    partitions: list[Partition],
    stages: Stages,
    plan: Plan,
    class_texts: dict[Any, str] | None,
) -> None:
    """Build the vocabulary, count, and fit the classifier of counts."""
    vectorizer, classifier = fit_elsewhere.new_parts(estimator)
    embedder = fit_elsewhere.embedder_of(estimator, classifier)
    if embedder is not None:
        check_sendable(embedder, stages.client)
    options: TokenizerOptions = select_parameters(vectorizer, TokenizerOptions)
    selection: TermSelection = select_parameters(vectorizer, TermSelection)
    read = _read(
        classifier,
        partitions,
        stages,
        read_texts,
        embedder,
        block_size=plan.block_characters,
        options=options,
    )
    tokenized = [
        f"{path}.{i}" for path in read for i in range(read_result(path).parameters["n_blocks"])
    ]
    merged = stages.reduce("vocabulary", merge_terms, tokenized, options=options)
    vocabulary = stages.one(
        "vocabulary", select_terms, paths=merged, options=options, selection=selection
    )
    counted = stages.each(
        "counting",
        count_terms,
        [{"block": path} for path in tokenized],
        vocabulary=vocabulary,
        options=options,
    )
    blocks = _unify((path, read_result(path).parameters) for path in counted)
    texts = None
    if class_texts is not None:
        texts = keep_texts(class_texts, vocabulary, options, stages, plan, embedder)
    blocks = _fit_counts(classifier, blocks, read, stages, plan, texts)
    terms = read_vocabulary(vocabulary, options)
    added = AddedDocuments.empty(complete=bool(estimator.remember_documents))
    if estimator.remember_documents:
        for block in blocks:
            documents = block.open()
            X, class_ids = replicate(documents.counts.to_csr(), documents.labels)
            added = added.add(X, class_ids, terms.n_terms)
    fit_elsewhere.adopt_texts(estimator, terms, classifier, added, class_texts or {}, embedder)


def _read(
    classifier: Any,
    partitions: list[Partition],
    stages: Stages,
    function: Any,
    embedder: Embedder | None = None,
    **arguments: Any,
) -> list[str]:
    """Read all partitions; what their content decides is found by its hash."""
    arguments["multilabel"] = getattr(classifier, "multilabel", "auto")
    hashes = stages.call("hashing", hash_partition, partitions)
    cases = []
    for partition, content in zip(partitions, hashes, strict=True):
        is_function = callable(partition.source)
        layout = None if is_function else replace(partition.source, path="")  # type: ignore[type-var]
        identity: tuple[Any, ...] = (content, layout, arguments)
        if embedder is not None:  # the same encoder may be another object
            identity = (*identity, embedder.name, embedder.probe.tolist())
        cases.append({"partition": partition, "identity": identity})
    if embedder is not None:
        arguments = arguments | {"embedder": embedder}
    return stages.each("reading", function, cases, **arguments)


def _as_blocks(read: list[str]) -> list[Block]:
    """Return the blocks of partitions of counts."""
    return _unify(
        (f"{path}.{i}", sizes)
        for path in read
        for i, sizes in enumerate(read_result(path).parameters["sizes"])
    )


def _unify(files: Iterable[tuple[str, dict[str, Any]]]) -> list[Block]:
    """Return blocks as parts of one matrix: as wide as the widest, in bits as well."""
    known = list(files)
    if not known:
        raise ValueError("the partitions have no document at all; at least 2 classes are needed.")
    n_terms = max(sizes["n_terms"] for _, sizes in known)
    is_wide = any(sizes["is_wide"] for _, sizes in known)
    return [Block(path, sizes["n_documents"], n_terms, is_wide) for path, sizes in known]


def _fit_counts(
    classifier: Any,
    blocks: list[Block],
    read: list[str],
    stages: Stages,
    plan: Plan,
    texts: TextFiles | None,
) -> list[Block]:
    """Fit a classifier of counts on blocks; return them with their labels."""
    have_text = None if texts is None else texts.labels
    classes = stages.one("classes", list_classes, paths=read, have_text=have_text)
    known = read_labels(classes)
    fit_elsewhere.check_takes(classifier, known)
    numbered = stages.each(
        "classes", number_labels, [{"block": block} for block in blocks], classes=classes
    )
    blocks = [replace(block, labels=path) for block, path in zip(blocks, numbered, strict=True)]
    run = OnDisk(stages, plan)
    sublinear = fit_elsewhere.sums_sublinear(classifier)
    statistics = sum_statistics(run, blocks, sublinear=sublinear)
    plan.check(run.read(statistics), blocks, 0 if texts is None else texts.n_entries)
    labels, config = np.asarray(read_flat_labels(classes)), fit_elsewhere.config_of(classifier)
    state: Any
    if isinstance(classifier, LongTailClassifier):
        config = replace(config, n_jobs=None)  # tasks are told by who runs them
        class_texts = None if texts is None else texts.view(run, classes)
        state = learn(run, blocks, statistics, labels, config, class_texts)
    else:
        state = fit_double_sampling_blocks(run, blocks, statistics, labels, config)
    if isinstance(known, LabelSets):
        state = replace(state, label_form=known.form)
    fit_elsewhere.adopt_state(classifier, state)
    return blocks
