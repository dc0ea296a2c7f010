"""Text to counts: examples, errors, and agreement with scikit-learn."""

from __future__ import annotations

import lzma
import unicodedata

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline

from longtail.text import TextVectorizer, TokenizerOptions, Vocabulary, VocabularyBuilder
from longtail.text.tokenizer import character_kinds, normalise
from tests.conftest import SHARED_DATA

TEXTS = ["The bear eats; the bear sleeps.", "A brown bear", "the red fox", "", "a fox eats"]


def terms_of(*texts, **options):
    return TextVectorizer(**{"ngram_min_df": 1, **options}).fit(texts).vocabulary_.terms


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Galápagos ÎLE", ["galapagos", "ile"]),
        ("Straße STRASSE", ["strasse"]),
        ("snake_case v1.2-x", ["2", "case", "snake", "v1", "x"]),
        ("日本語 テキスト", ["テキスト", "日本語"]),
        ("ΟΔΟΣ οδος", ["οδοσ"]),
        ("हिन्दी", ["हिन्दी"]),  # its vowel signs are marks
        ("❤\ufe0f a\ufe0f", ["a\ufe0f"]),  # a mark makes no word
        ("x\x00y \ud800z", ["x", "y", "z"]),
        ("ﬁn km²", ["fin", "km2"]),
    ],
)
def test_words(text, words):
    assert terms_of(text, ngrams=1) == sorted(set(words), key=str.encode)


def test_options():
    assert terms_of("a café", fold_accents=False) == ["a", "a café", "café"]
    assert terms_of("cafe\u0301", fold_accents=False) == ["café"]
    assert terms_of("bears bodies boxes churches grass virus gas", ngrams=1, stem=True) == [
        "bear",
        "body",
        "box",
        "church",
        "gas",
        "grass",
        "virus",
    ]
    assert terms_of("né o", ngrams=1, char_ngrams=(3, 4)) == [
        "ne",
        "o",
        "~ ne",
        "~ ne ",
        "~ o ",
        "~ne ",
    ]


def test_defaults_keep_every_word_and_repeated_pairs():
    found = TextVectorizer().fit(TEXTS).vocabulary_
    assert found.terms == ["a", "bear", "brown", "eats", "fox", "red", "sleeps", "the"]
    found = TextVectorizer().fit([*TEXTS, "red fox"]).vocabulary_
    assert "red fox" in found.terms
    assert found.document_frequencies[found.terms.index("fox")] == 3


def test_a_pair_goes_with_its_words():
    texts = ["a b", "a b", "a c"]
    assert terms_of(*texts, min_df=3) == ["a"]
    assert terms_of(*texts, min_df=2) == ["a", "a b", "b"]


def test_every_code_point_is_what_unicode_says():
    of_category = {"L": 1, "N": 1, "M": 2}
    kinds = [of_category.get(unicodedata.category(chr(c))[0], 0) for c in range(0x110000)]
    assert np.array_equal(character_kinds(), kinds)


def test_words_with_equal_hashes_stay_apart():
    """Among 300,000 words about ten share their 32 bits with another."""
    letters = np.random.default_rng(0).integers(97, 123, (300_000, 8), dtype=np.uint8)
    words = np.unique(letters.view("S8")).view(np.uint8).reshape(-1, 8)
    value = np.full(len(words), 14695981039346656037, np.uint64)
    for column in words.T:
        value = (value ^ column.astype(np.uint64)) * np.uint64(1099511628211)
    tags = (value ^ (value >> np.uint64(32))) & np.uint64(0xFFFFFFFF)
    assert len(np.unique(tags)) < len(words)
    names = [bytes(word).decode() for word in words]
    texts = [" ".join(names[i::50]) for i in range(50)]
    counter = VocabularyBuilder(TokenizerOptions(ngrams=1))
    counter.add(texts)
    found, X = counter.finish()
    assert found.terms == names
    assert X.nnz == len(names)
    assert found.count(texts).nnz == len(names)


# ---- beside scikit-learn


@pytest.mark.parametrize("ngrams", [1, 2])
def test_same_counts_as_scikit_learn(ngrams):
    path = SHARED_DATA / "wordnet-hypernym" / "test.tsv.xz"
    if not path.exists():
        pytest.skip(f"{path} is absent")
    with lzma.open(path, "rt", encoding="utf-8") as file:
        texts = [line.split("\t", 1)[1] for line in file][:5000]
    theirs = CountVectorizer(token_pattern=r"[^\W_]+", ngram_range=(1, ngrams))
    expected = theirs.fit_transform(texts)
    ours = TextVectorizer(ngrams=ngrams, ngram_min_df=1, ngram_weight=1, n_jobs=2)
    X = ours.fit_transform(texts)
    assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()
    assert (expected != X).nnz == 0
    assert (ours.transform(texts[:100]) != expected[:100]).nnz == 0


def test_same_character_ngrams_as_scikit_learn():
    texts = ["the bear eats", "a fox", "bears"]
    theirs = CountVectorizer(analyzer="char_wb", ngram_range=(3, 4))
    expected = theirs.fit_transform(texts)
    ours = TextVectorizer(ngrams=1, char_ngrams=(3, 4), ngram_min_df=1).fit(texts)
    terms = ours.get_feature_names_out()
    grams = [t for t in range(len(terms)) if terms[t].startswith("~")]
    # scikit-learn gives a word that is shorter than n once for each n; we only where it fits.
    assert set(theirs.get_feature_names_out()) == {terms[t][1:] for t in grams}
    assert np.array_equal(ours.transform(texts)[:, grams].toarray() > 0, expected.toarray() > 0)


def test_is_a_scikit_learn_transformer():
    vectorizer = TextVectorizer(ngrams=1, n_jobs=2)
    assert clone(vectorizer).get_params() == vectorizer.get_params()
    pipeline = make_pipeline(vectorizer, NearestCentroid()).fit(TEXTS, [0, 0, 1, 1, 1])
    assert pipeline.predict(["brown bear", "red fox"]).tolist() == [0, 1]
    assert pipeline[:-1].get_feature_names_out().tolist() == vectorizer.vocabulary_.terms
    X = TextVectorizer(ngrams=1).fit_chunks([TEXTS[:2], np.array(TEXTS[2:])])
    assert (vectorizer.transform(TEXTS) != X).nnz == 0
    assert X.dtype == np.float64


# ---- what is refused


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("bear", r"texts must be a list of strings; got one str\. Put it into a list"),
        (b"bear", "got one bytes"),
        (7, "texts must be a list of strings; got int"),
        (["a", None], r"document 1 is missing \(None\)"),
        (["a", "b", float("nan")], r"document 2 is missing \(nan\)"),
        (["a", b"b"], r"document 1 is of type bytes \(b'b'\)"),
        ([["a"]], "document 0 is of type list"),
        (np.array([["a"]]), "texts must have one dimension"),
        ([], "no term is in at least 1 of the 0 document"),
        (["...", ""], "so the vocabulary is empty. Lower min_df"),
    ],
)
def test_bad_texts(texts, message):
    with pytest.raises(ValueError, match=message):
        TextVectorizer().fit(texts)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ngrams": 3}, r"ngrams must be 1 \(words\) or 2"),
        ({"min_df": 0}, "min_df must be an integer of at least 1; got 0"),
        ({"ngram_min_df": 0.5}, "ngram_min_df must be an integer of at least 1; got 0.5"),
        ({"char_ngrams": 3}, "char_ngrams must be None or two integers"),
        ({"char_ngrams": (5, 4)}, r"2 <= shortest <= longest, such as \(4, 5\); got \(5, 4\)"),
        ({"ngram_weight": 0}, "ngram_weight must be a positive number; got 0"),
        ({"ngram_weight": float("nan")}, "ngram_weight must be a positive number; got nan"),
        ({"stem": "english"}, "stem must be True or False; got 'english'"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        TextVectorizer(**options).fit(TEXTS)


def make_vocabulary(*terms, **arrays):
    utf8 = "".join(terms).encode()
    offsets = np.cumsum([0, *(len(term.encode()) for term in terms)])
    parts = {
        "utf8": np.frombuffer(utf8, np.uint8).copy(),
        "offsets": offsets,
        "document_frequencies": np.ones(len(terms), np.int64),
    }
    return Vocabulary(**{**parts, **arrays}, rules=TokenizerOptions())


def test_a_vocabulary_from_arrays():
    found = make_vocabulary("bear", "a", "a bear", "~ be")
    found.validate()
    assert found.count(["a bear"]).toarray().tolist() == [[1, 1, 0.5, 0]]


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (make_vocabulary("a", "b", "a"), "'a' is in the vocabulary twice"),
        (make_vocabulary("a", "b", "a b", "a b"), "'a b' is in the vocabulary twice"),
        (make_vocabulary("a", "a b"), "a pair of words that are not both in it"),
        (make_vocabulary("a", "b", "a  b"), "not both in it"),
        (make_vocabulary("a", " a"), "not both in it"),
        (make_vocabulary("a", ""), "no term is empty"),
        (make_vocabulary("é", offsets=np.array([0, 1, 2])), "must have an offset"),
        (
            make_vocabulary("é", "a", offsets=np.array([0, 1, 3])),
            "begins inside a character",
        ),
        (make_vocabulary("a", utf8=np.array([200], np.uint8)), "can't decode"),
        (make_vocabulary("a", offsets=np.array([0, 99])), "from 0 to the number of bytes"),
        (make_vocabulary("a", "b", offsets=np.array([0, 9, 2])), "must ascend"),
        (make_vocabulary("a", offsets=np.array([0.0, 1.0])), "offsets must be one row of int64"),
        (make_vocabulary("a", document_frequencies=np.array([0])), "must be in a document"),
        (make_vocabulary(offsets=np.zeros(0, np.int64)), "must have an offset"),
    ],
)
def test_hostile_arrays(found, message):
    with pytest.raises(ValueError, match=message):
        found.validate()


def test_normalise():
    assert normalise("Ångström, ﬁne, Straße, 5 km²") == "angstrom, fine, strasse, 5 km2"
    assert normalise("Й", fold_accents=False) == "й"
