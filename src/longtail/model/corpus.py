"""Corpus: document frequencies, idf and the collection counts that all classes share."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from longtail._caching import WithKnown, cached_property
from longtail._elementary import log
from longtail.sparse import Floats, Integers, append, append_constant


@dataclass(frozen=True)
class Corpus(WithKnown):
    """Quantities of the whole corpus that scoring needs: m, df_t, F_t, l_S and avg(len(y))."""

    n_documents: int | float  # m, the number of documents
    # (n_terms,) int64 or float64: df_t, the number of documents with term t.
    document_frequencies: Integers
    term_counts: Floats  # (n_terms,) float64: F_t, how often term t occurs
    length: float  # l_S, the number of term occurrences in all documents
    mean_class_length: float  # avg(len(y)) = l_S / K

    @cached_property
    def idf(self) -> Floats:
        """I_t = ln((1 + m) / (1 + df_t)) + 1."""
        # A term taught after the last fit may have a df above the frozen m; its idf then stays
        # above zero.
        return self._idf_of(self.document_frequencies)

    def _idf_of(self, frequencies: Integers) -> Floats:
        documents = np.maximum(self.n_documents, frequencies)
        return np.asarray(log((1.0 + documents) / (1.0 + frequencies)) + 1.0)

    @cached_property
    def rarity(self) -> Floats:
        """l_S / F_t, and 0 for terms that never occur (no class shares them)."""
        return np.divide(
            self.length,
            self.term_counts,
            out=np.zeros_like(self.term_counts),
            where=self.term_counts > 0,
        )

    def with_entered_terms(self, n_terms: int) -> Corpus:
        """Take terms that are unknown here as if one document had each, however many have.

        So what a term counts does not depend on the changes that came after the one it came with.
        """
        n_new = n_terms - len(self.document_frequencies)
        frequencies = np.pad(self.document_frequencies, (0, n_new))
        return replace(
            self,
            document_frequencies=np.maximum(frequencies, 1),
            term_counts=np.pad(self.term_counts, (0, n_new)),
        )

    def grow_terms(self, n_terms: int) -> Corpus:
        """Let terms enter: as if one document had each."""
        n_new = n_terms - len(self.term_counts)
        return replace(
            self,
            document_frequencies=append_constant(self.document_frequencies, n_new, 1),
            term_counts=append_constant(self.term_counts, n_new),
            known={"idf": append(self.idf, self._idf_of(np.ones(n_new, np.int64)))},
        )

    def with_new_terms(self, document_frequencies: Integers, term_counts: Floats) -> Corpus:
        """Take the frequencies of terms that are unknown here from the current ones.

        Terms first seen since the last fit count with the df they have now; everything else stays.
        """
        n_new = len(document_frequencies) - len(self.document_frequencies)
        frequencies = np.pad(self.document_frequencies, (0, n_new))
        counts = np.pad(self.term_counts, (0, n_new))
        unknown = frequencies == 0
        return replace(
            self,
            document_frequencies=np.where(unknown, document_frequencies, frequencies),
            term_counts=np.where(unknown, term_counts, counts),
        )

    def with_terms_of(self, current: Corpus) -> Corpus:
        """Take the terms that are unknown here from what the corpus is now."""
        return self.with_new_terms(current.document_frequencies, current.term_counts)
