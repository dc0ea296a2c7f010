"""Hard negatives: the wrong classes that score highest for a document.

In: documents with their label sets, a scorer and its index. Out: for each document its negatives,
best first: classes outside its whole label set. The paper's uniform adversaries can be drawn
instead.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._caching import cached_property
from longtail._labels import LabelSets
from longtail._progress import advance
from longtail.model.scorer import LinearScorer
from longtail.model.weighting import WeightedDocuments
from longtail.retrieval.index import AnyIndex
from longtail.retrieval.pruning import QueryPruning
from longtail.retrieval.search import search
from longtail.sparse import Floats, Integers, gather_rows, index_dtype

MINING_BLOCK = 8_192  # documents; the scores of their negatives are not kept


@dataclass(frozen=True, eq=False)
class ClassLists:
    """(Document, label) pairs, each with a list of classes to tell the label from."""

    document_ids: Integers  # (M,): rows of their documents
    # (M, 1 + n_negatives): the label in column 0; the others are no labels of the document.
    classes: NDArray[Any]
    # (M,): the class that must forget the document before it is scored; -1 for none.
    left_out: Integers
    reached: NDArray[np.bool_]  # (M,) bool: whether the true class would be among the candidates
    # (M, 1 + n_negatives) float32: logarithm of how many classes each class stands for in the
    # softmax over its list.
    log_multiplicities: NDArray[np.float32]
    # (M,): how many documents each counts as in the class that must forget it, and what its loss
    # counts; None where all are 1.
    sample_weights: Floats | None = None
    costs: Floats | None = None

    def __getitem__(self, selection: Any) -> ClassLists:
        """Return the lists of some documents."""
        return ClassLists(
            self.document_ids[selection],
            self.classes[selection],
            self.left_out[selection],
            self.reached[selection],
            self.log_multiplicities[selection],
            None if self.sample_weights is None else self.sample_weights[selection],
            None if self.costs is None else self.costs[selection],
        )

    def __len__(self) -> int:
        """M."""
        return len(self.document_ids)


@dataclass(frozen=True, eq=False)
class MinedPairs:
    """Documents with the classes they teach: their labels, then their negatives, best first."""

    labels: LabelSets  # of each document
    n_negatives: int  # q, of each document
    # (n_labels + q * n_documents,): class ids, document by document; -1 where there is no other
    # class.
    classes: NDArray[Any]

    @cached_property
    def indptr(self) -> Integers:
        """Where the pairs of each document begin."""
        return self.labels.indptr + self.n_negatives * np.arange(self.labels.n_documents + 1)

    @cached_property
    def label_positions(self) -> Integers:
        """Which pairs are labels."""
        return np.arange(len(self.labels.class_ids)) + self.n_negatives * self.labels.document_ids

    def slice(self, documents: slice) -> MinedPairs:
        """Return documents that follow each other."""
        first, last, _ = documents.indices(self.labels.n_documents)
        classes = self.classes[self.indptr[first] : self.indptr[last]]
        return MinedPairs(self.labels.slice(documents), self.n_negatives, classes)

    def gather(self, documents: Integers) -> MinedPairs:
        """Return some documents, in the order given."""
        _, entries = gather_rows(self.indptr, documents)
        return replace(self, labels=self.labels.gather(documents), classes=self.classes[entries])

    @property
    def negatives(self) -> NDArray[Any]:
        """The negatives, a row for each document."""
        return self.classes[self._are_negatives].reshape(-1, self.n_negatives)

    @property
    def document_ids(self) -> Integers:
        """The document of each pair."""
        return np.repeat(np.arange(self.labels.n_documents), np.diff(self.indptr))

    def with_negatives(self, negatives: NDArray[Any]) -> MinedPairs:
        """Return the same labels with other negatives, of shape (n_documents, q)."""
        classes = self.classes.copy()
        classes[self._are_negatives] = negatives.ravel()
        return replace(self, classes=classes)

    def join(self, of_labels: Floats, of_negatives: Floats) -> Floats:
        """Put values of labels and values of negatives in the order of the pairs."""
        joined = np.empty(len(self.classes))
        joined[self.label_positions] = of_labels
        joined[self._are_negatives] = of_negatives.ravel()
        return joined

    @property
    def _are_negatives(self) -> NDArray[np.bool_]:
        are_negatives = np.ones(len(self.classes), np.bool_)
        are_negatives[self.label_positions] = False
        return are_negatives


def mine_pairs(
    documents: WeightedDocuments,
    labels: LabelSets,
    scorer: LinearScorer,
    index: AnyIndex,
    pruning: QueryPruning,
    n_negatives: int,
    n_jobs: int | None = None,
    *,
    document_mask: NDArray[np.bool_] | None = None,
) -> MinedPairs:
    """Mine the negatives of all documents; parameters as in `mine_hard_negatives`.

    Documents outside the mask get none: -1.
    """
    n_classes = len(scorer.biases)
    n_negatives = min(n_negatives, n_classes - 1)
    n_pairs = len(labels.class_ids) + n_negatives * labels.n_documents
    pairs = MinedPairs(labels, n_negatives, np.empty(n_pairs, index_dtype(n_classes)))
    for start in range(0, labels.n_documents, MINING_BLOCK):
        block = slice(start, min(start + MINING_BLOCK, labels.n_documents))
        sliced = pairs.slice(block)
        of_block, rows = sliced.labels, np.arange(block.stop - block.start)
        mined = np.full((len(rows), n_negatives), -1, pairs.classes.dtype)
        if document_mask is not None and not document_mask[block].all():
            rows = np.flatnonzero(document_mask[block])
            of_block = of_block.gather(rows)
        mined[rows] = mine_hard_negatives(
            documents, start + rows, of_block, scorer, index, pruning, n_negatives, n_jobs
        )
        sliced.classes[sliced.label_positions] = sliced.labels.class_ids
        sliced.classes[sliced._are_negatives] = mined.ravel()
    return pairs


def mine_hard_negatives(
    documents: WeightedDocuments,
    document_ids: Integers,
    labels: LabelSets,
    scorer: LinearScorer,
    index: AnyIndex,
    pruning: QueryPruning | None,
    n_negatives: int,
    n_jobs: int | None = None,
) -> NDArray[Any]:
    """Return the highest-scored classes of each document outside its label set.

    Parameters
    ----------
    documents : WeightedDocuments
        All documents.
    document_ids : ndarray of shape (M,)
        Those to mine for.
    labels : LabelSets
        Of these M documents.
    scorer : LinearScorer
        Of all classes.
    index : InvertedIndex or IndexShards
        Of that scorer.
    pruning : QueryPruning or None
        Which terms search; all where it is None.
    n_negatives : int
        How many; capped at the number of classes less one.
    n_jobs : int or None
        Number of threads.

    Returns
    -------
    ndarray of shape (M, n_negatives)
        Class ids, best first; -1 where there are fewer classes outside the label set.
    """
    n_classes = len(scorer.biases)
    n_negatives = min(n_negatives, n_classes - 1)
    negatives = np.empty((len(document_ids), n_negatives), index_dtype(n_classes))
    for start in range(0, len(document_ids), MINING_BLOCK):
        advance("mining", start, len(document_ids))
        block = slice(start, start + MINING_BLOCK)
        negatives[block], _ = search(
            documents,
            scorer,
            index,
            n_negatives,
            document_ids=document_ids[block],
            labels=labels.slice(block),
            pruning=pruning,
            n_jobs=n_jobs,
        )
    return negatives


def draw_random_negatives(labels: LabelSets, n_negatives: int, seed: int) -> NDArray[Any]:
    """Return distinct uniform negatives for each document: what hard ones are worth."""
    rng = np.random.default_rng(seed)
    n_classes = len(labels.classes)
    drawn = np.full((labels.n_documents, n_negatives), -1, index_dtype(n_classes))
    for row, first, last in zip(drawn, labels.indptr[:-1], labels.indptr[1:], strict=True):
        true_ids = labels.class_ids[first:last]
        n_others = n_classes - len(true_ids)
        others = rng.choice(n_others, min(n_negatives, n_others), replace=False)
        for label in true_ids:  # ascending: each moves what is at or above it up by one
            others += others >= label
        row[: len(others)] = others
    return drawn
