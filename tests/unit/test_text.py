"""Text to counts: examples, errors, and agreement with scikit-learn."""

from __future__ import annotations

import lzma
import pickle
import unicodedata
from collections.abc import Mapping

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline

from longtail.sparse import CountMatrix
from longtail.text import (
    TextVectorizer,
    TokenizerOptions,
    Vocabulary,
    VocabularyBuilder,
    extend_vocabulary,
)
from longtail.text.interning import InternTable, new_tables
from longtail.text.tokenizer import Tokenizer, character_kinds, normalise
from longtail.text.vocabulary import count_for_kernels
from tests.conftest import SHARED_DATA, check_vocabulary
from tests.oracle_text import is_unspaced

TEXTS = ["The bear eats; the bear sleeps.", "A brown bear", "the red fox", "", "a fox eats"]


def terms_of(*texts, **options):
    return TextVectorizer(**{"ngram_min_df": 1, **options}).fit(texts).vocabulary_.terms


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Galápagos ÎLE", ["galapagos", "ile"]),
        ("Straße STRASSE", ["strasse"]),
        ("snake_case v1.2-x", ["2", "case", "snake", "v1", "x"]),
        ("日本語 テキスト", ["日本", "本語", "テキ", "キス", "スト"]),
        ("日本語text火x", ["日本", "本語", "text", "火", "x"]),
        ("한국어 텍스트", ["한국어", "텍스트"]),  # Korean has spaces
        ("ที่นี่ ๑๒", ["ที่นี่", "๑๒"]),  # marks stay with their letter
        ("ພາສາ", ["ພາ", "າສ", "ສາ"]),
        ("ភាសា", ["ភាសា"]),
        ("二〇二五年", ["二〇", "〇二", "二五", "五年"]),
        ("日\u0301本", ["日本"]),
        ("ΟΔΟΣ οδος", ["οδοσ"]),
        ("हिन्दी", ["हिन्दी"]),  # its vowel signs are marks
        ("❤\ufe0f a\ufe0f", ["a\ufe0f"]),  # a mark makes no word
        ("x\x00y \ud800z", ["x", "y", "z"]),
        ("ﬁn km²", ["fin", "km2"]),
    ],
)
def test_words(text, words):
    assert terms_of(text, ngram_range=(1, 1)) == sorted(set(words), key=str.encode)


def test_options():
    assert terms_of("a café", strip_accents=None) == ["a", "a café", "café"]
    assert terms_of("cafe\u0301", strip_accents=None) == ["café"]
    assert terms_of(
        "bears bodies boxes churches grass virus gas", ngram_range=(1, 1), stem=True
    ) == [
        "bear",
        "body",
        "box",
        "church",
        "gas",
        "grass",
        "virus",
    ]
    assert terms_of("né o", ngram_range=(1, 1), char_ngram_range=(3, 4)) == [
        "ne",
        "o",
        "~ ne",
        "~ ne ",
        "~ o ",
        "~ne ",
    ]


def test_character_n_grams_are_bounded_by_the_document():
    word = "".join(chr(97 + i * i % 26) for i in range(1_000))
    texts = [f"start {word} middle {word} end", "short", word[:40], " ".join(["bear"] * 400)]
    tokenizer = Tokenizer(TokenizerOptions(char_ngram_range=(2, 1024)))
    tokens = tokenizer.tokenize(texts)
    sizes = [
        (tokens.ends - tokens.starts)[tokens.indptr[i] : tokens.indptr[i + 1]].sum()
        for i in range(len(texts))
    ]
    assert sizes[0] <= (1 << 14) + 65 * len(texts[0])  # each word would have 167 million
    found = {
        bytes(tokens.utf8[start:end]).decode()
        for start, end in zip(tokens.starts, tokens.ends, strict=True)
    }
    assert {"start", "middle", "end", "short", word, "~ start ", "~ end ", "~ short "} <= found
    assert {"~ " + word[:40] + " ", "~ bear "} <= found
    long_ones = {len(term) - 1 for term in found if term[0] == "~" and term[1:] in f" {word} "}
    assert set(range(2, 9)) <= long_ones


def test_the_usual_character_n_grams_are_never_too_many():
    word = "".join(chr(97 + i * i % 26) for i in range(1_000))
    for text in (word * 100, "é" * 3_000, " ".join(word[i : i + 7] for i in range(900))):
        tokens = Tokenizer(TokenizerOptions(char_ngram_range=(2, 10))).tokenize([text])
        expected = sum(
            1 + sum(max(len(part) + 3 - n, 0) for n in range(2, 11)) for part in text.split()
        )
        assert len(tokens.starts) == tokens.indptr[-1] == expected


def test_defaults_keep_every_word_and_repeated_bigrams():
    found = TextVectorizer().fit(TEXTS).vocabulary_
    assert found.terms == ["a", "bear", "brown", "eats", "fox", "red", "sleeps", "the"]
    found = TextVectorizer().fit([*TEXTS, "red fox"]).vocabulary_
    assert "red fox" in found.terms
    assert found.document_frequencies[found.terms.index("fox")] == 3


def test_an_n_gram_goes_with_its_words():
    texts = ["a b", "a b", "a c"]
    assert terms_of(*texts, min_df=3) == ["a"]
    assert terms_of(*texts, min_df=2) == ["a", "a b", "b"]


def test_every_code_point_is_what_unicode_says():
    unspaced = [is_unspaced(chr(c)) for c in range(0x110000)]
    of_category = {"L": 1, "N": 1, "M": 2}
    kinds = [of_category.get(unicodedata.category(chr(c))[0], 0) for c in range(0x110000)]
    assert np.array_equal(character_kinds(False), kinds)
    assert np.array_equal(character_kinds(), np.where(unspaced, 3, kinds))


# ---- hashes

KNOWN_SEED = 14695981039346656037  # what FNV-1a starts from; anyone can foresee it


def hash_known(words):
    """Return the hashes, under the known seed, of words that are rows of bytes."""
    value = np.full(len(words), KNOWN_SEED, np.uint64)
    for column in words.T:
        value = (value ^ column.astype(np.uint64)) * np.uint64(1099511628211)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        value = (value ^ (value >> np.uint64(shift))) * np.uint64(factor)
    return (value ^ (value >> np.uint64(31))) & np.uint64(0xFFFFFFFF)


def draw_words(n_words):
    letters = np.random.default_rng(0).integers(97, 123, (n_words, 8), dtype=np.uint8)
    return np.unique(letters.view("S8")).view(np.uint8).reshape(-1, 8)


def mean_probes(slots):
    """Return how many slots are read to find a word that is there."""
    held = np.flatnonzero(slots)
    home = (slots[held] >> np.uint64(32)).astype(np.int64) & (len(slots) - 1)
    return np.mean((held - home) % len(slots) + 1)


def test_words_with_equal_hashes_stay_apart(monkeypatch):
    """Among 300,000 words about ten share their 32 bits with another."""
    for module in ("interning", "builder"):
        monkeypatch.setattr(f"longtail.text.{module}.new_seed", lambda: np.uint64(KNOWN_SEED))
    words = draw_words(300_000)
    assert len(np.unique(hash_known(words))) < len(words)
    names = [bytes(word).decode() for word in words]
    texts = [" ".join(names[i::50]) for i in range(50)]
    builder = VocabularyBuilder(TokenizerOptions(ngram_range=(1, 1)))
    builder.add(texts)
    found, X = builder.finish()
    assert found.terms == names
    assert X.nnz == len(names)
    assert found.count(texts).nnz == len(names)


def test_words_chosen_to_collide_do_not():
    """Words that all begin their search in one slot under a known seed, under others.

    Also under seeds that share its low bits, or its high ones.
    """
    words = draw_words(2_000_000)
    words = words[hash_known(words) % 4096 == 0]
    starts = 8 * np.arange(len(words))
    probes = []
    for seed in (KNOWN_SEED, None, KNOWN_SEED ^ 1 << 63, KNOWN_SEED ^ 1 << 14, KNOWN_SEED ^ 1):
        table = InternTable()
        if seed is not None:
            table.tables = table.tables._replace(seed=np.uint64(seed))
        table.add(words.ravel(), starts, starts + 8)
        assert table.n_terms == len(words) > 400
        probes.append(mean_probes(table.tables.slots))
    assert probes[0] > 100
    assert max(probes[1:]) < 4


def test_bigrams_chosen_to_collide_do_not():
    """Under the multiplication alone that once hashed bigrams, these began in one row."""
    names = [f"w{i}" for i in range(300)]
    builder = VocabularyBuilder(TokenizerOptions())
    builder.add([" ".join(names)])
    builder.add([f"{a} {b}" for a in names[:60] for b in names[::9]])
    found, _ = builder.finish()
    rows = found.tables.ngrams
    held = np.flatnonzero(rows[:, 0] >= 0)
    assert len(held) > 2000
    runs = np.diff(np.flatnonzero(np.append(rows[:, 0] < 0, True)))
    assert runs.max() < 64  # occupied rows in a row; half of the table is free


def test_every_vocabulary_has_a_seed_of_its_own():
    seeds = {int(new_tables(0).seed) for _ in range(20)}
    assert len(seeds) == 20


def test_results_do_not_depend_on_the_seed(monkeypatch):
    found = []
    for seed in (0, 1, 2**64 - 1):
        for module in ("interning", "builder"):
            monkeypatch.setattr(f"longtail.text.{module}.new_seed", lambda s=seed: np.uint64(s))
        vectorizer = TextVectorizer(ngram_min_df=1, ngram_range=(1, 3))
        X = vectorizer.fit_transform(TEXTS)
        found.append((vectorizer.vocabulary_.utf8.tobytes(), X.indices.tolist(), X.data.tolist()))
    assert found[0] == found[1] == found[2]


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
    ours = TextVectorizer(ngram_range=(1, ngrams), ngram_min_df=1, ngram_weight=1, n_jobs=2)
    X = ours.fit_transform(texts)
    assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()
    assert (expected != X).nnz == 0
    assert (ours.transform(texts[:100]) != expected[:100]).nnz == 0


def test_same_character_ngrams_as_scikit_learn():
    texts = ["the bear eats", "a fox", "bears"]
    theirs = CountVectorizer(analyzer="char_wb", ngram_range=(3, 4))
    expected = theirs.fit_transform(texts)
    ours = TextVectorizer(ngram_range=(1, 1), char_ngram_range=(3, 4), ngram_min_df=1).fit(texts)
    terms = ours.get_feature_names_out()
    grams = [t for t in range(len(terms)) if terms[t].startswith("~")]
    # scikit-learn gives a word that is shorter than n once for each n; we only where it fits.
    assert set(theirs.get_feature_names_out()) == {terms[t][1:] for t in grams}
    assert np.array_equal(ours.transform(texts)[:, grams].toarray() > 0, expected.toarray() > 0)


def test_is_a_scikit_learn_transformer():
    vectorizer = TextVectorizer(ngram_range=(1, 1), n_jobs=2)
    assert clone(vectorizer).get_params() == vectorizer.get_params()
    pipeline = make_pipeline(vectorizer, NearestCentroid()).fit(TEXTS, [0, 0, 1, 1, 1])
    assert pipeline.predict(["brown bear", "red fox"]).tolist() == [0, 1]
    assert pipeline[:-1].get_feature_names_out().tolist() == vectorizer.vocabulary_.terms
    X = TextVectorizer(ngram_range=(1, 1)).fit_chunks([TEXTS[:2], np.array(TEXTS[2:])])
    assert (vectorizer.transform(TEXTS) != X).nnz == 0
    assert X.dtype == np.float64


@pytest.mark.parametrize(
    "options",
    [
        {"min_df": 2},
        {"min_df": 0.1},
        {"max_df": 0.3},
        {"max_df": 3},
        {"lowercase": False},
        {"stop_words": "english"},
        {"stop_words": ["bear", "the"], "ngram_range": (1, 3)},
        {"token_pattern": r"\b[a-z]{3,}\b"},
        {"token_pattern": r"(\w)\w+"},
        {"tokenizer": str.split, "token_pattern": None},
        {"max_features": 2, "ngram_range": (1, 1)},
    ],
)
def test_options_are_those_of_count_vectorizer(options):
    texts = [*TEXTS, "The red bear sees THE fox", "foxes and the bears", "so it goes"]
    plain = {"ngram_range": (1, 2)} | options
    theirs = CountVectorizer(**{"token_pattern": r"[^\W_]+"} | plain)
    expected = theirs.fit_transform(texts)
    # Limits of frequency are ours for n-grams as well; an n-gram goes with its words.
    ours = TextVectorizer(ngram_min_df=plain.get("min_df", 1), ngram_weight=1, **plain)
    X = ours.fit_transform(texts)
    names = ours.get_feature_names_out().tolist()
    kept = [t for t in theirs.get_feature_names_out() if set(t.split()) <= set(names)]
    assert names == kept
    columns = [theirs.vocabulary_[name] for name in names]
    assert np.array_equal(X.toarray(), expected[:, columns].toarray())
    if "max_df" not in options:
        assert len(names) == len(theirs.vocabulary_)


def test_max_features_keeps_words_before_their_n_grams():
    texts = ["red fox", "red fox", "red fox", "brown bear"]
    assert terms_of(*texts, max_features=2) == ["fox", "red"]
    assert terms_of(*texts, max_features=3) == ["fox", "red", "red fox"]
    assert len(terms_of(*texts, max_features=100)) == 6


def test_words_of_a_tokenizer_are_told_from_n_grams():
    found = terms_of("x", tokenizer=lambda text: ["new york", "~tilde", "", "a\nb", "\ud800"])
    assert "new_york" in found
    assert "∼tilde" in found
    assert "a_b ?" in found
    assert found == sorted(found, key=str.encode)


def test_stop_words_that_are_no_word_are_named():
    with pytest.warns(UserWarning, match='1 entries that are not one word.*"don\'t"'):
        found = terms_of("we don't", stop_words=["don't", "we"], ngram_range=(1, 1))
    assert found == ["don", "t"]


def test_vocabulary_is_a_mapping():
    found = TextVectorizer(ngram_min_df=1, ngram_range=(1, 3)).fit(TEXTS).vocabulary_
    assert isinstance(found, Mapping)
    assert found == {term: i for i, term in enumerate(found.terms)}
    assert found["a brown bear"] == found.terms.index("a brown bear")
    assert list(found) == found.terms
    assert len(found) == found.n_terms
    for other in ("zebra", "", "bear the", "a brown bear eats", " ", "~", "a ", " a", "\ud800", 7):
        assert other not in found


def test_a_vocabulary_is_pickled_without_its_tables():
    found = TextVectorizer().fit(TEXTS).vocabulary_
    before = pickle.dumps(found)
    assert found.count(["the bear"]).nnz
    assert pickle.dumps(found) == before
    assert pickle.loads(before) == found
    assert pickle.loads(before).count(TEXTS).nnz == found.count(TEXTS).nnz


def test_one_token_can_be_the_longest_possible():
    """Capacity suffices where every character begins a token of its own."""
    for text in ("aあ" * 50, "あ" * 99, "あ\u0301" * 50, "a b" * 40, "語", "a", "あa", "𠀀" * 30):
        for texts in ([text], [text] * 3, ["", text, ""]):
            X = TextVectorizer(ngram_min_df=1, char_ngram_range=(2, 3)).fit_transform(texts)
            assert X.shape[0] == len(texts)


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
        ([], "texts must have a document at least; there is none"),
        ({"a"}, "got a set, whose order is not that of documents"),
        (["...", ""], "so the vocabulary is empty. Lower"),
    ],
)
def test_bad_texts(texts, message):
    with pytest.raises(ValueError, match=message):
        TextVectorizer().fit(texts)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ngram_range": 2}, r"ngram_range must be two integers \(1, n\)"),
        ({"ngram_range": (2, 2)}, r"ngram_range must begin at 1.*got \(2, 2\). Use \(1, 2\)"),
        ({"min_df": 0}, r"min_df must be an integer of at least 1 \(documents\) or a float.*got 0"),
        ({"min_df": True}, "min_df must be an integer"),
        ({"ngram_min_df": 1.5}, "ngram_min_df must be an integer .* share of the documents.*1.5"),
        ({"max_df": -0.5}, "max_df must be an integer"),
        ({"max_df": 1, "min_df": 2}, "max_df=1 must not be less than min_df=2"),
        ({"max_features": 0}, "max_features must be None or an integer of at least 1; got 0"),
        ({"strip_accents": "ascii"}, "strip_accents must be 'unicode' or None; got 'ascii'"),
        ({"lowercase": 1}, "lowercase must be True or False; got 1"),
        ({"stop_words": "german"}, "stop_words must be None, 'english' or a collection"),
        ({"stop_words": [1]}, "stop_words must hold strings"),
        ({"token_pattern": "("}, "token_pattern must be a regular expression; got '\\('"),
        ({"token_pattern": "(a)(b)"}, "token_pattern must have at most one group; .* has 2"),
        ({"token_pattern": 7}, "token_pattern must be a regular expression or None; got 7"),
        ({"tokenizer": "split"}, "tokenizer must be a callable .*; got 'split'"),
        ({"tokenizer": str.split, "token_pattern": "a"}, "either token_pattern or tokenizer"),
        ({"tokenizer": str.split, "stem": True}, "stem=True needs the default tokenizer"),
        ({"tokenizer": lambda text: [7]}, "tokenizer must return strings; got 7 of type int"),
        ({"char_ngram_range": 3}, "char_ngram_range must be None or two integers"),
        ({"char_ngram_range": (5, 4)}, r"2 <= shortest <= longest, such as \(4, 5\); got \(5, 4\)"),
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
    return Vocabulary(**{**parts, **arrays}, options=TokenizerOptions())


def test_a_vocabulary_from_arrays():
    found = make_vocabulary("bear", "a", "a bear", "~ be")
    check_vocabulary(found)
    assert found.count(["a bear"]).toarray().tolist() == [[1, 1, 0.5, 0]]


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (make_vocabulary("a", "b", "a"), "'a' is in the vocabulary twice"),
        (make_vocabulary("a", "b", "a b", "a b"), "'a b' is in the vocabulary twice"),
        (make_vocabulary("a", "a b"), "an n-gram of words that are not all in it"),
        (make_vocabulary("a", "b", "a  b"), "not all in it"),
        (make_vocabulary("a", " a"), "not all in it"),
    ],
)
def test_terms_that_cannot_be_looked_up(found, message):
    with pytest.raises(ValueError, match=message):
        _ = found.tables


def test_normalise():
    assert normalise("Ångström, ﬁne, Straße, 5 km²") == "angstrom, fine, strasse, 5 km2"
    assert normalise("Й", strip_accents=None) == "й"


def test_vocabularies_that_grow_from_one_another_do_not_disturb_each_other():
    texts = ["red fox", "red fox runs", "the owl hoots", "the owl hoots at a red fox"]
    root = TextVectorizer(ngram_min_df=1).fit(["red fox"]).vocabulary_
    before = root.count(texts).toarray()
    left = extend_vocabulary(root, ["the owl hoots"])
    right = extend_vocabulary(root, ["fox runs", "a red owl"])  # root was extended already
    longer = extend_vocabulary(left, ["owl hoots at"])
    assert left.shared_tables is root.shared_tables is longer.shared_tables
    assert right.shared_tables is not root.shared_tables
    assert np.array_equal(root.count(texts).toarray(), before)
    assert "owl" not in root
    for grown in (root, left, right, longer):
        rebuilt = Vocabulary(
            grown.utf8.copy(), grown.offsets.copy(), grown.document_frequencies, grown.options
        )
        check_vocabulary(rebuilt)
        assert np.array_equal(grown.weights, rebuilt.weights)
        assert (grown.count(texts) != rebuilt.count(texts)).nnz == 0
        assert list(grown)[: len(root)] == list(root)


def test_a_vocabulary_grows_beyond_its_tables():
    grown = root = TextVectorizer().fit(["one word"]).vocabulary_
    for i in range(40):
        grown = extend_vocabulary(grown, [" ".join(f"w{i}x{j}" for j in range(40))])
    assert grown.shared_tables is not root.shared_tables
    assert grown.n_terms == root.n_terms + 40 * (40 + 39)
    assert all(grown[term] == i for i, term in enumerate(grown.terms))


@pytest.mark.parametrize("weight", [0.5, 1.0, 2.0**-40])
@pytest.mark.parametrize("n_texts", [0, 1, 3])
def test_counts_for_kernels_are_those_for_scipy(weight, n_texts):
    texts = ["a brown bear climbs a tree", "a tree, a bear", ""]
    vectorizer = TextVectorizer(ngram_min_df=1, ngram_weight=weight).fit(texts)
    given = texts[:n_texts]
    found = count_for_kernels(vectorizer.vocabulary_, given, None)
    expected = CountMatrix.from_matrix(vectorizer.vocabulary_.count(given))
    for ours, theirs in zip(found.arrays, expected.arrays, strict=True):
        assert ours.dtype == theirs.dtype
        assert np.array_equal(ours, theirs)
