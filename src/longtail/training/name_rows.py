"""From the text of a class (name, synonyms, description) to weights of the vocabulary's terms.

In: a vocabulary and texts. Out: a row of weights for each text, as `ClassNames` takes it. A name
shares few words with the documents of its class: compounds and inflected forms are other words. So
each word of a name also stands for the words that look like it, by the cosine of their character
n-grams. On held-out documents of tib-subjects whose class has no other document, the class is
among the first ten of all such classes for 21 in 100 labels by the same words, and for 42 with
those that look like them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from longtail._elementary import log
from longtail.model.scorer import LinearScorer
from longtail.model.weighting import weight_documents
from longtail.retrieval.index import build_index
from longtail.retrieval.search import search
from longtail.sparse import CountMatrix
from longtail.text.builder import TermSelection, VocabularyBuilder
from longtail.text.options import TokenizerOptions
from longtail.text.vocabulary import Vocabulary, are_shared_words

CHAR_NGRAMS = (3, 5)  # characters
MAX_SIMILAR = 20  # terms that a word stands for; with 10 one in 100 fewer are found
MIN_SIMILARITY = 0.3  # cosine; from 0.6 on, 7 in 100 fewer are found


def count_names(vocabulary: Vocabulary, texts: list[str], n_jobs: int | None) -> csr_array[Any]:
    """Return what each term of a vocabulary counts in the text of each class.

    Parameters
    ----------
    vocabulary : Vocabulary
        The terms of documents.
    texts : list of str
        The text of each class.
    n_jobs : int or None
        Number of threads.

    Returns
    -------
    csr_array of shape (n_texts, n_terms), float64
        A word counts the square of its similarity with the words of the text; an n-gram counts as
        in a document.
    """
    plain = replace(vocabulary.options, ngram_range=(1, 1), char_ngram_range=None, fields=None)
    builder = VocabularyBuilder(plain, n_jobs)
    builder.add(texts)
    tokens, counts = builder.finish(TermSelection())
    exact = vocabulary.count(texts, n_jobs)
    is_word = are_shared_words(vocabulary)
    ngrams = csr_array((exact.data * ~is_word[exact.indices], exact.indices, exact.indptr),
                       shape=exact.shape)  # fmt: skip
    ngrams.eliminate_zeros()
    if not tokens.n_terms or not is_word.any():
        return ngrams
    similar = find_similar(tokens.terms, vocabulary.terms, np.flatnonzero(is_word), n_jobs)
    rows: csr_array[Any] = counts @ similar + ngrams
    return rows


def find_similar(
    tokens: list[str], terms: list[str], term_ids: Any, n_jobs: int | None = None
) -> csr_array[Any]:
    """Return the squared similarity of tokens with the terms that look most like them.

    Parameters
    ----------
    tokens, terms : list of str
        The words of names, and the vocabulary.
    term_ids : ndarray
        Which terms are words, as opposed to n-grams.
    n_jobs : int or None
        Number of threads.

    Returns
    -------
    csr_array of shape (n_tokens, n_terms), float64
        With at most `MAX_SIMILAR` entries in a row.
    """
    options = TokenizerOptions(
        ngram_range=(1, 1), char_ngram_range=CHAR_NGRAMS, ngram_weight=1.0, split_unspaced=False
    )
    builder = VocabularyBuilder(options, n_jobs)
    builder.add([terms[term_id] for term_id in term_ids.tolist()])
    builder.add(tokens)
    grams, counts = builder.finish(TermSelection())
    n_targets = len(term_ids)
    frequencies = np.bincount(counts[:n_targets].indices, minlength=grams.n_terms)
    idf = log((1.0 + n_targets) / (1.0 + frequencies)) + 1.0
    targets = weight_documents(CountMatrix.from_matrix(counts[:n_targets]), idf, n_jobs)
    queries = weight_documents(CountMatrix.from_matrix(counts[n_targets:]), idf, n_jobs)
    scorer = LinearScorer.without_bias(targets.rows.indptr, targets.rows.indices, targets.weights)
    found, cosines = search(
        queries,
        scorer,
        build_index(scorer, grams.n_terms, n_jobs),
        min(MAX_SIMILAR, n_targets),
        n_jobs=n_jobs,
    )
    rows, columns = np.nonzero(cosines >= MIN_SIMILARITY)
    entries = cosines[rows, columns] ** 2, (rows, term_ids[found[rows, columns]])
    return csr_array(entries, shape=(len(tokens), len(terms)))
