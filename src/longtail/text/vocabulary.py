"""`Vocabulary`: terms to ids, and texts to counts as a CSR matrix."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any, TypeVar

import joblib
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from longtail._caching import WithKnown, cached_property
from longtail._kernels import vocabulary as kernels
from longtail._kernels.interning import HashTables, TermIds, Terms
from longtail._kernels.text import CHAR_NGRAM, SPACE, Tokens
from longtail._parallel import SMALL_WORK, parallel_for
from longtail._records import write_documents
from longtail.sparse import CountMatrix, Integers, append, offsets_from_lengths, stack_rows
from longtail.text.fields import MARK, show_term, spell_term
from longtail.text.interning import Bytes, copy_tables, has_capacity, new_tables
from longtail.text.options import TokenizerOptions
from longtail.text.tokenizer import Tokenizer

BLOCK_CHARACTERS = 1 << 23  # of text that a thread has in hand; bounds the memory of a long list

Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class Vocabulary(WithKnown, Mapping[str, int]):
    """The terms that count: a mapping from each to its id, the column of a count matrix.

    Attributes
    ----------
    utf8 : ndarray of shape (n_bytes,), uint8
        The terms in the order of their ids, one after the other. An n-gram of words has spaces
        between them; a character n-gram follows a ``~``, and a space in it is the edge of its word.
    offsets : ndarray of shape (n_terms + 1,), int64
        Where each begins.
    document_frequencies : ndarray of shape (n_terms,), int64
        How many documents had the term when it was added.
    options : TokenizerOptions
        How texts become terms.
    """

    utf8: Bytes
    offsets: Integers
    document_frequencies: Integers
    options: TokenizerOptions

    def __getitem__(self, term: str) -> int:
        """Return the id of a term."""
        if not isinstance(term, str) or not term:
            raise KeyError(term)
        fields = self.options.fields
        for spelled in [term] if fields is None else spell_term(term, fields):
            utf8 = np.frombuffer(spelled.encode("utf-8", "replace"), np.uint8).copy()
            ids = np.empty(1, np.int64)
            kernels.look_up_terms(utf8, np.array([0, len(utf8)]), self.tables, self.slices, ids)
            if ids[0] >= 0 and self.term(int(ids[0])) == term:
                return int(ids[0])
        raise KeyError(term)

    def __iter__(self) -> Iterator[str]:
        """Go through the terms in the order of their ids."""
        return iter(self.terms)

    def __len__(self) -> int:
        """Return the number of terms."""
        return len(self.offsets) - 1

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: hash tables are derived, and depend on a secret seed."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def n_terms(self) -> int:
        """Number of terms."""
        return len(self.offsets) - 1

    @property
    def terms(self) -> list[str]:
        """The terms as strings, as `term` shows them."""
        text, offsets = self.utf8.tobytes(), self.offsets.tolist()
        terms = [text[start:end].decode("utf-8") for start, end in pairwise(offsets)]
        return terms if self.options.fields is None else list(map(show_term, terms))

    def term(self, term_id: int) -> str:
        """Return one term as a string; of a field as ``brand=acme`` or ``body:refund``."""
        start, end = self.offsets[term_id], self.offsets[term_id + 1]
        return show_term(self.utf8[start:end].tobytes().decode("utf-8"))

    @cached_property
    def shared_tables(self) -> SharedTables:
        """The hash tables: derived, so no file is trusted with them."""
        tables = new_tables(self.n_terms)
        intern(self, 0, tables)
        return SharedTables(tables, self.n_terms)

    @property
    def tables(self) -> HashTables:
        """The hash tables as kernels read them; ids from `n_terms` on are of later terms."""
        return self.shared_tables.tables

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of the texts."""
        return Tokenizer(self.options)

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """Weight of one occurrence of each term."""
        return _weights_from(self, 0)

    def extend(self, utf8: Bytes, lengths: Integers, frequencies: Integers) -> Vocabulary:
        """Return a vocabulary with more terms at its end; costs what they cost.

        `lengths` are those of the terms in bytes, `frequencies` how many documents have each.
        """
        terms = Vocabulary(
            append(self.utf8, utf8),
            append(self.offsets, self.offsets[-1] + np.cumsum(lengths)),
            append(self.document_frequencies, frequencies),
            self.options,
        )
        known = {
            "tokenizer": self.tokenizer,
            "shared_tables": self.shared_tables.extend(self.n_terms, terms),
            "weights": append(self.weights, _weights_from(terms, self.n_terms)),
        }
        return replace(terms, known=known)

    @property
    def slices(self) -> Terms:
        """The terms as kernels read them."""
        return Terms(self.utf8, self.offsets[:-1], self.offsets[1:])

    def count(self, texts: Any, n_jobs: int | None = None) -> csr_array[Any]:
        """Count the terms of texts; what is not in the vocabulary is left out.

        Returns
        -------
        csr_array of shape (n_documents, n_terms), float64
            Terms ascend within each row.
        """
        return _count_texts(self, texts, n_jobs).to_csr()


def _weights_from(vocabulary: Vocabulary, first: int) -> NDArray[np.float64]:
    """Return what an occurrence of each term from an id on counts."""
    is_single = are_words(vocabulary, first) | _are_values(vocabulary, first)
    return np.where(is_single, 1.0, vocabulary.options.ngram_weight)


def are_words(vocabulary: Vocabulary, first: int = 0) -> NDArray[np.bool_]:
    """Return whether each term from an id on is one word, of any field, not an n-gram."""
    offsets = vocabulary.offsets[first:] - vocabulary.offsets[first]
    utf8 = vocabulary.utf8[vocabulary.offsets[first] :]
    is_word = utf8[offsets[:-1]] != CHAR_NGRAM
    spaces = np.flatnonzero(utf8 == SPACE)
    is_word[np.searchsorted(offsets, spaces, side="right") - 1] = False
    return np.asarray(is_word)


def _are_values(vocabulary: Vocabulary, first: int = 0) -> NDArray[np.bool_]:
    """Return whether each term from an id on is a category, or the bin of a number."""
    starts = vocabulary.offsets[first:-1]
    second = np.minimum(starts + 1, max(len(vocabulary.utf8) - 1, 0))
    utf8 = vocabulary.utf8
    return np.asarray((utf8[starts] == CHAR_NGRAM) & (utf8[second] == ord(MARK)))


def are_shared_words(vocabulary: Vocabulary) -> NDArray[np.bool_]:
    """Return whether each term is a word that all fields share, as those of class texts are."""
    is_shared = are_words(vocabulary)
    marks = np.flatnonzero(vocabulary.utf8 == ord(MARK))
    is_shared[np.searchsorted(vocabulary.offsets, marks, side="right") - 1] = False
    return is_shared


class SharedTables:
    """Hash tables of a vocabulary and of those it grew out of.

    A term that a later vocabulary has interned is passed over by the earlier ones, whose ids end
    before it, so that growing copies nothing.
    """

    def __init__(self, tables: HashTables, n_terms: int) -> None:
        self.tables = tables  # all terms interned so far
        self._n_terms = n_terms
        self._lock = threading.Lock()

    def extend(self, n_before: int, grown: Vocabulary) -> SharedTables:
        """Return tables with the terms of a grown vocabulary, of which `n_before` are here.

        These tables, if nothing else was interned here since; otherwise others.
        """
        with self._lock:
            fits = self._n_terms == n_before and has_capacity(self.tables, grown.n_terms)
            if fits:
                self._n_terms = grown.n_terms
        if fits:
            intern(grown, n_before, self.tables)
            return self
        tables = copy_tables(self.tables, n_before, grown.n_terms)
        intern(grown, n_before, tables)
        return SharedTables(tables, grown.n_terms)


def intern(vocabulary: Vocabulary, n_interned: int, tables: HashTables) -> None:
    """Intern the terms of a vocabulary in hash tables that have those before them."""
    fault = kernels.intern_vocabulary(vocabulary.slices, n_interned, tables)
    if fault >= 0:
        raise ValueError(
            f"the term {vocabulary.term(fault)!r} is in the vocabulary twice, or is an n-gram of "
            "words that are not all in it"
        )


# ---- rows of counts


def count_for_kernels(vocabulary: Vocabulary, texts: Any, n_jobs: int | None) -> CountMatrix:
    """Count what `Vocabulary.count` counts in the form of kernels: one text must be quick."""
    rows = _count_texts(vocabulary, texts, n_jobs)
    return CountMatrix.from_sorted(rows.indptr, rows.indices, rows.data, vocabulary.n_terms)


def _count_texts(vocabulary: Vocabulary, texts: Any, n_jobs: int | None) -> CountMatrix:
    """Return the weighted counts of texts."""
    largest, tables, slices = vocabulary.options.largest_ngram, vocabulary.tables, vocabulary.slices

    def count_block(block: list[str]) -> CountMatrix:
        tokens = vocabulary.tokenizer.tokenize(block)
        term_ids = allocate_ids(tokens, largest)
        kernels.find_terms(tokens, largest, tables, slices, term_ids)
        return count_rows(join_parts(term_ids, vocabulary.tokenizer.n_parts))

    checked = write_documents(texts, vocabulary.options.fields)
    return join_rows(vocabulary, list(map_blocks(checked, count_block, n_jobs)))


def allocate_ids(tokens: Tokens, largest: int) -> TermIds:
    """Return arrays with capacity for the term ids of documents."""
    return TermIds(
        np.empty(len(tokens.starts) * largest, np.int32), np.empty(len(tokens.indptr), np.int64)
    )


def join_parts(term_ids: TermIds, n_parts: int) -> TermIds:
    """Return the term ids of documents, each of which was tokenized as so many parts."""
    indptr = np.ascontiguousarray(term_ids.indptr[::n_parts])
    return TermIds(term_ids.ids[: indptr[-1]], indptr)


def count_rows(term_ids: TermIds) -> CountMatrix:
    """Turn the term ids of documents into rows of counts; the ids are sorted in place."""
    indptr = np.empty(len(term_ids.indptr), np.int64)
    indices = np.empty(len(term_ids.ids), np.int32)
    counts = np.empty(len(term_ids.ids), np.float64)
    n_entries = kernels.count_rows(term_ids, indptr, indices, counts)
    return CountMatrix(indptr, indices[:n_entries], counts[:n_entries], 0)


def join_rows(vocabulary: Vocabulary, rows: list[CountMatrix]) -> CountMatrix:
    """Put blocks of rows under each other, and weigh their counts in place."""
    joined = rows[0] if len(rows) == 1 else stack_rows([_NO_ROWS, *rows])
    counts = joined.data
    counts *= vocabulary.weights[joined.indices]
    return replace(joined, n_terms=vocabulary.n_terms)


_NO_ROWS = CountMatrix(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0), 0)


def map_blocks(
    texts: list[str], function: Callable[[list[str]], Result], n_jobs: int | None
) -> Iterator[Result]:
    """Yield what a function returns for blocks of texts, in their order; blocks run in threads."""
    ends = offsets_from_lengths(np.fromiter(map(len, texts), np.int64, len(texts)))
    if 0 < ends[-1] < SMALL_WORK:
        yield function(texts)
        return
    in_hand = BLOCK_CHARACTERS * joblib.effective_n_jobs(n_jobs)
    bounds = np.searchsorted(ends, np.arange(in_hand, ends[-1], in_hand))
    for begin, end in pairwise(np.unique([0, *bounds, len(texts)]).tolist()):
        results: dict[int, Result] = {}

        def keep(first: int, last: int, begin: int = begin, into: Any = results) -> None:
            into[first] = function(texts[begin + first : begin + last])

        parallel_for(keep, ends[begin : end + 1], n_jobs)
        yield from (results[first] for first in sorted(results))
