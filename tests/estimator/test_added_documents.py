"""A document is subtracted as it was counted when added, though the vocabulary grew since."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail import ModelFileError, Teacher, TextClassifier, load
from longtail.estimators.added_documents import AddedDocuments
from longtail.store import open_model, write_model
from longtail.text import TextVectorizer
from tests.conftest import examples

TEXTS = ["a brown bear", "bears eat honey", "the red fox", "a fox runs", "the grey wolf", "a wolf"]
LABELS = ["bear", "bear", "fox", "fox", "wolf", "wolf"]


def fit(**options):
    return TextClassifier(random_state=0, **options).fit(TEXTS, LABELS)


def assert_same_sums(model, other):
    """Equal sums by term and class; the order in which terms entered may differ."""

    def sums(m):
        terms, s = m.vocabulary_.terms, m.statistics_
        rows = np.repeat(np.arange(s.n_classes), np.diff(s.indptr))
        counts = s.counts * 2.0**-s.count_bits
        entries = zip(rows.tolist(), s.indices.tolist(), counts, s.centroid_sums, strict=True)
        found = {(m.classes_[c], terms[t]): (n, w) for c, t, n, w in entries}
        present = {t: df for t, df in zip(terms, s.document_frequencies, strict=True) if df}
        return found, present, dict(zip(m.classes_, s.class_sizes, strict=True))

    assert sums(model) == sums(other)


@pytest.mark.parametrize("remember", [False, True])
def test_refine_after_ordinary_teaching(tmp_path, remember):
    """The taught text brings pairs of words in that a text of the fit has as well."""
    fit(remember_documents=remember).save(tmp_path / "model")
    teacher = Teacher(tmp_path / "model")
    taught = "a brown bear climbs a tree"
    teacher.teach([taught], ["bear"])
    assert "a brown" in teacher.model.vocabulary_.terms
    teacher.compact()
    model = load(tmp_path / "model")
    model.refine([*TEXTS, taught], [*LABELS, "bear"])
    model.forget(TEXTS[:1], LABELS[:1])
    model.forget([taught], ["bear"])
    assert_same_sums(model, fit().forget(TEXTS[:1], LABELS[:1]))


def test_the_same_text_fitted_and_taught():
    model = fit()
    model.partial_fit(TEXTS[:1], LABELS[:1])
    model.forget(TEXTS[:1] * 2, LABELS[:1] * 2)
    assert_same_sums(model, fit().forget(TEXTS[:1], LABELS[:1]))


def test_the_same_text_taught_to_another_class():
    model = fit()
    model.partial_fit([TEXTS[0], "a brown bear again"], ["wolf", "bear"])
    model.forget(TEXTS[:1], ["bear"])  # the one of the fit, though its class has all its terms
    model.forget(["a brown bear again", TEXTS[0]], ["bear", "wolf"])
    assert_same_sums(model, fit().forget(TEXTS[:1], ["bear"]))


def test_the_register_follows_the_classes(tmp_path):
    model = fit()
    model.partial_fit(["a brown bear sits", "an owl"], ["bear", "aardvark"])  # ids shift
    model.rename_class("bear", "zebra").merge_classes("zebra", "fox").forget(
        ["an owl"], ["aardvark"]
    )
    model.save(tmp_path / "model")
    model = load(tmp_path / "model").forget(["a brown bear sits"], ["fox"])
    expected = fit().rename_class("bear", "zebra").merge_classes("zebra", "fox")
    assert_same_sums(model, expected)
    assert len(model.state_.added.settle(model.state_.overlay).class_ids) == 0


words = st.sampled_from(["bear", "fox", "owl", "red", "eats"])
texts = st.lists(words, min_size=1, max_size=4).map(" ".join)
documents = st.tuples(texts, st.sampled_from(["bear", "fox", "wolf"]))


@given(st.lists(st.lists(documents, min_size=1, max_size=3), max_size=4), st.booleans(), st.data())
@examples(40)
def test_any_order_of_teaching_and_forgetting(batches, remember, data):
    """What is left is what was fitted: forget all that was taught, in any order."""
    model = fit(remember_documents=remember)
    taught = list(zip(TEXTS[:2], LABELS[:2], strict=True))
    for batch in batches:
        model.partial_fit(*map(list, zip(*batch, strict=True)))
        taught.extend(batch)
    everything = [*taught, *zip(TEXTS[2:], LABELS[2:], strict=True)]
    model.refine(*map(list, zip(*everything, strict=True)))
    for document in data.draw(st.permutations(taught)):
        model.forget([document[0]], [document[1]])
    assert_same_sums(model, fit().forget(TEXTS[:2], LABELS[:2]))


# ---- documents that were never added


def test_remembered_documents_tell_every_stranger():
    pool = ["bear", "fox", "wolf", "honey", "red", "grey", "eat"]
    model = fit(remember_documents=True, vectorizer=TextVectorizer(ngram_range=(1, 1)))
    model.partial_fit(["bear honey", "red red fox"], ["bear", "fox"])
    known = {*zip(TEXTS, LABELS, strict=True), ("bear honey", "bear"), ("red red fox", "fox")}
    # A text is its counts: the order of its words, and words that no document has, do not matter.
    known = {(" ".join(sorted(text.split())), label) for text, label in known}
    for pair in itertools.product(pool, repeat=2):
        for label in ("bear", "fox", "wolf"):
            if (" ".join(sorted(pair)), label) not in known:
                with pytest.raises(ValueError, match="document 0 was never added to its class"):
                    model.forget([" ".join(pair)], [label])
    with pytest.raises(ValueError, match="document 1 was never added"):
        model.refine(["bear honey", "bear honey"], ["bear", "bear"])
    model.forget(["honey bear"], ["bear"])
    with pytest.raises(ValueError, match="or was forgotten"):
        model.forget(["bear honey"], ["bear"])


# ---- files


@pytest.mark.parametrize("remember", [False, True])
def test_the_register_is_in_the_file(tmp_path, remember):
    fit(remember_documents=remember).partial_fit(["a brown bear sits"], ["bear"]).save(
        tmp_path / "model"
    )
    model = load(tmp_path / "model")
    assert model.remember_documents is remember
    assert len(model.state_.added.class_ids) == (7 if remember else 1)
    model.forget(["a brown bear", "a brown bear sits"], ["bear", "bear"])


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("hashes", lambda a: a[:, :1], "must have the shape"),
        ("hashes", lambda a: a.astype(np.int64), "must be uint64"),
        ("hashes", lambda a: a[::-1].copy(), "must be not falling"),
        ("class_ids", lambda a: a[:-1], "must have the shape"),
        ("class_ids", lambda a: a + 3, "must be from 0 to 2"),
        ("class_ids", lambda a: a - 3, "must be from 0 to 2"),
    ],
)
def test_hostile_registers(tmp_path, name, change, message):
    fit(remember_documents=True).save(tmp_path / "model")
    file = open_model(tmp_path / "model")
    arrays = {**file.arrays, f"added/{name}": change(np.array(file.arrays[f"added/{name}"]))}
    write_model(tmp_path / "hostile", file.kind, file.parameters, arrays)
    with pytest.raises(ModelFileError, match=message):
        load(tmp_path / "hostile")


def test_an_empty_register_finds_nothing():
    empty, overlay = AddedDocuments.empty(), fit().state_.overlay
    assert empty.count(np.ones(2, np.uint64), 0, overlay) == 0
    assert len(empty.settle(overlay).class_ids) == 0
