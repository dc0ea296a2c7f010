"""Text to counts: equal to the oracle for any text, any chunks, any threads."""

from __future__ import annotations

from dataclasses import asdict
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail.text import (
    TermSelection,
    TokenizerOptions,
    Vocabulary,
    VocabularyBuilder,
    extend_vocabulary,
    vocabulary,
)
from longtail.text.tokenizer import normalise
from tests import oracle_text
from tests.conftest import check_vocabulary, examples

# Few letters, so that words come again; marks, digits, ligatures, edges of UTF-8 and of Unicode.
LETTERS = (
    "abAs -语ทีไéÉßſﬁσΣςİıе́йが゙한日\u0301\u0327\ufe0f❤²½Ⅷ१ुक\x00\u200d\ud800\U00010400\U000e0100~_\n"
)
TEXTS = st.lists(
    st.one_of(st.text(alphabet=LETTERS, max_size=25), st.text(max_size=12)), max_size=7
)
OPTIONS = st.builds(
    TokenizerOptions,
    ngram_range=st.sampled_from([(1, 1), (1, 2), (1, 3), (1, 4)]),
    char_ngram_range=st.sampled_from([None, (2, 3), (4, 4), (3, 6)]),
    ngram_weight=st.sampled_from([1, 0.25]),
    lowercase=st.booleans(),
    strip_accents=st.sampled_from(["unicode", None]),
    stop_words=st.sampled_from([None, ("a", "É", "日")]),
    stem=st.booleans(),
    split_unspaced=st.booleans(),
)


def as_dicts(found: Vocabulary, X) -> list[dict[str, float]]:
    """Return the rows of a count matrix with their terms."""
    terms = found.terms
    return [
        {terms[t]: c for t, c in zip(row.indices, row.data, strict=True)}
        for row in (X[[i]] for i in range(X.shape[0]))
    ]


def count(texts, options, chunks=(), min_df=1, ngram_min_df=1, n_jobs=None):
    builder = VocabularyBuilder(options, n_jobs)
    bounds = [0, *chunks, len(texts)]
    for first, last in pairwise(bounds):
        builder.add(texts[first:last])
    return builder.finish(TermSelection(min_df, ngram_min_df))


def oracle(texts, options):
    given = asdict(options)
    given["stop_words"] = given["stop_words"] or ()
    del given["token_pattern"], given["tokenizer"]
    del given["fields"]  # the oracle has none
    return [oracle_text.terms(text, **given) for text in texts]


def assert_same(one, other):
    (a, X), (b, Y) = one, other
    for name in ("utf8", "offsets", "document_frequencies"):
        assert np.array_equal(getattr(a, name), getattr(b, name))
    for name in ("indptr", "indices", "data"):
        assert np.array_equal(getattr(X, name), getattr(Y, name))


@given(st.text(alphabet=LETTERS), st.booleans(), st.sampled_from(["unicode", None]))
def test_normal_form_is_that_of_the_whole_text(text, lowercase, strip_accents):
    expected = oracle_text.normal_form(text, lowercase, strip_accents)
    assert normalise(text, lowercase, strip_accents) == expected


@given(TEXTS, OPTIONS, st.integers(1, 3), st.integers(1, 3))
def test_counts_are_the_oracle_s(texts, options, min_df, ngram_min_df):
    expected = oracle(texts, options)
    frequencies = oracle_text.document_frequencies(expected)

    def kept(term):
        if term.startswith("~") or " " not in term:
            return frequencies[term] >= (ngram_min_df if term.startswith("~") else min_df)
        return frequencies[term] >= ngram_min_df and all(map(kept, term.split(" ")))

    found, X = count(texts, options, min_df=min_df, ngram_min_df=ngram_min_df)
    check_vocabulary(found)
    assert found.terms == sorted(filter(kept, frequencies), key=str.encode)
    assert dict(found) == {term: i for i, term in enumerate(found.terms)}
    assert all(term in found for term in frequencies if kept(term))
    assert not any(term in found for term in frequencies if not kept(term))
    assert found.document_frequencies.tolist() == [frequencies[term] for term in found.terms]
    assert X.has_canonical_format
    assert as_dicts(found, X) == [{t: c for t, c in d.items() if kept(t)} for d in expected]
    Y = found.count(texts)
    assert as_dicts(found, Y) == as_dicts(found, X)


@given(TEXTS, OPTIONS, st.data())
def test_order_chunks_and_threads_do_not_matter(texts, options, choices):
    whole = count(texts, options, ngram_min_df=2)
    cuts = sorted(choices.draw(st.lists(st.integers(0, len(texts)), max_size=3)))
    assert_same(whole, count(texts, options, cuts, ngram_min_df=2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vocabulary, "BLOCK_CHARACTERS", choices.draw(st.integers(1, 20)))
        assert_same(whole, count(texts, options, ngram_min_df=2))
    order = choices.draw(st.permutations(range(len(texts))))
    shuffled, X = count([texts[i] for i in order], options, ngram_min_df=2)
    assert_same((whole[0], whole[1][order]), (shuffled, X))


@examples(15)  # threads start anew for each
@given(TEXTS, OPTIONS)
def test_threads_do_not_matter(texts, options):
    one, three = (count(texts, options, n_jobs=n) for n in (None, 3))
    assert_same(one, three)
    found = one[0]
    assert_same((found, found.count(texts)), (found, found.count(texts, n_jobs=3)))


@given(TEXTS, TEXTS, OPTIONS)
def test_an_extended_vocabulary_keeps_ids_and_knows_every_term(old, new, options):
    first, _ = count(old, options, min_df=2, ngram_min_df=2)
    grown = extend_vocabulary(first, new)
    check_vocabulary(grown)
    known = set(first.terms)
    added = set(oracle_text.document_frequencies(oracle(new, options))) - known
    assert grown.terms == first.terms + sorted(added, key=str.encode)
    assert (grown is first) == (not added)
    assert as_dicts(grown, grown.count(new)) == oracle(new, options)
    assert extend_vocabulary(grown, new) is grown
    again = Vocabulary(grown.utf8, grown.offsets, grown.document_frequencies, options)
    assert as_dicts(again, again.count(old)) == as_dicts(grown, grown.count(old))
