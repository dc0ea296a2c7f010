"""From partitions to blocks of counts: read, build the vocabulary, count, list the classes.

In: partitions. Out: for each block of documents a file of counts and labels, and one file with the
sorted labels of all. A partition is read once; of its texts the ids of their terms are kept until
the vocabulary of all texts is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from longtail._columns import align_labels, as_labels
from longtail._kernels.interning import TermIds
from longtail._labels import LabelForm, Labels, LabelSets, Multilabel, join_sets
from longtail._validation import check_enough_classes
from longtail.datasets.records import Chunk
from longtail.distributed.memory_plan import count_vector_characters
from longtail.distributed.partitions import Partition, group_chunks, read_chunks
from longtail.distributed.task_results import (
    TaskResult,
    read_flat_labels,
    read_labels,
    read_part,
    read_result,
    write_result,
)
from longtail.distributed.tasks import Run
from longtail.estimators.class_texts import check_text_labels
from longtail.estimators.embedder import Embedder
from longtail.exceptions import PartitionError
from longtail.sparse import CountMatrix
from longtail.text import TermSelection, TokenizerOptions, Vocabulary, VocabularyBuilder
from longtail.text.builder import TermCounts, count_interned
from longtail.text.fields import pack_edges, unpack_edges

_EMBEDDINGS = "embeddings"


def read_counts(
    run: Run, partition: Partition, block_size: int, multilabel: Multilabel
) -> TaskResult:
    """Read a partition of counts into blocks of about `block_size` entries."""
    chunks = group_chunks(read_chunks(partition, multilabel=multilabel), block_size)
    return _write_blocks(run, partition, chunks, _count_block, texts=False)


def read_texts(
    run: Run,
    partition: Partition,
    block_size: int,
    multilabel: Multilabel,
    options: TokenizerOptions,
    embedder: Embedder | None = None,
) -> TaskResult:
    """Read a partition of texts into blocks of about `block_size` characters, tokenized."""

    def tokenize(chunk: Chunk) -> TaskResult:
        builder = VocabularyBuilder(options, run.n_jobs)
        builder.add(chunk.content)
        ids, indptr = builder.term_ids()
        contents = TaskResult(arrays={"ids": ids, "indptr": indptr})
        if embedder is not None:
            contents.arrays[_EMBEDDINGS] = embedder.embed(chunk.content, options.fields)
        return contents.add("terms", builder.term_counts())

    read = read_chunks(partition, multilabel=multilabel, fields=options.fields)
    chunks = group_chunks(read, block_size, count_vector_characters(embedder))
    return _write_blocks(run, partition, chunks, tokenize, texts=True)


def merge_terms(run: Run, paths: list[str], options: TokenizerOptions) -> TaskResult:
    """Sum the term counts of blocks."""
    return TaskResult().add("terms", _merge(paths, options).term_counts())


def select_terms(
    run: Run, paths: list[str], options: TokenizerOptions, selection: TermSelection
) -> TaskResult:
    """Sum the last term counts, and choose the vocabulary."""
    vocabulary, _ = _merge(paths, options).finish(selection)
    if vocabulary.n_terms == 0:
        raise ValueError(
            f"no term of the documents is kept by min_df={selection.min_df!r}, "
            f"max_df={selection.max_df!r} and the stop words, so the vocabulary is empty. Lower "
            "min_df, raise max_df, or give texts with words in them."
        )
    bins = pack_edges(vocabulary.options.fields) or {}
    return TaskResult(
        {"n_terms": vocabulary.n_terms},
        {
            "utf8": vocabulary.utf8,
            "offsets": vocabulary.offsets,
            "document_frequencies": vocabulary.document_frequencies,
            **{f"bins.{name}": array for name, array in bins.items()},
        },
    )


def read_vocabulary(path: str, options: TokenizerOptions) -> Vocabulary:
    """Return the vocabulary that `select_terms` has chosen."""
    arrays = read_result(path).arrays
    if "bins.edges" in arrays:
        bins = {name: arrays[f"bins.{name}"] for name in ("edges", "offsets")}
        options = replace(options, fields=unpack_edges(options.fields, bins))
    return Vocabulary(arrays["utf8"], arrays["offsets"], arrays["document_frequencies"], options)


def count_terms(run: Run, block: str, vocabulary: str, options: TokenizerOptions) -> TaskResult:
    """Count the terms of the vocabulary in a block of tokenized texts."""
    file = read_result(block)
    X = count_interned(
        read_vocabulary(vocabulary, options),
        read_part(TermCounts, file, "terms"),
        TermIds(file.arrays["ids"], file.arrays["indptr"]),
    )
    counts = replace(CountMatrix.from_matrix(X), embeddings=file.arrays.get(_EMBEDDINGS))
    return TaskResult(_sizes(counts)).add("counts", counts).add_labels(read_labels(block))


def list_classes(run: Run, paths: list[str], have_text: str | None = None) -> TaskResult:
    """Return the labels of all partitions, sorted, each once; of label sets with their form.

    `have_text` is the file of the labels that have a text: they are classes as well.
    """
    known = _list_labels([read_labels(path) for path in paths])
    classes = known.classes if isinstance(known, LabelSets) else known
    if classes.dtype.kind in "fc" and classes is known:
        check_classification_targets(classes)
    if have_text is not None:
        labels = align_labels(read_flat_labels(have_text), classes)
        check_text_labels(labels, classes, getattr(known, "form", LabelForm()))
        classes = np.union1d(classes, labels)
        known = replace(known, classes=classes) if isinstance(known, LabelSets) else classes
    check_enough_classes(classes)
    return TaskResult().add_labels(known)


def _merge(paths: list[str], options: TokenizerOptions) -> VocabularyBuilder:
    builder = VocabularyBuilder(options)
    for path in paths:
        builder.add_counts(read_part(TermCounts, read_result(path), "terms"))
    return builder


def _count_block(chunk: Chunk) -> TaskResult:
    """Return counts in the form of the kernels."""
    counts = CountMatrix.from_matrix(chunk.content)
    return TaskResult(_sizes(counts)).add("counts", counts)


def _sizes(counts: CountMatrix) -> dict[str, Any]:
    """Return what must be known of a block before it is read."""
    return {
        "n_documents": counts.n_documents,
        "n_entries": len(counts.data),
        "n_terms": counts.n_terms,
        "is_wide": counts.data.dtype == np.float64,
    }


def _write_blocks(
    run: Run,
    partition: Partition,
    chunks: Iterator[Chunk],
    make: Callable[[Chunk], TaskResult],
    *,
    texts: bool,
) -> TaskResult:
    """Write a file for each block; the result lists them, with the distinct labels of all."""
    blocks: list[str] = []
    sizes: list[dict[str, Any]] = []
    labels: list[Labels] = []
    for chunk in chunks:
        if isinstance(chunk.content, list) != texts:
            expected = "texts, not counts" if texts else "counts, not texts (see TextClassifier)"
            raise PartitionError(partition.name, f"this estimator learns from {expected}.")
        try:
            contents = make(chunk).add_labels(chunk.labels)
        except ValueError as error:
            raise PartitionError(partition.name, error) from error
        blocks.append(f"{run.target}.{len(blocks)}")
        write_result(blocks[-1], contents)
        sizes.append({**contents.values, "n_documents": len(chunk.lines)})
        labels.append(_list_labels([chunk.labels]))
    return TaskResult({"n_blocks": len(blocks), "sizes": sizes}).add_labels(_list_labels(labels))


def _list_labels(chunks: list[Labels]) -> Labels:
    """Return the distinct labels of chunks, sorted; of label sets as the classes of no document."""
    labels = join_sets(chunks) if chunks else as_labels([])
    if not isinstance(labels, LabelSets):
        return np.unique(labels)
    if labels.n_documents:
        labels = labels.drop_unused_classes()
    nothing = np.zeros(0, np.int64)
    return LabelSets(np.zeros(1, np.int64), nothing, labels.classes, labels.form)
