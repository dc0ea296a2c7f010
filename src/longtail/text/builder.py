"""`VocabularyBuilder`: texts in chunks -> a `Vocabulary` and the counts of all of them."""

from __future__ import annotations

import numbers
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from longtail._kernels.interning import TermIds, Terms, intern_block
from longtail._kernels.text import Tokens
from longtail._kernels.vocabulary import find_terms, look_up_terms
from longtail._parallel import parallel_for, uniform_work
from longtail._records import write_documents
from longtail.sparse import Floats, Integers, offsets_from_lengths
from longtail.text.fields import learn_edges, number_tokens, read_numbers
from longtail.text.interning import Bytes, InternTable, new_seed, with_capacity
from longtail.text.options import TokenizerOptions
from longtail.text.tokenizer import Tokenizer
from longtail.text.vocabulary import (
    Vocabulary,
    allocate_ids,
    count_rows,
    join_parts,
    join_rows,
    map_blocks,
)


@dataclass(frozen=True)
class TermSelection:
    """Which terms a vocabulary keeps."""

    # Words in fewer documents than the first, and n-grams in fewer than the second, are left out.
    # An integer is a number of documents, a float a share of them.
    min_df: float = 1
    ngram_min_df: float = 1
    max_df: float = 1.0  # terms in more documents are left out, and the n-grams that contain them
    # At most so many terms, those with the most occurrences; ties go to words, then by bytes.
    max_features: int | None = None

    def __post_init__(self) -> None:
        for name in ("min_df", "ngram_min_df", "max_df"):
            check_frequency(name, getattr(self, name))
        is_count = isinstance(self.min_df, numbers.Integral)
        if is_count == isinstance(self.max_df, numbers.Integral) and self.max_df < self.min_df:
            raise ValueError(
                f"max_df={self.max_df!r} must not be less than min_df={self.min_df!r}; raise "
                "max_df or lower min_df."
            )
        limit = self.max_features
        if limit is not None and (
            isinstance(limit, bool) or not isinstance(limit, numbers.Integral) or limit < 1
        ):
            raise ValueError(
                f"max_features must be None or an integer of at least 1; got {limit!r}."
            )

    def mark(self, frequencies: Integers, is_word: NDArray[np.bool_], n_documents: int) -> Any:
        """Return whether each term is in enough documents and not in too many."""
        least = np.where(
            is_word,
            _to_count(self.min_df, n_documents),
            _to_count(self.ngram_min_df, n_documents),
        )
        most = _to_count(self.max_df, n_documents)
        return (frequencies >= least) & (frequencies <= most)


def check_frequency(name: str, value: Any) -> None:
    """Refuse what is neither a number of documents nor a share of them."""
    is_integer = isinstance(value, numbers.Integral)
    is_count = is_integer and not isinstance(value, bool) and int(value) >= 1
    is_share = isinstance(value, numbers.Real) and not is_integer and 0 <= float(value) <= 1
    if not is_count and not is_share:
        raise ValueError(
            f"{name} must be an integer of at least 1 (documents) or a float from 0.0 to 1.0 (a "
            f"share of the documents); got {value!r}."
        )


def _to_count(value: float, n_documents: int) -> float:
    """Return a limit as a number of documents."""
    return value if isinstance(value, numbers.Integral) else value * n_documents


@dataclass(frozen=True, eq=False)
class TermCounts:
    """The distinct terms of some texts, and how often they occur."""

    # The terms, as `Terms` of the kernels.
    utf8: Bytes
    lefts: Integers
    rights: Integers
    # (n_terms,) int64: in how many documents, and how often, each occurs.
    frequencies: Integers
    occurrences: Integers
    # (n_documents, n_numbers) float64: those of records, which have no bins yet; NaN where one is
    # missing.
    numeric_values: Floats
    n_documents: int  # number of texts


class VocabularyBuilder:
    """Counts the terms of texts that come in chunks; the result is that of one call with all.

    A text takes four bytes for each occurrence of a term.

    Parameters
    ----------
    options : TokenizerOptions
        How texts become terms.
    n_jobs : int or None, default=None
        Number of threads; None is one, -1 is every core.

    Examples
    --------
    >>> from longtail.text import TermSelection, TokenizerOptions, VocabularyBuilder
    >>> builder = VocabularyBuilder(TokenizerOptions())
    >>> builder.add(["A bear.", "Another bear"])
    2
    >>> vocabulary, X = builder.finish(TermSelection(min_df=2))
    >>> vocabulary.terms, X.toarray().tolist()
    (['bear'], [[1.0], [1.0]])
    """

    def __init__(self, options: TokenizerOptions, n_jobs: int | None = None) -> None:
        self.options = options
        self.n_jobs = n_jobs
        self.n_documents = 0
        self._tokenizer = Tokenizer(options)
        self._table = InternTable()
        self._frequencies = np.zeros(0, np.int64)
        self._occurrences = np.zeros(0, np.int64)  # of terms that came without their texts
        self._blocks: list[TermIds] = []
        # Of each block, until all are known and have bins; none where these were learned before.
        self._numeric: list[Floats] = []
        self._numeric_elsewhere: list[Floats] = []  # of documents whose rows stay there
        self._needs_bins = options.fields is not None and options.fields.needs_bins

    def add(self, texts: Any) -> int:
        """Count some more texts, or records; return how many they are."""
        checked = write_documents(texts, self.options.fields)
        for block in map_blocks(checked, self._intern_block, self.n_jobs):
            self._blocks.append(self._add_block(block))
            if block.numeric_values is not None:
                self._numeric.append(block.numeric_values)
        self.n_documents += len(checked)
        return len(checked)

    def _add_block(self, block: _Block) -> TermIds:
        """Intern the terms of a block; return those of each document by their ids here."""
        ids = self._table.add(*block.terms)
        self._frequencies = with_capacity(self._frequencies, self._table.n_terms)
        self._frequencies[ids] += block.frequencies
        # Ids of four bytes each; there are fewer terms than bytes of text.
        return TermIds(ids.astype(np.int32)[block.term_ids.ids], block.term_ids.indptr)

    def _add_bins(self) -> None:
        """Learn the bins of numbers, and add the terms that these are."""
        if not self._needs_bins:
            return
        fields = learn_edges(self.options.fields, self._all_numeric_values())
        self.options = replace(self.options, fields=fields)
        self._tokenizer = Tokenizer(self.options)
        for i, some in enumerate(self._numeric):
            block = self._intern_tokens(number_tokens(some, fields), 1)
            self._blocks[i] = _join_terms(self._blocks[i], self._add_block(block))
        for some in self._numeric_elsewhere:
            added = self._add_block(self._intern_tokens(number_tokens(some, fields), 1))
            self._occurrences = with_capacity(self._occurrences, self._table.n_terms)
            self._occurrences += np.bincount(added.ids, minlength=len(self._occurrences))
        self._numeric, self._numeric_elsewhere, self._needs_bins = [], [], False

    def _all_numeric_values(self) -> Floats:
        """Return the numbers of all documents."""
        if not self._needs_bins:
            return np.zeros((self.n_documents, 0))
        nothing = np.zeros((0, len(self.options.fields.numeric)))
        return np.concatenate([nothing, *self._numeric, *self._numeric_elsewhere])

    def add_counts(self, counts: TermCounts) -> None:
        """Count the terms of texts that another builder has seen; their rows stay there."""
        ids = self._table.add(counts.utf8, counts.lefts, counts.rights)
        self._frequencies = with_capacity(self._frequencies, self._table.n_terms)
        self._occurrences = with_capacity(self._occurrences, self._table.n_terms)
        self._frequencies[ids] += counts.frequencies
        self._occurrences[ids] += counts.occurrences
        self._numeric_elsewhere.append(counts.numeric_values)
        self.n_documents += counts.n_documents

    def term_counts(self) -> TermCounts:
        """Return the terms seen so far, for `add_counts` of another builder."""
        table, n_terms = self._table, self._table.n_terms
        return TermCounts(
            table.terms.utf8[: table.n_bytes],
            table.terms.lefts[:n_terms],
            table.terms.rights[:n_terms],
            self._frequencies[:n_terms],
            self._count_occurrences(),
            self._all_numeric_values(),
            self.n_documents,
        )

    def term_ids(self) -> TermIds:
        """Return the terms of each text, as ids of `term_counts`, for `count_interned`."""
        lengths = [np.diff(block.indptr) for block in self._blocks]
        return TermIds(
            np.concatenate([np.zeros(0, np.int32), *(block.ids for block in self._blocks)]),
            offsets_from_lengths(np.concatenate([np.zeros(0, np.int64), *lengths])),
        )

    def _count_occurrences(self) -> Integers:
        """Return how often each term has occurred."""
        counts = np.zeros(self._table.n_terms, np.int64)
        counts[: len(self._occurrences)] += self._occurrences[: len(counts)]
        for block in self._blocks:
            counts += np.bincount(block.ids, minlength=len(counts))
        return counts

    def finish(
        self, selection: TermSelection | None = None, *, keep_rows: bool = True
    ) -> tuple[Vocabulary, csr_array[Any]]:
        """Return the vocabulary, in the order of code points, and the counts, in that of the texts.

        Parameters
        ----------
        selection : TermSelection, optional
            Which terms to keep; all of them when left out.
        keep_rows : bool, default=True
            Whether the counts are wanted; without, the matrix has no rows.
        """
        self._add_bins()
        frequencies = self._frequencies[: self._table.n_terms]
        selected = self._select(selection or TermSelection(), frequencies)
        written = self._table.write(selected, self.options.largest_ngram)
        known = {"tokenizer": self._tokenizer}
        vocabulary = Vocabulary(*written, frequencies[selected], self.options, known=known)
        new_ids = np.full(len(frequencies), -1, np.int32)
        new_ids[selected] = np.arange(len(selected), dtype=np.int32)
        blocks = self._blocks if keep_rows else []
        rows: list[Any] = [None] * len(blocks)

        def count_blocks(first: int, last: int) -> None:
            for i in range(first, last):
                rows[i] = count_rows(blocks[i]._replace(ids=new_ids[blocks[i].ids]))

        parallel_for(count_blocks, uniform_work(len(blocks)), self.n_jobs)
        return vocabulary, join_rows(vocabulary, rows).to_csr()

    def _select(self, selection: TermSelection, frequencies: Integers) -> Integers:
        """Return the ids of the terms to keep, in the order of their bytes."""
        is_word = self._table.mark_words()
        kept = selection.mark(frequencies, is_word, self.n_documents)
        selected = self._table.sort(kept, self.options.largest_ngram)
        if selection.max_features is None or selection.max_features >= len(selected):
            return selected
        counts = self._count_occurrences()
        # A word occurs as often as any n-gram with it: no n-gram comes before its words.
        order = np.lexsort([~is_word[selected], -counts[selected]])
        kept = np.zeros(len(frequencies), np.bool_)
        kept[selected[order[: selection.max_features]]] = True
        return self._table.sort(kept, self.options.largest_ngram)

    def _intern_block(self, texts: list[str]) -> _Block:
        """Give the terms of some texts ids of their own."""
        block = self._intern_tokens(self._tokenizer.tokenize(texts), self._tokenizer.n_parts)
        if self._needs_bins:
            block = block._replace(numeric_values=read_numbers(texts, self.options.fields))
        return block

    def _intern_tokens(self, tokens: Tokens, n_parts: int) -> _Block:
        """Give the terms of some documents, each of so many parts, ids of their own."""
        term_ids = allocate_ids(tokens, self.options.largest_ngram)
        lefts, rights, frequencies = np.empty((3, len(term_ids.ids)), np.int64)
        n_terms = intern_block(
            tokens,
            self.options.largest_ngram,
            new_seed(),
            term_ids,
            Terms(tokens.utf8, lefts, rights),
            frequencies,
        )
        return _Block(
            # Copies: the arrays have capacity for as many terms as tokens.
            Terms(tokens.utf8, lefts[:n_terms].copy(), rights[:n_terms].copy()),
            frequencies[:n_terms].copy(),
            join_parts(term_ids, n_parts),
        )


class _Block(NamedTuple):
    """Documents whose terms have ids of their own."""

    terms: Terms
    frequencies: Integers
    term_ids: TermIds
    numeric_values: Floats | None = None  # of each document and field


def _join_terms(first: TermIds, second: TermIds) -> TermIds:
    """Return what documents have in either; as many documents."""
    ids = np.empty(len(first.ids) + len(second.ids), np.int32)
    n_documents = len(first.indptr) - 1
    rows = np.repeat(np.arange(n_documents), np.diff(first.indptr))
    ids[np.arange(len(first.ids)) + second.indptr[rows]] = first.ids
    rows = np.repeat(np.arange(n_documents), np.diff(second.indptr))
    ids[np.arange(len(second.ids)) + first.indptr[rows + 1]] = second.ids
    return TermIds(ids, first.indptr + second.indptr)


def count_interned(vocabulary: Vocabulary, counts: TermCounts, term_ids: TermIds) -> csr_array[Any]:
    """Return the counts of texts that were tokenized before: the same as from the texts.

    `counts` and `term_ids` are of one `VocabularyBuilder`.
    """
    table = InternTable()
    ids = table.add(counts.utf8, counts.lefts, counts.rights)
    utf8, offsets = table.write(ids, vocabulary.options.largest_ngram)
    new_ids = np.empty(len(ids), np.int64)
    look_up_terms(utf8, offsets, vocabulary.tables, vocabulary.slices, new_ids)
    kept = term_ids._replace(ids=new_ids.astype(np.int32)[term_ids.ids])
    if counts.numeric_values.shape[1]:
        tokens = number_tokens(counts.numeric_values, vocabulary.options.fields)
        bins = allocate_ids(tokens, 1)
        find_terms(tokens, 1, vocabulary.tables, vocabulary.slices, bins)
        kept = _join_terms(kept, join_parts(bins, 1))
    return join_rows(vocabulary, [count_rows(kept)]).to_csr()


def extend_vocabulary(vocabulary: Vocabulary, texts: Any, n_jobs: int | None = None) -> Vocabulary:
    """Return a vocabulary with the new terms of texts at its end; no id changes.

    The same one where there is no new term.
    """
    builder = VocabularyBuilder(vocabulary.options, n_jobs)
    builder.add(texts)
    found, _ = builder.finish(keep_rows=False)
    ids = np.empty(found.n_terms, np.int64)
    look_up_terms(found.utf8, found.offsets, vocabulary.tables, vocabulary.slices, ids)
    new, lengths = ids < 0, np.diff(found.offsets)
    if not new.any():
        return vocabulary
    return vocabulary.extend(
        found.utf8[np.repeat(new, lengths)], lengths[new], found.document_frequencies[new]
    )
