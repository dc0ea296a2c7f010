"""Hard negatives: the wrong classes that score highest for a document.

In: documents with their true classes, a scorer and its index. Out: for each document a row of class
ids, the true class in column 0 and its negatives after it, best first. The paper's uniform
adversaries can be drawn instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail.retrieval.index import InvertedIndex
from longtail.retrieval.pruning import QueryPruning
from longtail.retrieval.search import search
from longtail.scoring.linear import LinearScorer
from longtail.scoring.weighting import WeightedDocuments
from longtail.sparse import Integers, index_dtype

MINING_BLOCK = 8_192  # documents; the scores of their negatives are not kept


@dataclass(frozen=True, eq=False)
class ClassLists:
    """Documents, each with a list of classes to tell apart.

    Attributes
    ----------
    document_ids : ndarray of shape (M,)
        Row ids.
    classes : ndarray of shape (M, 1 + n_negatives)
        The true class in column 0.
    left_out : ndarray of shape (M,)
        The class that must forget the document before it is scored; -1 for none.
    reached : ndarray of shape (M,), bool
        Whether the true class would be among the candidates.
    log_multiplicities : ndarray of shape (M, 1 + n_negatives), float32
        Logarithm of how many classes each class stands for in the softmax over its list.
    """

    document_ids: Integers
    classes: NDArray[Any]
    left_out: Integers
    reached: NDArray[np.bool_]
    log_multiplicities: NDArray[np.float32]

    def __getitem__(self, selection: Any) -> ClassLists:
        """Return the lists of some documents."""
        return ClassLists(
            self.document_ids[selection],
            self.classes[selection],
            self.left_out[selection],
            self.reached[selection],
            self.log_multiplicities[selection],
        )

    def __len__(self) -> int:
        """M."""
        return len(self.document_ids)


def mine_hard_negatives(
    documents: WeightedDocuments,
    document_ids: Integers,
    true_classes: Integers,
    scorer: LinearScorer,
    index: InvertedIndex,
    pruning: QueryPruning | None,
    n_negatives: int,
    n_jobs: int | None = None,
) -> NDArray[Any]:
    """Return each document's true class and the highest-scored other classes.

    Parameters
    ----------
    documents : WeightedDocuments
        All documents.
    document_ids : ndarray of shape (M,)
        Those to mine for.
    true_classes : ndarray of shape (M,)
        Their classes.
    scorer : LinearScorer
        Of all classes.
    index : InvertedIndex
        Of that scorer.
    pruning : QueryPruning or None
        Which terms search; all where it is None.
    n_negatives : int
        How many; capped at the number of other classes.
    n_jobs : int or None
        Number of threads.

    Returns
    -------
    ndarray of shape (M, 1 + n_negatives)
        Class ids, the true class in column 0.
    """
    n_classes = len(scorer.biases)
    n_negatives = min(n_negatives, n_classes - 1)
    classes = np.empty((len(document_ids), 1 + n_negatives), index_dtype(n_classes))
    classes[:, 0] = true_classes
    for start in range(0, len(document_ids), MINING_BLOCK):
        block = slice(start, start + MINING_BLOCK)
        classes[block, 1:], _ = search(
            documents,
            scorer,
            index,
            n_negatives,
            document_ids=document_ids[block],
            true_classes=true_classes[block],
            pruning=pruning,
            n_jobs=n_jobs,
        )
    return classes


def draw_random_negatives(classes: NDArray[Any], n_classes: int, seed: int) -> NDArray[Any]:
    """Return the same lists with distinct uniform negatives: what hard ones are worth."""
    rng = np.random.default_rng(seed)
    drawn = np.empty_like(classes)
    drawn[:, 0] = classes[:, 0]
    for row in drawn:
        others = rng.choice(n_classes - 1, len(row) - 1, replace=False)
        row[1:] = others + (others >= row[0])
    return drawn
