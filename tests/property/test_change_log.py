"""A taught model is its file and the set of live changes, whatever was undone in which order."""

import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from longtail import LongTailClassifier, Teacher, TextClassifier, load
from longtail.model import overlay
from tests.conftest import examples

FITTED = [(f"bear {word} honey", "bear") for word in ("eats", "wants", "has")]
FITTED += [(f"fox {word} goose", "fox") for word in ("eats", "wants")] + [("owl hoots", "owl")]
TEXTS = [text for text, _ in FITTED] + ["bear goose", "Owl  hoots", "newt eats", "newt has gills"]
TEXTS += ["Newt EATS", "eats newt", "gills", "bear gills honey", "axolotl newt gills"]
LABELS = ["bear", "fox", "owl", "a newt", "axo"]
pairs = st.lists(st.tuples(st.sampled_from(TEXTS), st.sampled_from(LABELS)), min_size=1, max_size=2)
names = st.sampled_from(LABELS)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("teach"), pairs),
        st.tuples(st.just("teach"), pairs),
        st.tuples(st.just("forget"), pairs),
        st.tuples(st.just("forget again"), st.integers(0, 9)),
        st.tuples(st.just("rename_class"), names, names),
        st.tuples(st.just("merge_classes"), names, names),
        st.tuples(st.just("remove_class"), names),
        st.tuples(st.just("set_class_text"), names, st.sampled_from(["gills of a newt", ""])),
        st.tuples(st.just("undo"), st.integers(1, 9)),
        st.tuples(st.just("undo"), st.integers(1, 9)),
        st.just(("refine",)),
        st.just(("refresh",)),
    ),
    max_size=9,
)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A model with a register, one with names and documents kept, and one with neither."""
    folder = tmp_path_factory.mktemp("fitted")
    texts, y = zip(*FITTED, strict=True)
    for kind in ("plain", "register", "names"):
        counts = LongTailClassifier(memory=2 if kind == "names" else 0, random_state=0)
        model = TextClassifier(counts, random_state=0, remember_documents=kind == "register")
        named = {"owl": "a bird", "axo": "axolotl"} if kind == "names" else None
        model.fit(list(texts), np.array(y), class_texts=named).save(folder / kind)
    return folder


def perform(teacher, taught, step):
    """Do a step; what is refused must change nothing. Return whether it was done."""
    action, *arguments = step
    if action == "refresh":
        return
    if action == "forget again":
        action, arguments = "forget", [[taught[arguments[0] % len(taught)]]]
    if action == "undo":
        call, given = (lambda number: teacher.undo(numbers=[number])), arguments
    elif action in ("teach", "forget"):
        call, given = getattr(teacher, action), [list(x) for x in zip(*arguments[0], strict=True)]
    else:
        call, given = getattr(teacher, action), arguments
    before = teacher.model
    try:
        call(*given)
    except ValueError:
        assert teacher.model is before
        return
    if action == "teach":
        taught.extend(arguments[0])


def parts_of(model):
    """Everything that changes change, by label and term, without what depends on ids alone."""
    statistics, terms = model.statistics_, np.array(model.vocabulary_.terms)
    rows = np.repeat(np.arange(statistics.n_classes), np.diff(statistics.indptr))
    entries = zip(
        model.classes_[rows].tolist(),
        terms[statistics.indices].tolist(),
        (statistics.counts * 2.0**-statistics.count_bits).tolist(),
        statistics.centroid_sums.tolist(),
        strict=True,
    )
    there = statistics.document_frequencies > 0
    frequencies = statistics.document_frequencies[there].tolist()
    return {
        "sizes": dict(zip(model.classes_.tolist(), statistics.class_sizes.tolist(), strict=True)),
        "sums": sorted(entries),
        "frequencies": dict(zip(terms[there].tolist(), frequencies, strict=True)),
        "texts": model.class_texts_,
    }


def predictions_of(model):
    found = [model.predict_topk(TEXTS, 3), model.predict_proba_topk(TEXTS, 3)]
    return [array.tolist() for top in found for array in (top.classes, top.scores)]


NEWT = [("newt has gills", "a newt"), ("gills", "owl")]
DESCRIBE = ("set_class_text", "owl", "gills of a newt")  # in the idf of what was learned last
REMOVE, TEACH = ("remove_class", "fox"), ("teach", NEWT)  # frequencies are not cut off for good
RENAME = ("rename_class", "fox", "axo")  # in the base once what was learned was put together anew

FOX = [  # a class that comes again is another one where the base was put together anew
    *[("teach", NEWT), ("refine",), ("remove_class", "fox"), ("undo", 1)],
    *[("teach", FITTED[3:5]), ("undo", 5), ("refresh",), ("teach", FITTED[3:5])],
]
STRANGER = [  # the last one was forgotten before; the sums of its class have its terms from others
    ("forget", [FITTED[3]]),
    ("teach", [("bear has honey", "owl"), ("gills", "axo"), ("gills", "a newt")]),
    ("forget", [FITTED[5]]),
    ("teach", [("newt eats", "fox"), ("bear wants honey", "bear")]),
    ("forget", [FITTED[3]]),
]


@examples(80)
@given(steps, st.sampled_from(["plain", "register", "names"]), st.sampled_from([1, 256]))
@example([("teach", NEWT), ("refine",), ("undo", 1), DESCRIBE], "plain", 256)
@example([("teach", NEWT), ("refine",), DESCRIBE, ("undo", 1)], "plain", 256)
@example([("refine",)] * 2 + [REMOVE, ("remove_class", "bear"), ("undo", 1), TEACH], "plain", 256)
@example([("teach", NEWT), ("refine",), RENAME, ("undo", 1), ("undo", 3)], "plain", 256)
@example(STRANGER, "plain", 256)
@example(FOX, "plain", 256)
def test_teacher_and_opened_and_saved_are_the_same_bits(fitted, content, kind, small):
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        patched.setattr(overlay, "SMALL_TIER", small)
        path = Path(shutil.copy(fitted / kind, Path(folder) / "model"))
        teacher, taught, other = Teacher(path), list(FITTED), Teacher(path)
        for step in content:
            perform(teacher, taught, step)
            if step == ("refresh",):
                other.refresh()
        other.refresh()
        model = teacher.model
        for opened in (load(path), other.model):
            assert parts_of(opened) == parts_of(model)
            assert predictions_of(opened) == predictions_of(model)
        model.save(Path(folder) / "saved")
        saved = load(Path(folder) / "saved")
        assert parts_of(saved) == parts_of(model)
        assert predictions_of(saved) == predictions_of(model)
        explained = model.explain(TEXTS[:4]), saved.explain(TEXTS[:4])
        assert [e.score for e in explained[0]] == [e.score for e in explained[1]]


def test_a_class_that_was_empty_at_a_refine_keeps_what_it_was_taught_since(fitted, tmp_path):
    teacher = Teacher(shutil.copy(fitted / "plain", tmp_path / "model"))
    fox = [list(x) for x in zip(*FITTED[3:5], strict=True)]
    teacher.forget(*fox)
    teacher.refine()
    undone = teacher.undo(numbers=[1])
    teacher.teach(*fox)  # the same class as before
    teacher.undo(numbers=[undone])  # its first documents are forgotten again
    for model in (teacher.model, load(tmp_path / "model")):
        assert parts_of(model)["sizes"] == {"bear": 3, "fox": 2, "owl": 1}
        assert model.predict(["fox goose"]).tolist() == ["fox"]


@examples(60)
@given(st.lists(pairs, min_size=1, max_size=6), st.data())
def test_live_changes_alone_make_the_model(fitted, batches, data):
    """Whatever was taught and undone, in any order: the model is what is left would make it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(shutil.copy(fitted / "plain", Path(folder) / "model"))
        teacher = Teacher(path)
        numbers = [teacher.teach(*map(list, zip(*batch, strict=True))) for batch in batches]
        undone = data.draw(st.lists(st.sampled_from(numbers), unique=True))
        for number in undone:
            teacher.undo(numbers=[number])
        expected = load(fitted / "plain")
        left = [batch for n, batch in zip(numbers, batches, strict=True) if n not in undone]
        for batch in data.draw(st.permutations(left)):
            expected.partial_fit(*map(list, zip(*batch, strict=True)))
        assert parts_of(teacher.model) == parts_of(expected)
        for mine, theirs in zip(
            predictions_of(teacher.model), predictions_of(expected), strict=True
        ):
            assert mine == theirs


sets = st.lists(st.sampled_from("abcd"), min_size=1, max_size=3, unique=True)
rows = st.lists(st.integers(0, 2), min_size=6, max_size=6).filter(any)


@examples(40)
@given(st.lists(st.tuples(rows, sets), min_size=1, max_size=5), st.data())
def test_label_sets_are_undone_in_any_order(documents, data):
    X = np.array([[2, 1, 0, 0, 0, 1], [0, 2, 1, 0, 0, 0], [0, 0, 0, 3, 1, 0]], float)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model = LongTailClassifier(multilabel=True, random_state=0)
        model.fit(X, [["a", "b"], ["b"], ["c"]]).save(path)
        teacher, kept = Teacher(path), []
        for row, labels in documents:
            kept.append((teacher.teach(np.array([row], float), [labels]), row, labels))
        for number in data.draw(st.lists(st.sampled_from([n for n, _, _ in kept]), unique=True)):
            teacher.undo(numbers=[number])
            kept = [entry for entry in kept if entry[0] != number]
        expected = load(shutil.copy(path, Path(folder) / "alone"))
        for _, row, labels in reversed(kept):
            expected.partial_fit(np.array([row], float), [labels])
        for model in (teacher.model, load(path)):
            assert model.classes_.tolist() == expected.classes_.tolist()
            assert model.statistics_ == expected.statistics_
            mine, theirs = model.predict_topk(X, 3), expected.predict_topk(X, 3)
            assert mine.scores.tolist() == theirs.scores.tolist()
