"""Terms of several changes enter a vocabulary in turn, all tokenized at once.

In: a vocabulary, texts, and of which change each text is. Out: the vocabulary that the changes lead
to one after the other, and the counts of each text by the vocabulary of its turn.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from longtail._kernels.vocabulary import look_up_terms
from longtail.sparse import Integers, gather_rows, offsets_from_lengths
from longtail.text.builder import VocabularyBuilder
from longtail.text.vocabulary import Vocabulary


def enter_in_turn(
    vocabulary: Vocabulary,
    texts: list[str],
    changes: Integers,
    brings: NDArray[np.bool_],
    n_jobs: int | None = None,
) -> tuple[Vocabulary, csr_array[Any]]:
    """Let the new terms of each change enter; count each text by the terms that were there then.

    New terms get ids by the change that brought them, and by their bytes within each, as if
    `extend_vocabulary` had been called for one change after the other. That takes 4 ms a change.

    Parameters
    ----------
    vocabulary : Vocabulary
        The one to extend; it stays as it is.
    texts : list of str
        Documents.
    changes : ndarray of shape (n_texts,), int64
        Of which change each is, from 0 on, ascending.
    brings : ndarray of shape (n_texts,), bool
        Whether the text's new terms enter; otherwise it is only counted. The texts of a change are
        all alike.
    n_jobs : int or None, default=None
        Number of threads.

    Returns
    -------
    Vocabulary
        The same one where there is no new term.
    X : csr_array of shape (n_texts, n_terms), float64
        Counts; terms ascend within each row.
    """
    builder = VocabularyBuilder(vocabulary.options, n_jobs)
    builder.add(texts)
    found, X = builder.finish()
    ids = np.empty(found.n_terms, np.int64)
    look_up_terms(found.utf8, found.offsets, vocabulary.tables, vocabulary.slices, ids)
    lengths = np.diff(X.indptr)
    turns, brought = np.repeat(changes, lengths), np.repeat(brings, lengths)
    never = len(texts)
    entered = np.full(found.n_terms, never)
    np.minimum.at(entered, X.indices[brought], turns[brought])
    new = np.flatnonzero((ids < 0) & (entered < never))
    if len(new):
        new = new[np.argsort(entered[new], kind="stable")]
        first = brought & (turns == entered[X.indices])
        frequencies = np.bincount(X.indices[first], minlength=found.n_terms)
        _, entries = gather_rows(found.offsets, new)
        ids[new] = np.arange(vocabulary.n_terms, vocabulary.n_terms + len(new))
        vocabulary = vocabulary.extend(
            found.utf8[entries], np.diff(found.offsets)[new], frequencies[new].astype(np.int64)
        )
    entered[ids < vocabulary.n_terms - len(new)] = -1  # known before, or never
    counted = (ids[X.indices] >= 0) & (entered[X.indices] <= turns)
    return vocabulary, _gather_entries(X, counted, ids, vocabulary.n_terms)


def _gather_entries(
    X: csr_array[Any], kept: NDArray[np.bool_], ids: Integers, n_terms: int
) -> csr_array[Any]:
    """Return some entries of a matrix with other ids of their terms."""
    starts = offsets_from_lengths(kept)[X.indptr]  # how many entries are kept before each row
    indices = ids[X.indices[kept]].astype(X.indices.dtype)
    gathered = csr_array((X.data[kept], indices, starts), shape=(X.shape[0], n_terms))
    gathered.has_sorted_indices = False
    gathered.sort_indices()
    return gathered
