"""The WordNet set inside the package -> text, or counts.

A synset's words and gloss are the document, its first direct hypernym is the class: 12,582 classes,
three quarters of them with at most five training documents.
"""

from __future__ import annotations

import lzma
from dataclasses import replace
from importlib import resources

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from longtail.datasets.records import CountDataset, TextDataset


def load_wordnet() -> TextDataset:
    """Load the embedded WordNet set: 70,084 training and 17,612 test definitions of 12,582 classes.

    Returns
    -------
    dataset : TextDataset
        Always the same documents in the same order; nothing is downloaded.

    Examples
    --------
    >>> wordnet = load_wordnet()
    >>> wordnet.train_text[0]
    'argali, argal, Ovis ammon | wild sheep of semidesert regions in central Asia'
    >>> str(wordnet.train_labels[0])
    'wild sheep [n02414578]'
    """
    train_text, train_labels = _read_part("train.tsv.xz")
    test_text, test_labels = _read_part("test.tsv.xz")
    return TextDataset(
        train_text=train_text,
        train_labels=train_labels,
        test_text=test_text,
        test_labels=test_labels,
        description=_read_bytes("README.md").decode("utf-8"),
        license=_read_bytes("LICENSE").decode("utf-8"),
    )


def load_wordnet_records() -> TextDataset:
    """Load the embedded WordNet set as records: two texts, a category and a number each.

    Returns
    -------
    dataset : TextDataset
        The documents of `load_wordnet` as dicts: ``words`` and ``gloss`` of the synset, ``file``,
        the lexicographer file that it is in (noun.animal, verb.motion, ...), and ``hyponyms``, how
        many synsets it is a hypernym of.

    Examples
    --------
    >>> wordnet = load_wordnet_records()
    >>> wordnet.train_text[0]["words"], wordnet.train_text[0]["file"]
    ('argali, argal, Ovis ammon', 'noun.animal')
    >>> wordnet.train_text[4]["hyponyms"]
    21
    """
    wordnet = load_wordnet()
    lines = lzma.decompress(_read_bytes("columns.tsv.xz")).decode("ascii").splitlines()
    columns = [line.split("\t") for line in lines]
    records = []
    for text, (file, hyponyms) in zip(
        [*wordnet.train_text, *wordnet.test_text], columns, strict=True
    ):
        first, _, gloss = text.partition(" | ")
        records.append({"words": first, "gloss": gloss, "file": file, "hyponyms": int(hyponyms)})
    n_train = len(wordnet.train_text)
    return replace(wordnet, train_text=records[:n_train], test_text=records[n_train:])


def load_wordnet_counts() -> CountDataset:
    """Load the embedded WordNet set as term counts.

    Terms are lower-cased runs of a-z and 0-9 of at least two characters, accents folded (NFKD),
    that occur in at least two training documents. Terms and classes are in alphabetical order.

    Returns
    -------
    dataset : CountDataset
        Counts are int32.

    Examples
    --------
    >>> wordnet = load_wordnet_counts()
    >>> wordnet.X_train.shape, wordnet.X_test.shape
    ((70084, 39498), (17612, 39498))
    """
    from sklearn.feature_extraction.text import CountVectorizer

    wordnet = load_wordnet()
    counter = CountVectorizer(
        strip_accents="unicode", token_pattern=r"[a-z0-9]{2,}", min_df=2, dtype=np.int32
    )
    X_train = csr_array(counter.fit_transform(wordnet.train_text))
    X_test = csr_array(counter.transform(wordnet.test_text))
    X_train.sort_indices()
    X_test.sort_indices()
    classes, y_train = np.unique(wordnet.train_labels, return_inverse=True)
    return CountDataset(
        X_train=X_train,
        y_train=y_train,
        X_test=X_test,
        # Every class of the test part has a training document.
        y_test=np.searchsorted(classes, wordnet.test_labels),
        classes=classes,
        terms=counter.get_feature_names_out().astype(np.str_),
    )


def _read_bytes(name: str) -> bytes:
    """Return the content of a file of the set."""
    return resources.files("longtail.datasets").joinpath("wordnet", name).read_bytes()


def _read_part(name: str) -> tuple[list[str], NDArray[np.str_]]:
    """Return the documents and labels of one part: one document per line, class, tab, text."""
    lines = lzma.decompress(_read_bytes(name)).decode("utf-8").removesuffix("\n").split("\n")
    rows = [line.split("\t", 1) for line in lines]
    return [text for _, text in rows], np.array([label for label, _ in rows])
