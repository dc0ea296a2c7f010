"""The embedded WordNet set."""

import lzma
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from longtail.datasets import load_wordnet, load_wordnet_counts

SHARED = Path(__file__).parents[3] / "shared" / "data" / "wordnet-hypernym"
needs_original = pytest.mark.skipif(not SHARED.is_dir(), reason="the original set is not here")


@pytest.fixture(scope="module")
def text():
    return load_wordnet()


@pytest.fixture(scope="module")
def counts():
    return load_wordnet_counts()


def test_text(text):
    assert len(text.train_text) == text.train_labels.size == 70_084
    assert len(text.test_text) == text.test_labels.size == 17_612
    assert text.train_labels.dtype.kind == "U"
    assert text.train_labels[1] == "present [n15119536]"
    assert text.train_text[1].startswith("now | the momentary present;")
    assert set(text.test_labels) <= set(text.train_labels)


def test_licence_comes_along(text):
    assert (
        "WordNet 3.0 Copyright 2006 by Princeton University.  All rights reserved." in text.license
    )
    assert "LICENSEE agrees to preserve same" in text.license
    assert "wordnet-base" in text.description


def test_counts(counts):
    assert counts.X_train.shape == (70_084, 39_498)
    assert counts.X_test.shape == (17_612, 39_498)
    assert counts.X_train.nnz == 842_002
    assert counts.X_train.dtype == np.int32
    assert counts.classes.size == counts.n_train_classes == 12_582
    assert counts.n_unseen == 0
    assert counts.terms[:3].tolist() == ["00", "000", "047"]
    assert np.all(counts.terms[:-1] < counts.terms[1:])
    assert np.all(counts.classes[:-1] < counts.classes[1:])
    counts.X_train.check_format(full_check=True)
    assert counts.X_train.has_canonical_format


def test_counts_follow_the_text(text, counts):
    assert np.array_equal(counts.classes[counts.y_train], text.train_labels)
    assert np.array_equal(counts.classes[counts.y_test], text.test_labels)
    row = counts.X_test[[0]]
    names = counts.terms[row.indices]
    words = text.test_text[0].lower()
    assert names.size > 0
    assert all(name in words for name in names)


@needs_original
@pytest.mark.parametrize("part", ["train", "test"])
def test_text_equals_the_original(text, part):
    with lzma.open(SHARED / f"{part}.tsv.xz", "rt", encoding="utf-8") as file:
        lines = file.read().splitlines()
    labels, texts = getattr(text, f"{part}_labels"), getattr(text, f"{part}_text")
    assert [f"{a}\t{b}" for a, b in zip(labels, texts, strict=True)] == lines


@needs_original
@pytest.mark.parametrize("part", ["train", "test"])
def test_counts_equal_the_original(counts, part):
    with np.load(SHARED / "counts.npz") as stored:
        csr = tuple(stored[f"{part}_{name}"] for name in ("data", "indices", "indptr"))
        y, shape = stored[f"{part}_y"], stored["shape"]
    X = getattr(counts, f"X_{part}")
    original = csr_array(csr, shape=X.shape)
    original.sort_indices()
    assert np.array_equal(X.indptr, original.indptr)
    assert np.array_equal(X.indices, original.indices)
    assert np.array_equal(X.data, original.data)
    assert np.array_equal(getattr(counts, f"y_{part}"), y)
    assert shape[2:].tolist() == [counts.classes.size, counts.terms.size]
    terms = lzma.decompress((SHARED / "terms.txt.xz").read_bytes()).decode().splitlines()
    classes = lzma.decompress((SHARED / "classes.txt.xz").read_bytes()).decode().splitlines()
    assert counts.terms.tolist() == terms
    assert counts.classes.tolist() == classes
