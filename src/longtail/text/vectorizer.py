"""`TextVectorizer`: texts to counts as a scikit-learn transformer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import fields as fields_of
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from longtail._words import count
from longtail.text.builder import TermSelection, VocabularyBuilder
from longtail.text.options import TokenizerOptions
from longtail.text.vocabulary import Vocabulary


class TextVectorizer(TransformerMixin, BaseEstimator):
    """Turn texts into counts, with the parameters of scikit-learn's `CountVectorizer`.

    Parameters
    ----------
    ngram_range : tuple of two int, default=(1, 2)
        ``(1, 1)``: the words are the terms; ``(1, n)``: n-grams of up to n words as well.
    char_ngram_range : tuple of two int, or None, default=None
        Shortest and longest character n-gram inside words, edges included; None for none. Those of
        a document have at most 16,384 characters and 64 for each byte of its words; beyond that,
        words go without their longer n-grams.
    min_df : int or float, default=1
        Words in fewer documents (an integer), or in a smaller share of them (a float), are left
        out.
    max_df : int or float, default=1.0
        Terms in more documents, or in a larger share, are left out; an n-gram goes with its words.
    max_features : int or None, default=None
        Keep only so many terms, those with the most occurrences.
    lowercase : bool, default=True
        Whether case is folded.
    strip_accents : "unicode" or None, default="unicode"
        Whether é counts as e.
    stop_words : "english", collection of str, or None, default=None
        Words that are left out before n-grams are made.
    token_pattern : str or None, default=None
        A regular expression for words, in place of runs of letters and numbers.
    tokenizer : callable or None, default=None
        From a text, after `lowercase` and `strip_accents`, to its words. A space in a word becomes
        an underscore. A model with it is pickled, but has no file: a file holds no code.
    ngram_min_df : int or float, default=2
        As `min_df`, for n-grams of words and character n-grams.
    ngram_weight : float, default=0.5
        What an occurrence of an n-gram counts, where a word counts 1.
    stem : bool, default=False
        Whether English plural endings are removed.
    split_unspaced : bool, default=True
        Whether a run of Chinese, Japanese, Thai, Lao, Khmer or Burmese characters, which are
        written without spaces between words, becomes overlapping character bigrams. False for
        texts that have been segmented into words.
    fields : mapping of str to str, or None, default=None
        The fields of documents that are records, such as
        ``{"subject": "text", "body": "text", "brand": "category", "price": "number"}``; further
        kinds are ``"categories"``, a list or a string with semicolons, and ``"categories:,"`` for
        another separator. Words of several texts are terms together and for each text. None:
        documents are texts.
    n_jobs : int or None, default=None
        Number of threads; None is one, -1 is every core.

    Attributes
    ----------
    vocabulary_ : Vocabulary
        A mapping from each term to its column.

    Examples
    --------
    >>> from longtail.text import TextVectorizer
    >>> vectorizer = TextVectorizer()
    >>> vectorizer.fit_transform(["The café", "the bear"]).toarray().tolist()
    [[0.0, 1.0, 1.0], [1.0, 0.0, 1.0]]
    >>> vectorizer.get_feature_names_out().tolist()
    ['bear', 'cafe', 'the']
    >>> vectorizer.vocabulary_["the"]
    2
    """

    vocabulary_: Vocabulary

    def __init__(
        self,
        ngram_range: tuple[int, int] = (1, 2),
        char_ngram_range: tuple[int, int] | None = None,
        min_df: float = 1,
        max_df: float = 1.0,
        max_features: int | None = None,
        lowercase: bool = True,
        strip_accents: str | None = "unicode",
        stop_words: str | Collection[str] | None = None,
        token_pattern: str | None = None,
        tokenizer: Callable[[str], Iterable[str]] | None = None,
        ngram_min_df: float = 2,
        ngram_weight: float = 0.5,
        stem: bool = False,
        split_unspaced: bool = True,
        fields: Mapping[str, str] | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.ngram_range = ngram_range
        self.char_ngram_range = char_ngram_range
        self.min_df = min_df
        self.max_df = max_df
        self.max_features = max_features
        self.lowercase = lowercase
        self.strip_accents = strip_accents
        self.stop_words = stop_words
        self.token_pattern = token_pattern
        self.tokenizer = tokenizer
        self.ngram_min_df = ngram_min_df
        self.ngram_weight = ngram_weight
        self.stem = stem
        self.split_unspaced = split_unspaced
        self.fields = fields
        self.n_jobs = n_jobs

    def fit(self, texts: Any, y: Any = None) -> Self:
        """Learn the vocabulary of texts: a list, an array, or a column of a table."""
        self.fit_transform(texts)
        return self

    def fit_transform(self, texts: Any, y: Any = None) -> csr_array[Any]:
        """Learn the vocabulary and return the counts, in one pass over the texts."""
        return self.fit_chunks([texts])

    def fit_chunks(self, chunks: Iterable[Any]) -> csr_array[Any]:
        """Learn the vocabulary from chunks of texts; return the counts, as `fit_transform` would.

        Each chunk is let go before the next is asked for.
        """
        selection = select_parameters(self, TermSelection)
        builder = VocabularyBuilder(tokenizer_options(self), self.n_jobs)
        for texts in chunks:
            builder.add(texts)
        vocabulary, X = builder.finish(selection)
        if X.shape[0] == 0:
            raise ValueError("texts must have a document at least; there is none.")
        if vocabulary.n_terms == 0:
            raise ValueError(
                f"no term of the {count(X.shape[0], 'document')} is kept by "
                f"min_df={self.min_df!r}, max_df={self.max_df!r} and the stop words, so the "
                "vocabulary is empty. Lower min_df, raise max_df, or give texts with words in them."
            )
        self.vocabulary_ = vocabulary
        return X

    def transform(self, texts: Any) -> csr_array[Any]:
        """Count the terms of the vocabulary: a CSR matrix of shape (n_documents, n_terms)."""
        check_is_fitted(self)
        return self.vocabulary_.count(texts, self.n_jobs)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the terms, one for each column."""
        check_is_fitted(self)
        return np.array(self.vocabulary_.terms, dtype=object)

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that the input is text."""
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


def tokenizer_options(vectorizer: TextVectorizer) -> TokenizerOptions:
    """Return how a vectorizer's texts become terms."""
    options: TokenizerOptions = select_parameters(vectorizer, TokenizerOptions)
    return options


def select_parameters(vectorizer: TextVectorizer, kind: Any) -> Any:
    """Return the parameters of a vectorizer that a dataclass holds, checked by it."""
    return kind(**{field.name: getattr(vectorizer, field.name) for field in fields_of(kind)})
