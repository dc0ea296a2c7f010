"""`TextVectorizer`: texts to counts as a scikit-learn transformer."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from longtail.text.tokenizer import TokenizerOptions, check_count
from longtail.text.vocabulary import VocabularyBuilder


class TextVectorizer(TransformerMixin, BaseEstimator):
    """Turn texts into counts, for use in front of a classifier of counts.

    Parameters
    ----------
    ngrams : int, default=2
        1: the words are the terms. 2: pairs of neighbours as well.
    char_ngrams : tuple of two int, or None, default=None
        Shortest and longest character n-gram inside words; None for none.
    min_df : int, default=1
        Words in fewer documents are left out.
    ngram_min_df : int, default=2
        Pairs of words and character n-grams in fewer documents are left out; a pair goes with its
        words.
    ngram_weight : float, default=0.5
        What an occurrence of a pair or character n-gram counts, where a word counts 1.
    fold_accents : bool, default=True
        Whether é counts as e.
    stem : bool, default=False
        Whether English plural endings are cut.
    n_jobs : int or None, default=None
        Number of threads; None is one, -1 is every core.

    Attributes
    ----------
    vocabulary_ : Vocabulary
        The terms.

    Examples
    --------
    >>> from longtail.text import TextVectorizer
    >>> vectorizer = TextVectorizer()
    >>> vectorizer.fit_transform(["The café", "the bear"]).toarray().tolist()
    [[0.0, 1.0, 1.0], [1.0, 0.0, 1.0]]
    >>> vectorizer.get_feature_names_out().tolist()
    ['bear', 'cafe', 'the']
    """

    def __init__(
        self,
        ngrams: int = 2,
        char_ngrams: tuple[int, int] | None = None,
        min_df: int = 1,
        ngram_min_df: int = 2,
        ngram_weight: float = 0.5,
        fold_accents: bool = True,
        stem: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.ngrams = ngrams
        self.char_ngrams = char_ngrams
        self.min_df = min_df
        self.ngram_min_df = ngram_min_df
        self.ngram_weight = ngram_weight
        self.fold_accents = fold_accents
        self.stem = stem
        self.n_jobs = n_jobs

    def fit(self, texts: Any, y: Any = None) -> Self:
        """Learn the vocabulary.

        Parameters
        ----------
        texts : sequence of str
            Documents.
        y : ignored

        Returns
        -------
        self
        """
        self.fit_transform(texts)
        return self

    def fit_transform(self, texts: Any, y: Any = None) -> csr_array[Any]:
        """Learn the vocabulary and return the counts, in one pass over the texts.

        Parameters
        ----------
        texts : sequence of str
            Documents.
        y : ignored

        Returns
        -------
        csr_array of shape (n_documents, n_terms), float64
        """
        return self.fit_chunks([texts])

    def fit_chunks(self, chunks: Any) -> csr_array[Any]:
        """Learn the vocabulary from chunks of texts, and return the counts of all of them.

        Parameters
        ----------
        chunks : iterable of sequences of str
            Documents; each chunk is let go before the next is asked for.

        Returns
        -------
        csr_array of shape (n_documents, n_terms), float64
            The same as from `fit_transform` with all texts at once.
        """
        rules = TokenizerOptions(
            self.ngrams, self.char_ngrams, self.ngram_weight, self.fold_accents, self.stem
        )
        check_count("min_df", self.min_df)
        check_count("ngram_min_df", self.ngram_min_df)
        counter = VocabularyBuilder(rules, self.n_jobs)
        for texts in chunks:
            counter.add(texts)
        vocabulary, X = counter.finish(self.min_df, self.ngram_min_df)
        if vocabulary.n_terms == 0:
            raise ValueError(
                f"no term is in at least {self.min_df} of the {X.shape[0]} document(s), so the "
                "vocabulary is empty. Lower min_df, or give texts with words in them."
            )
        self.vocabulary_ = vocabulary
        return X

    def transform(self, texts: Any) -> csr_array[Any]:
        """Count the terms of the vocabulary.

        Parameters
        ----------
        texts : sequence of str
            Documents.

        Returns
        -------
        csr_array of shape (n_documents, n_terms), float64
        """
        check_is_fitted(self)
        return self.vocabulary_.count(texts, self.n_jobs)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the terms, one for each column.

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        ndarray of shape (n_terms,), object
        """
        check_is_fitted(self)
        return np.array(self.vocabulary_.terms, dtype=object)

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that the input is text."""
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags
