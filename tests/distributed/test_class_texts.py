"""Class texts over partitions: the bits of a plain fit, for counts and texts, one label or several.

Every twentieth document is the only one of its class: of named classes these may all be held out,
so that what a class without documents gets is learned.
"""

from __future__ import annotations

import functools
import json
import multiprocessing
import re
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
from scipy.sparse import csr_array

from longtail import DoubleSamplingClassifier, LongTailClassifier, TextClassifier
from longtail.datasets import Table
from longtail.distributed import MemoryLimitError, fit_partitions, memory_plan
from longtail.text import TextVectorizer
from longtail.training import mixture
from tests.distributed import data

LONELY, UNSEEN = 10_000, 20_000  # labels of classes of one document, and of those with none


@functools.cache
def counts():
    X, y = data.counts()
    y = y.copy()
    y[::20] = LONELY + np.arange(len(y[::20]))
    return X, y


def part(first, last):
    X, y = counts()
    return X[first:last], y[first:last]


@functools.cache
def label_sets():
    """Two labels where documents are joined in pairs; one where they are not; a few have none."""
    _, y = counts()
    joined, sets = data.label_sets()
    spelled = {f"class {old}": int(old) for old in data.counts()[1]}
    labels = [[spelled[label] for label in own] for own in sets]
    labels[::20] = [sorted({*own, int(y[20 * i])}) for i, own in enumerate(labels[::20])]
    return joined, labels


def sets_part(first, last):
    X, y = label_sets()
    return X[first:last], y[first:last]


def indicator_part(first, last):
    X, y = label_sets()
    rows = [row for row in range(first, last) for _ in y[row]]
    columns = [c for own in y[first:last] for c in own]
    entries = np.ones(len(rows)), (np.array(rows) - first, columns)
    return X[first:last], csr_array(entries, shape=(last - first, UNSEEN + 100))


@functools.cache
def rows_of_names():
    """Return the first document of most classes as their name, and of some without documents."""
    X, y = counts()
    first = {label: row for row, label in reversed([*enumerate(y.tolist())])}
    names = {label: X[[row]] for label, row in first.items() if label % 30 != 7}
    return names | {UNSEEN + i: X[[i]] + X[[i + 1]] for i in range(0, 30, 5)}


def texts_of_names():
    """Return the same names as texts; their words look like those of documents."""
    spelled = {label: data.spell(csr_array(row))[0] for label, row in rows_of_names().items()}
    return {f"class {label}": text.replace("w1", "w10") for label, text in spelled.items()}


def texts(make):
    X, y = make()
    return data.spell(X), [
        [f"class {c}" for c in own] if isinstance(own, list) else f"class {own}" for own in y
    ]


MAKES = {"single": (counts, part), "sets": (label_sets, sets_part)}


@pytest.fixture
def mixed(monkeypatch):
    """The mixture is learned on as few labels as there are."""
    monkeypatch.setattr(mixture, "MIN_MIXED", 50)


def fit(partitions, scratch, names, **settings):
    return fit_partitions(
        LongTailClassifier(random_state=0),
        partitions,
        scratch=scratch,
        class_texts=names,
        **settings,
    )


@pytest.mark.usefixtures("mixed")
@pytest.mark.parametrize("kind", list(MAKES))
@pytest.mark.parametrize("n_parts", [1, 7])
def test_counts(kind, n_parts, tmp_path):
    whole, make_part = MAKES[kind]
    names = rows_of_names()
    plain = LongTailClassifier(random_state=0).fit(*whole(), class_texts=names)
    given = names
    if n_parts > 1:  # in another order, and as a pair: the same texts
        rows = np.vstack([row.toarray() for row in names.values()])
        given = (list(names)[::-1], rows[::-1])
    model = fit(data.functions(n_parts, make_part), tmp_path / "s", given)
    assert data.checksum(model, tmp_path) == data.checksum(plain, tmp_path)
    unnamed = [label for label in plain.classes_ if label not in names]
    unseen = [label for label in plain.classes_ if label >= UNSEEN]
    assert (len(unnamed) > 5, len(unseen)) == (True, 6)
    assert plain.classes_.tolist() == sorted(plain.classes_.tolist())
    # The case is worth something: names have learned weights, and some class lost all documents.
    assert np.all(np.abs(plain.self_check_.name_weights - [17.0, -2.0, 1.5]) > 1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(MAKES))
def test_a_process_pool(kind, tmp_path):
    whole, make_part = MAKES[kind]
    plain = LongTailClassifier(random_state=0).fit(*whole(), class_texts=rows_of_names())
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        model = fit(data.functions(3, make_part), tmp_path / "s", rows_of_names(), client=pool)
    assert data.checksum(model, tmp_path) == data.checksum(plain, tmp_path)


def test_indicator_matrices(tmp_path):
    X, y = indicator_part(0, data.N_DOCUMENTS)
    names = rows_of_names()
    plain = LongTailClassifier(random_state=0).fit(X, y, class_texts=names)
    model = fit(data.functions(3, indicator_part), tmp_path / "s", names)
    assert data.checksum(model, tmp_path) == data.checksum(plain, tmp_path)
    beyond = {UNSEEN + 100: names[UNSEEN]}
    message = r"labels are the 20100 columns of an indicator matrix; class_texts has a text for"
    with pytest.raises(ValueError, match=message):
        fit(data.functions(2, indicator_part), tmp_path / "s", beyond)


@pytest.mark.usefixtures("mixed")
def test_many_shards(tmp_path, monkeypatch):
    """The index is divided by class, residuals by more classes than have documents."""
    monkeypatch.setattr(memory_plan, "INDEX_BYTES", 10**6)
    monkeypatch.setattr(memory_plan, "SHARD_ENTRIES", 300)
    plain = LongTailClassifier(candidates=5, random_state=0)
    plain.fit(*label_sets(), class_texts=rows_of_names())
    reports, model = [], LongTailClassifier(candidates=5, random_state=0)
    fit_partitions(
        model,
        data.functions(3, sets_part),
        scratch=tmp_path / "s",
        memory_limit="3GB",
        on_task=reports.append,
        class_texts=rows_of_names(),
    )
    assert sum(report.stage == "index" for report in reports) > 6
    assert sum(report.stage == "residuals" for report in reports) > 40
    assert data.checksum(model, tmp_path) == data.checksum(plain, tmp_path)


@pytest.mark.usefixtures("mixed")
@pytest.mark.parametrize("kind", list(MAKES))
@pytest.mark.parametrize(
    "settings",
    [{}, {"remember_documents": True, "vectorizer": TextVectorizer(char_ngram_range=(3, 4))}],
)
def test_texts(kind, settings, tmp_path):
    documents, labels = texts(MAKES[kind][0])
    labels = [label or ["class 7"] for label in labels]
    names = texts_of_names() | {"class 7": "  ", "nothing": None}
    plain = TextClassifier(random_state=0, **settings).fit(documents, labels, class_texts=names)
    files = tmp_path / "files"
    files.mkdir()
    for i, (first, last) in enumerate(data.bounds(3)):
        pairs = zip(documents[first:last], labels[first:last], strict=True)
        lines = [json.dumps({"body": text, "label": label}) + "\n" for text, label in pairs]
        (files / f"part-{i}.jsonl").write_text("".join(lines))
    table = Table(files, text=["body"], label="label")
    model = fit_partitions(
        TextClassifier(random_state=0, **settings),
        table,
        scratch=tmp_path / "s",
        class_texts=dict(reversed(names.items())),
    )
    assert data.checksum(model, tmp_path) == data.checksum(plain, tmp_path)
    assert model.class_texts_ == plain.class_texts_
    assert f"class {UNSEEN}" in model.classes_
    assert model.predict_topk([names[f"class {UNSEEN}"]], 3).classes.tolist() == (
        plain.predict_topk([names[f"class {UNSEEN}"]], 3).classes.tolist()
    )
    assert np.any(model.self_check_.name_weights != [17.0, -2.0, 1.5])


def test_other_names_are_not_taken_for_these(tmp_path):
    """A changed text is learned anew, from the self-check on; another set of labels from its sums.

    What was computed for the first names is found again by them.
    """
    partitions, names = data.functions(2, part), rows_of_names()
    changed = names | {UNSEEN: names[UNSEEN + 5]}
    fewer = {label: row for label, row in names.items() if label != UNSEEN}
    expected, done = {}, {}
    for name, given in (("first", names), ("changed", changed), ("fewer", fewer), ("none", None)):
        reports = []
        plain = LongTailClassifier(random_state=0).fit(*counts(), class_texts=given)
        model = fit(partitions, tmp_path / "s", given, on_task=reports.append)
        expected[name] = data.checksum(plain, tmp_path)
        assert data.checksum(model, tmp_path) == expected[name]
        done[name] = {report.stage for report in reports}
    assert len(set(expected.values())) == 4
    assert {"reading", "statistics", "draws", "shared weights"} <= done["first"]
    assert not {"reading", "statistics", "draws", "shared weights"} & done["changed"]
    assert {"class texts", "self-check", "calibration"} <= done["changed"]
    assert {"statistics", "draws", "shared weights", "self-check"} <= done["fewer"]
    reports = []
    again = fit(partitions, tmp_path / "s", names, on_task=reports.append)
    assert (reports, data.checksum(again, tmp_path)) == ([], expected["first"])
    for given in (names, changed, fewer, None):
        fit(partitions, tmp_path / "s", given, clean=True)
    assert list((tmp_path / "s").rglob("*.task*")) == []


def test_other_texts_are_not_taken_for_these(tmp_path):
    documents, labels = texts(counts)
    partitions = [lambda: (documents[:500], labels[:500]), lambda: (documents[500:], labels[500:])]
    first = texts_of_names()
    changed = first | {f"class {UNSEEN}": first[f"class {UNSEEN + 5}"]}
    for given in (first, changed):
        plain = TextClassifier(random_state=0).fit(documents, labels, class_texts=given)
        model = TextClassifier(random_state=0)
        fit_partitions(model, partitions, scratch=tmp_path / "s", class_texts=given)
        assert data.checksum(model, tmp_path) == data.checksum(plain, tmp_path)


def test_names_that_say_nothing(tmp_path):
    """No text at all is a fit without; one class with documents and one with a name are enough."""
    plain = data.checksum(LongTailClassifier(random_state=0).fit(*counts()), tmp_path)
    for given in ({}, {7: None}):
        model = fit(data.functions(2, part), tmp_path / "s", given)
        assert data.checksum(model, tmp_path) == plain
    model = fit([lambda: ([[1, 0], [2, 1]], ["a", "a"])], tmp_path / "s", {"b": [0, 1]})
    assert model.classes_.tolist() == ["a", "b"]
    # So are two names, where no document has a label.
    X, names = [[1, 0], [2, 1]], {"a": [1, 0], "b": [0, 1]}
    plain = LongTailClassifier(random_state=0).fit(X, [[], []], class_texts=names)
    model = fit([lambda: (X, [[], []])], tmp_path / "s", names)
    assert model.classes_.tolist() == ["a", "b"]
    assert data.checksum(model, tmp_path) == data.checksum(plain, tmp_path)


@pytest.mark.parametrize(
    ("class_texts", "message"),
    [
        ([["a", "b"]], "class_texts must be a mapping of label to counts, or a pair"),
        ({7: "bear"}, "the text of class 7 must be a row of counts; got a string"),
        ({7: [1, 2]}, r"must have rows of 300 counts, one for each column of X; got shape \(1, 2"),
        (([7, 7], np.ones((2, 300))), "class_texts has label 7 twice"),
        (([7], np.ones((2, 300))), "class_texts has 1 labels and 2 rows"),
        ({7: -np.ones(300)}, "smallest is -1"),
        ({"a": np.ones(300)}, "labels are such as 'a', but the model's classes are such as 7"),
    ],
)
def test_what_is_refused_as_in_fit(class_texts, message, tmp_path):
    for attempt in (
        lambda: LongTailClassifier().fit(*counts(), class_texts=class_texts),
        lambda: fit(data.functions(2, part), tmp_path, class_texts),
    ):
        with pytest.raises(ValueError, match=message):
            attempt()


def test_texts_that_are_refused_as_in_fit(tmp_path):
    documents, labels = texts(counts)
    paper = DoubleSamplingClassifier()
    for estimator, class_texts, message in (
        (TextClassifier(), ["a bear"], "class_texts must be a mapping of label to text; got list"),
        (TextClassifier(), {"a": 3}, "the text of class 'a' must be a string or None; got 3"),
        (TextClassifier(), {7: "bear"}, "labels are such as 7, but the model's classes are"),
        (TextClassifier(), {7: "bear", "a": "fox"}, "mixes labels of different types"),
        (TextClassifier(paper), {"a": "fox"}, "DoubleSamplingClassifier takes no class_texts"),
        (paper, {"a": [0]}, "DoubleSamplingClassifier takes no class_texts"),
    ):
        X = counts()[0] if estimator is paper else documents
        with pytest.raises(ValueError, match=message):
            estimator.fit(X, labels, class_texts=class_texts)
        reports = []
        with pytest.raises(ValueError, match=message):
            fit_partitions(
                estimator,
                [lambda X=X: (X, labels)],
                scratch=tmp_path,
                class_texts=class_texts,
                on_task=reports.append,
            )
        n_before = 0 if class_texts != {7: "bear"} else 9  # labels must be read to be compared
        assert len(reports) <= n_before
    fit_partitions(
        TextClassifier(paper),
        [lambda: (documents, labels)],
        scratch=tmp_path,
        class_texts={"a": ""},
    )


def test_memory_that_names_take(tmp_path, monkeypatch):
    """Names that do not fit are refused before they are counted; the size said is enough."""
    documents, labels = texts(counts)
    partitions, names = [lambda: (documents, labels)], texts_of_names()

    def attempt(limit, given):
        return fit_partitions(
            TextClassifier(random_state=0),
            partitions,
            scratch=tmp_path / "s",
            memory_limit=limit,
            class_texts=given,
        )

    plain = TextClassifier(random_state=0).fit(documents, labels, class_texts=names)
    attempt("600MB", names)
    for constant in ("TERM_CHARACTER_BYTES", "TEXT_CHARACTER_BYTES", "CLASS_TERM_BYTES"):
        with monkeypatch.context() as patch:
            patch.setattr(memory_plan, constant, 10**6)
            what = "classes" if constant == "CLASS_TERM_BYTES" else "class texts"
            with pytest.raises(MemoryLimitError, match=rf"too low for \d+ {what}") as refused:
                attempt("600MB", names)
            [needed] = re.findall(r"at least ([0-9.]+GB)", str(refused.value))
            model = attempt(needed, names)
        assert data.checksum(model, tmp_path) == data.checksum(plain, tmp_path)
    limits = {}
    monkeypatch.setattr(memory_plan, "CLASS_TERM_BYTES", 10**6)
    for given in (None, names):
        with pytest.raises(MemoryLimitError, match=r"at least") as refused:
            attempt("600MB", given)
        [limits[given is names]] = re.findall(r"at least ([0-9.]+)GB", str(refused.value))
    assert float(limits[True]) > float(limits[False])
