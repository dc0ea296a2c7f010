"""Changes that are replayed together must leave the same bits as one by one, or the same error."""

from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from longtail import LongTailClassifier, TextClassifier
from longtail.scoring.linear import ClassResiduals
from longtail.store.changes import Change, pack_counts
from longtail.teaching import replay as replaying
from longtail.teaching.replay import ReplayError, copy_model, replay
from longtail.teaching.runs import split_runs
from longtail.text import extend_vocabulary
from longtail.text.entering import enter_in_turn
from longtail.training import long_tail_editing, ordered_editing
from tests.conftest import examples

# Of the fit; of its words but not of it; with words that come later; the same words again.
FITTED = [(f"bear {word} honey", "bear") for word in ("eats", "wants", "has")]
FITTED += [(f"fox {word} goose", "fox") for word in ("eats", "wants")] + [("owl hoots", "owl")]
TEXTS = [text for text, _ in FITTED] + ["bear goose", "Owl  hoots", "newt eats", "newt has gills"]
TEXTS += ["Newt EATS", "eats newt", "gills", "bear gills honey", "axolotl newt gills"]
pairs = st.tuples(st.sampled_from(TEXTS), st.sampled_from(["bear", "fox", "owl", "a newt", "axo"]))
documents = st.lists(pairs, min_size=1, max_size=2)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("teach"), documents),
        st.tuples(st.just("teach"), documents),
        st.tuples(st.just("forget"), documents),
        st.tuples(st.just("forget again"), st.integers(0, 9)),
        st.tuples(st.just("forget again"), st.integers(0, 9)),
        st.tuples(st.just("remove"), st.sampled_from(["bear", "axo"])),
    ),
    min_size=2,
    max_size=14,
)


def fit(kind):
    texts, y = zip(*FITTED, strict=True)
    counts = LongTailClassifier(memory=2 if kind == "memory" else 0, random_state=0)
    model = TextClassifier(counts, random_state=0, remember_documents=kind == "register")
    named = {"owl": "a bird", "axo": "axolotl"} if kind == "names" else None
    model.fit(list(texts), np.array(y), class_texts=named)
    n_classes = len(model.classes_)  # six documents teach no residuals, which must move as well
    residuals = ClassResiduals(
        np.arange(n_classes + 1),
        np.arange(n_classes, dtype=np.int32),
        np.linspace(0.1, 0.2, n_classes, dtype=np.float32),
        np.linspace(0.3, 0.4, n_classes),
    )
    model._state = replace(model._state, model=replace(model.state_.model, residuals=residuals))
    return model


MODELS = {kind: fit(kind) for kind in ("plain", "memory", "register", "names")}


def as_changes(content):
    """Turn steps into changes; `forget again` takes a document that was taught or fitted."""
    changes, there = [], list(FITTED)
    for number, (action, argument) in enumerate(content, 1):
        if action == "remove":
            changes.append(Change(number, "", None, action, ({"label": argument},)))
            continue
        given_pairs = [there[-1 - argument % len(there)]] if action == "forget again" else argument
        if action == "teach":
            there += given_pairs
        texts, labels = zip(*given_pairs, strict=True)
        batch = {"documents": list(texts), "labels": list(labels)}
        changes.append(Change(number, "", None, action.split()[0], (batch,)))
    return changes


def outcome(replay_all, model, changes):
    """Return the model, or which change is refused."""
    try:
        return replay_all(copy_model(model), changes)
    except ReplayError as error:
        return error.change.number


def one_by_one(model, changes):
    for change in changes:
        model = replay(model, [change])
    return model


def parts_of(model):
    """Return everything that changes change, as arrays."""
    state = long_tail_editing.merge_segments(model.classifier_._state)
    vocabulary, register = model.vocabulary_, model._state.added
    parts = {
        "classes": state.classes,
        "stale": state.stale,
        "terms": np.array(vocabulary.terms),
        "term frequencies": vocabulary.document_frequencies,
        "hashes": register.hashes,
        "hashed classes": register.class_ids,
    }
    for name in ("indptr", "indices", "weights", "biases"):
        parts[f"residual {name}"] = getattr(state.residuals, name)
    for name in ("indptr", "indices", "counts", "centroid_sums", "class_sizes"):
        parts[name] = getattr(state.statistics, name)
    parts["document frequencies"] = state.statistics.document_frequencies
    if state.memory is not None:
        for name in ("indptr", "indices", "data", "class_ids", "n_changed"):
            parts[f"memory {name}"] = np.asarray(getattr(state.memory, name))
    found = model.predict_proba_topk(TEXTS, k=3)
    return parts | {"predicted": found.classes, "probabilities": found.scores}


@contextmanager
def capacity(n_classes):
    """Let the delta segment hold so many classes."""
    before = long_tail_editing.DELTA_CAPACITY
    modules = long_tail_editing, ordered_editing
    for module in modules:
        module.DELTA_CAPACITY = n_classes
    yield
    for module in modules:
        module.DELTA_CAPACITY = before


@examples(150)
@example([("teach", [("newt eats", "fox")]), ("forget again", 0)], "plain", 256)
@example([("forget again", 0), ("teach", [("owl hoots", "owl")])], "plain", 1)  # comes back
@example([("forget", [("gills", "owl")]), ("teach", [("gills", "owl")])], "plain", 256)  # too early
@example([("forget", [("goose", "bear")]), ("teach", [("goose", "bear")])], "plain", 1)
@example([("remove", "bear"), ("forget", [FITTED[3]]), ("teach", [("gills", "owl")])], "plain", 256)
@example([("forget", [FITTED[2]]), ("teach", [("gills", "bear")])], "memory", 256)
@example([("forget", [FITTED[2]]), ("teach", [("gills", "bear")])], "memory", 1)
@example([("teach", [("newt", "fox")]), ("forget", [("newt gills", "fox")])], "plain", 256)
@given(steps, st.sampled_from(list(MODELS)), st.sampled_from([1, 3, 256]))
def test_together_is_one_by_one(content, kind, n_classes):
    changes = as_changes(content)
    with capacity(n_classes):
        together = outcome(replay, MODELS[kind], changes)
        single = outcome(one_by_one, MODELS[kind], changes)
        if isinstance(single, int):
            assert together == single
            return
        mine, theirs = parts_of(together), parts_of(single)
    assert mine.keys() == theirs.keys()
    for name, values in mine.items():
        assert values.dtype == theirs[name].dtype, name
        assert np.array_equal(values, theirs[name]), name


@examples(40)
@given(steps, st.sampled_from([1, 256]))
def test_counts_together_are_counts_one_by_one(content, n_classes):
    texts = MODELS["plain"]
    changes = []
    for change in as_changes(content):
        if change.action == "remove":
            changes.append(change)
            continue
        X = texts.vocabulary_.count(change.content["documents"])
        batch = {"documents": pack_counts(X), "labels": change.labels}
        changes.append(Change(change.number, "", None, change.action, (batch,)))
    with capacity(n_classes):
        together = outcome(replay, texts.classifier_, changes)
        single = outcome(one_by_one, texts.classifier_, changes)
    if isinstance(single, int):
        assert together == single
        return
    assert together.classes_.tolist() == single.classes_.tolist()
    assert together.statistics_ == single.statistics_
    probe = texts.vocabulary_.count(TEXTS)
    mine, theirs = together.predict_topk(probe, 3), single.predict_topk(probe, 3)
    assert np.array_equal(mine.scores, theirs.scores)


@given(st.lists(st.tuples(st.lists(st.sampled_from(TEXTS), min_size=1), st.booleans())))
@examples(50)
def test_terms_enter_in_turn(changes):
    before = vocabulary = MODELS["plain"].vocabulary_
    rows = []
    for texts, brings in changes:
        if brings:
            vocabulary = extend_vocabulary(vocabulary, texts)
        rows += [dict(row) for row in entries_of(vocabulary.count(texts))]
    texts = [text for given_texts, _ in changes for text in given_texts]
    n_texts = [len(given_texts) for given_texts, _ in changes]
    turns = np.repeat(np.arange(len(changes)), n_texts)
    brings = np.repeat(np.array([brings for _, brings in changes], np.bool_), n_texts)
    grown, X = enter_in_turn(before, texts, turns, brings)
    assert grown.terms == vocabulary.terms
    assert np.array_equal(grown.document_frequencies, vocabulary.document_frequencies)
    assert [dict(row) for row in entries_of(X)] == rows
    assert X.has_canonical_format
    assert [grown[term] for term in grown.terms] == list(range(grown.n_terms))


def entries_of(X):
    """Yield (term, count) pairs of each row."""
    for first, last in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        yield zip(X.indices[first:last].tolist(), X.data[first:last].tolist(), strict=True)


def test_a_mix_is_one_run_until_a_class_comes_back(monkeypatch):
    content = [("teach", [("newt eats", "fox")]), ("forget again", 0)] * 5
    changes = as_changes(content)
    assert [len(run) for run in split_runs(MODELS["plain"], changes)] == [10]
    calls = []
    real = replaying.apply_run
    monkeypatch.setattr(
        replaying, "apply_run", lambda m, run: (calls.append(len(run)), real(m, run))
    )
    replay(copy_model(MODELS["plain"]), changes)
    assert calls == [10]
    calls.clear()
    forgotten = [("forget", [("owl hoots", "owl")]), ("teach", [("owl hoots", "owl")])]
    replay(copy_model(MODELS["plain"]), as_changes([*content, *forgotten, *content]))
    assert calls == [22, 11, 11]  # refused, before the owl comes back, and after


@pytest.mark.parametrize("kind", list(MODELS))
def test_a_change_that_does_not_fit_is_named(kind):
    content = [("teach", [("newt eats", "fox")])] * 6 + [("forget", [("no such text", "axo")])]
    with pytest.raises(ReplayError) as refused:
        replay(copy_model(MODELS[kind]), as_changes([*content, *content]))
    assert refused.value.change.number == 7
