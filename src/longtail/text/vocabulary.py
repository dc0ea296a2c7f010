"""Terms -> numbers and counts.

In: texts, at once or in chunks. Out: a `Vocabulary`, and counts by it as a CSR matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import joblib
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from longtail._kernels import text as kernels
from longtail._parallel import parallel_for, uniform_work
from longtail.text.interning import (
    WORD,
    TermTable,
    no_pairs,
    no_words,
    with_pair_room,
    with_word_room,
)
from longtail.text.tokenizer import (
    Bytes,
    Integers,
    TokenizerOptions,
    Units,
    check_count,
    check_texts,
    offsets_from_lengths,
    tokenize_texts,
    with_room,
)

BLOCK_CHARACTERS = 1 << 23  # of text that a thread has in hand; bounds the memory of a long list

Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The terms that count, in the order of their numbers.

    Attributes
    ----------
    utf8 : ndarray of shape (n_bytes,), uint8
        The terms, one after the other. An n-gram of words has spaces between them; a character
        n-gram follows a ``~``, and a space in it is the edge of its word.
    offsets : ndarray of shape (n_terms + 1,), int64
        Where each begins.
    document_frequencies : ndarray of shape (n_terms,), int64
        How many documents had the term when it entered.
    rules : TermRules
        How texts are cut into terms.
    """

    utf8: Bytes
    offsets: Integers
    document_frequencies: Integers
    rules: TokenizerOptions

    @property
    def n_terms(self) -> int:
        """Number of terms."""
        return len(self.offsets) - 1

    @property
    def terms(self) -> list[str]:
        """The terms as strings."""
        return [self.term(number) for number in range(self.n_terms)]

    def term(self, number: int) -> str:
        """Return one term as a string."""
        start, stop = self.offsets[number], self.offsets[number + 1]
        return self.utf8[start:stop].tobytes().decode("utf-8")

    @cached_property
    def tables(self) -> tuple[NDArray[np.uint64], Integers]:
        """The hash tables of words and of pairs: derived, so no file is trusted with them."""
        tables = no_words(self.n_terms), no_pairs(self.n_terms)
        self._enter(0, *tables)
        return tables

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """What an occurrence of each term counts."""
        is_word = self.utf8[self.offsets[:-1]] != kernels.GRAM
        spaces = np.flatnonzero(self.utf8 == kernels.SPACE)
        is_word[np.searchsorted(self.offsets, spaces, side="right") - 1] = False
        return np.where(is_word, 1.0, self.rules.ngram_weight)

    def _enter(self, n_entered: int, slots: NDArray[np.uint64], pairs: Integers) -> None:
        """Enter terms into hash tables that have those before them."""
        fault = kernels.enter_terms(self.utf8, self.offsets, n_entered, slots, pairs)
        if fault >= 0:
            raise ValueError(
                f"the term {self.term(fault)!r} is in the vocabulary twice, or is a pair of words "
                "that are not both in it"
            )

    def validate(self) -> None:
        """Refuse arrays that do not make a vocabulary.

        Raises
        ------
        ValueError
            What is wrong with them.
        """
        for name, dtype in (
            ("utf8", np.uint8),
            ("offsets", np.int64),
            ("document_frequencies", np.int64),
        ):
            array = getattr(self, name)
            if array.ndim != 1 or array.dtype != dtype:
                raise ValueError(f"{name} must be one row of {np.dtype(dtype)}")
        if len(self.offsets) == 0 or len(self.document_frequencies) != self.n_terms:
            raise ValueError("each term must have an offset and a document frequency")
        if self.offsets[0] != 0 or self.offsets[-1] != len(self.utf8):
            raise ValueError("the offsets must go from 0 to the number of bytes")
        if np.any(self.offsets[1:] <= self.offsets[:-1]):
            raise ValueError("the offsets must ascend: no term is empty")
        if np.any(self.document_frequencies < 1):
            raise ValueError("every term must be in a document")
        self.utf8.tobytes().decode("utf-8")  # raises UnicodeDecodeError, a ValueError
        if np.any(self.utf8[self.offsets[:-1]] & 0xC0 == 0x80):
            raise ValueError("a term begins inside a character")
        _ = self.tables  # refuses what cannot be entered

    def count(self, texts: Any, n_jobs: int | None = None) -> csr_array[Any]:
        """Count the terms of texts; what is not in the vocabulary is passed over.

        Parameters
        ----------
        texts : sequence of str
            Documents.
        n_jobs : int or None, default=None
            Number of threads; None is one, -1 is every core.

        Returns
        -------
        csr_array of shape (n_documents, n_terms), float64
            Terms ascend within each row.
        """
        checked = check_texts(texts)
        return self._stack(list(_over_blocks(checked, self._count_block, n_jobs)))

    def extended(self, texts: Any, n_jobs: int | None = None) -> Vocabulary:
        """Return a vocabulary with the new terms of texts at its end; no number changes.

        Parameters
        ----------
        texts : sequence of str
            Documents.
        n_jobs : int or None, default=None
            Number of threads.

        Returns
        -------
        Vocabulary
            This one where there is no new term.
        """
        counter = VocabularyBuilder(self.rules, n_jobs)
        counter.add(texts)
        met, _ = counter.finish(keep_rows=False)
        new = np.empty(met.n_terms, np.bool_)
        kernels.find_new(met.utf8, met.offsets, *self.tables, self.utf8, self.offsets, new)
        if not new.any():
            return self
        grown = Vocabulary(
            np.append(self.utf8, met.utf8[np.repeat(new, np.diff(met.offsets))]),
            np.append(self.offsets, self.offsets[-1] + np.cumsum(np.diff(met.offsets)[new])),
            np.append(self.document_frequencies, met.document_frequencies[new]),
            self.rules,
        )
        slots, pairs = self.tables
        tables = (
            with_word_room(slots.copy(), grown.n_terms),
            with_pair_room(pairs.copy(), grown.n_terms),
        )
        grown._enter(self.n_terms, *tables)
        grown.__dict__["tables"] = tables  # where the cached property looks
        return grown

    def _stack(self, rows: list[_Rows]) -> csr_array[Any]:
        """Put blocks of rows under each other, and weigh their counts."""
        lengths = [np.diff(block.indptr) for block in rows]
        indptr = offsets_from_lengths(np.concatenate([np.zeros(0, np.int64), *lengths]))
        indices = np.concatenate([np.zeros(0, np.int32), *(block.indices for block in rows)])
        counts = np.concatenate([np.zeros(0), *(block.counts for block in rows)])
        counts *= self.weights[indices]
        return csr_array((counts, indices, indptr), shape=(len(indptr) - 1, self.n_terms))

    def _count_block(self, texts: list[str]) -> _Rows:
        """Count the terms of some texts."""
        units = tokenize_texts(texts, self.rules)
        numbers, indptr = _room_for_numbers(units, self.rules)
        kernels.find_terms(
            *units,
            self.rules.ngrams == 2,
            *self.tables,
            self.utf8,
            self.offsets,
            numbers,
            indptr,
        )
        return _count_rows(numbers[: indptr[-1]], indptr)


class VocabularyBuilder:
    """Counts the terms of texts that come in chunks; the result is that of one call with all.

    What is kept of a text is four bytes for each occurrence of a term.

    Parameters
    ----------
    rules : TermRules
        How texts are cut into terms.
    n_jobs : int or None, default=None
        Number of threads; None is one, -1 is every core.

    Examples
    --------
    >>> counter = TermCounter(TermRules())
    >>> counter.add(["A bear.", "Another bear"])
    >>> vocabulary, X = counter.finish(min_df=2)
    >>> vocabulary.terms, X.toarray().tolist()
    (['bear'], [[1.0], [1.0]])
    """

    def __init__(self, rules: TokenizerOptions, n_jobs: int | None = None) -> None:
        self.rules = rules
        self.n_jobs = n_jobs
        self._table = TermTable()
        self._frequencies = np.zeros(0, np.int64)
        self._pieces: list[tuple[NDArray[np.int32], Integers]] = []

    def add(self, texts: Any) -> None:
        """Count some more texts.

        Parameters
        ----------
        texts : sequence of str
            Documents.
        """
        checked = check_texts(texts)
        for block in _over_blocks(checked, self._number_block, self.n_jobs):
            numbers = self._table.add(block.text, block.lefts, block.rights)
            self._frequencies = with_room(self._frequencies, self._table.n_terms)
            self._frequencies[numbers] += block.frequencies
            self._pieces.append((numbers.astype(np.int32)[block.numbers], block.indptr))

    def finish(
        self, min_df: int = 1, ngram_min_df: int = 1, *, keep_rows: bool = True
    ) -> tuple[Vocabulary, csr_array[Any]]:
        """Return the vocabulary and the counts.

        Parameters
        ----------
        min_df, ngram_min_df : int, default=1
            Words in fewer documents than the first, and pairs and character n-grams in fewer than
            the second, are left out.
        keep_rows : bool, default=True
            Whether the counts are wanted; without, the matrix has no rows.

        Returns
        -------
        vocabulary : Vocabulary
            Terms in the order of their code points.
        X : csr_array of shape (n_documents, n_terms), float64
            Counts, in the order in which the texts came.
        """
        check_count("min_df", min_df)
        check_count("ngram_min_df", ngram_min_df)
        frequencies = self._frequencies[: self._table.n_terms]
        kinds = self._table.kinds()
        kept = frequencies >= np.where(kinds == WORD, min_df, ngram_min_df)
        chosen = self._table.in_order(kept)
        vocabulary = Vocabulary(*self._table.write(chosen), frequencies[chosen], self.rules)
        renumber = np.full(len(frequencies), -1, np.int32)
        renumber[chosen] = np.arange(len(chosen), dtype=np.int32)
        pieces = self._pieces if keep_rows else []
        rows: list[Any] = [None] * len(pieces)

        def count_pieces(first: int, last: int) -> None:
            for place in range(first, last):
                numbers, indptr = pieces[place]
                rows[place] = _count_rows(renumber[numbers], indptr)

        parallel_for(count_pieces, uniform_work(len(pieces)), self.n_jobs)
        return vocabulary, vocabulary._stack(rows)

    def _number_block(self, texts: list[str]) -> _NumberedBlock:
        """Give the terms of some texts numbers of their own."""
        units = tokenize_texts(texts, self.rules)
        numbers, indptr = _room_for_numbers(units, self.rules)
        lefts, rights, frequencies = np.empty((3, len(numbers)), np.int64)
        n_terms = kernels.number_terms(
            *units, self.rules.ngrams == 2, numbers, indptr, lefts, rights, frequencies
        )
        return _NumberedBlock(
            units.text,
            # Copies: the arrays have room for every unit to be a term of its own.
            lefts[:n_terms].copy(),
            rights[:n_terms].copy(),
            frequencies[:n_terms].copy(),
            numbers[: indptr[-1]],
            indptr,
        )


class _NumberedBlock(NamedTuple):
    """Documents whose terms are numbered by themselves, as the kernel leaves them."""

    text: Bytes
    lefts: Integers
    rights: Integers
    frequencies: Integers
    numbers: NDArray[np.int32]
    indptr: Integers


class _Rows(NamedTuple):
    """Some rows of a count matrix."""

    indptr: Integers
    indices: NDArray[np.int32]
    counts: NDArray[np.float64]


def _room_for_numbers(units: Units, rules: TokenizerOptions) -> tuple[NDArray[np.int32], Integers]:
    """Return the arrays that take the term numbers of documents."""
    n_numbers = len(units.starts) * rules.ngrams
    return np.empty(n_numbers, np.int32), np.empty(len(units.indptr), np.int64)


def _count_rows(numbers: NDArray[np.int32], indptr: Integers) -> _Rows:
    """Turn the term numbers of documents into rows of counts; the numbers are sorted in place."""
    row_indptr = np.empty(len(indptr), np.int64)
    indices = np.empty(len(numbers), np.int32)
    counts = np.empty(len(numbers), np.float64)
    n_entries = kernels.count_rows(numbers, indptr, row_indptr, indices, counts)
    return _Rows(row_indptr, indices[:n_entries], counts[:n_entries])


def _over_blocks(
    texts: list[str], work: Callable[[list[str]], Result], n_jobs: int | None
) -> Iterator[Result]:
    """Yield what `work` returns for blocks of texts, in their order; blocks run in threads."""
    ends = offsets_from_lengths(np.fromiter(map(len, texts), np.int64, len(texts)))
    in_hand = BLOCK_CHARACTERS * joblib.effective_n_jobs(n_jobs)
    cuts = np.searchsorted(ends, np.arange(in_hand, ends[-1], in_hand))
    for begin, end in pairwise(np.unique([0, *cuts, len(texts)]).tolist()):
        yield from _run(texts[begin:end], work, ends[begin : end + 1], n_jobs)


def _run(
    texts: list[str], work: Callable[[list[str]], Result], ends: Integers, n_jobs: int | None
) -> list[Result]:
    """Return what `work` returns for each block of texts, all at once."""
    results: dict[int, Result] = {}

    def keep(first: int, last: int) -> None:
        results[first] = work(texts[first:last])

    parallel_for(keep, ends, n_jobs)
    return [results[first] for first in sorted(results)]
