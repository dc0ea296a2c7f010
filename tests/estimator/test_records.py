"""Documents of several fields: everything that a model of texts can do works with records."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold, cross_val_predict

from longtail import Teacher, TextClassifier, load
from longtail.exceptions import ModelFileError
from longtail.store.container import open_model, write_model

FIELDS = {
    "subject": "text",
    "body": "text",
    "brand": "category",
    "price": "number",
    "tags": "categories",
}
KINDS = ("refund", "broken", "late", "praise")
BRANDS = ("acme", "zed co", "a|b")


def make_records(n: int = 120, seed: int = 0) -> tuple[list[dict[str, Any]], list[str]]:
    """Return records whose class is told by the subject, the brand and the price."""
    rng = np.random.default_rng(seed)
    records, labels = [], []
    for _ in range(n):
        kind, brand = rng.integers(4), rng.integers(3)
        dear = bool(rng.integers(2))
        price = float(np.round(rng.uniform(100, 200) if dear else rng.uniform(1, 20), 2))
        records.append(
            {
                "subject": f"{KINDS[kind]} order {rng.integers(9)}",
                "body": "my order of last week " + " ".join(rng.choice(KINDS, 2)),
                "brand": BRANDS[brand] if rng.random() < 0.95 else None,
                "price": price if rng.random() < 0.95 else None,
                "tags": ["new"] if rng.random() < 0.3 else None,
            }
        )
        labels.append(f"{KINDS[kind]}/{BRANDS[brand]}/{'dear' if dear else 'cheap'}")
    return records, labels


RECORDS, LABELS = make_records()
NEW, NEW_LABELS = make_records(40, seed=1)


@pytest.fixture(scope="module")
def model() -> TextClassifier:
    return TextClassifier(fields=FIELDS, random_state=0).fit(RECORDS, LABELS)


def same_answers(a: Any, b: Any, documents: Any = NEW) -> None:
    """Compare what two models say, bit for bit."""
    one, two = a.predict_proba_topk(documents), b.predict_proba_topk(documents)
    assert np.array_equal(one.scores, two.scores)
    assert np.array_equal(one.classes, two.classes)


def test_metadata_decides_where_text_cannot(model: TextClassifier) -> None:
    texts = [f"{record['subject']} {record['body']}" for record in RECORDS]
    plain = TextClassifier(random_state=0).fit(texts, LABELS)
    asked = [f"{record['subject']} {record['body']}" for record in NEW]
    assert model.score(NEW, NEW_LABELS) > plain.score(asked, NEW_LABELS) + 0.4
    assert model.fields_ == FIELDS
    assert plain.fields_ is None


def test_one_text_field_is_the_model_of_the_text() -> None:
    texts = [record["subject"] + " " + record["body"] for record in RECORDS]
    plain = TextClassifier(random_state=0).fit(texts, LABELS)
    one = TextClassifier(fields={"all": "text"}, random_state=0)
    one.fit([{"all": text} for text in texts], LABELS)
    same_answers(plain, one, texts)
    assert np.array_equal(plain.term_weights_, one.term_weights_)


def test_tables_chunks_and_dicts_give_one_model(model: TextClassifier) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(RECORDS)
    same_answers(model, clone(model).fit(frame, LABELS))
    chunks = [(RECORDS[:50], LABELS[:50]), (frame.iloc[50:], LABELS[50:])]
    same_answers(model, clone(model).fit_chunks(chunks))
    assert np.array_equal(model.predict(pd.DataFrame(NEW)), model.predict(NEW))


def test_explanation_names_fields(model: TextClassifier) -> None:
    [found] = model.explain([{"subject": "broken", "brand": "zed co", "price": 150.0}], top_terms=9)
    terms = set(map(str, [*found.terms, *found.common]))
    assert {"brand=zed co", "subject:broken", "broken"} <= terms
    assert any(term.startswith("price=1") for term in terms)
    assert found.score == pytest.approx(
        sum(found.terms.values()) + found.rest + found.constant, rel=1e-5
    )


def test_a_plain_text_is_a_document_of_shared_terms(model: TextClassifier) -> None:
    assert str(model.predict(["broken order"])[0]).startswith("broken/")
    [found] = model.explain(["broken"])
    assert "broken" in {*found.terms, *found.common}


def test_an_unknown_value_is_no_term(model: TextClassifier) -> None:
    seen = {"subject": "late order", "brand": "never seen"}
    without = {"subject": "late order", "brand": None, "more": 1}
    same_answers(model, model, [seen])
    assert np.array_equal(
        model.predict_proba_topk([seen]).scores, model.predict_proba_topk([without]).scores
    )


def test_partial_fit_then_forget_changes_nothing() -> None:
    model = TextClassifier(fields=FIELDS, random_state=0).fit(RECORDS, LABELS)
    before = model.predict_proba_topk(NEW)
    added = [{"subject": "a new word", "brand": "new brand", "price": 1e6}, NEW[0]]
    model.partial_fit(added, ["new", LABELS[0]])
    assert model.predict([{"brand": "new brand"}]).tolist() == ["new"]
    model.forget(added, ["new", LABELS[0]])
    after = model.predict_proba_topk(NEW)
    assert np.array_equal(before.scores, after.scores)
    with pytest.raises(ValueError, match="never added"):
        model.forget([{"subject": "refund", "brand": "nobody"}], [LABELS[0]])


def test_refine_and_recalibrate_take_records() -> None:
    model = TextClassifier(fields=FIELDS, random_state=0).fit(RECORDS, LABELS)
    model.recalibrate(NEW, NEW_LABELS)
    model.partial_fit(NEW, NEW_LABELS).refine(RECORDS + NEW, LABELS + NEW_LABELS)
    assert model.score(NEW, NEW_LABELS) > 0.8


def test_a_file_gives_the_same_model(model: TextClassifier, tmp_path: Path) -> None:
    path = tmp_path / "model.longtail"
    model.save(path)
    opened = load(path)
    same_answers(model, opened)
    assert opened.get_params()["fields"] == FIELDS
    assert list(opened.get_params()["fields"]) == list(FIELDS)
    assert opened.fields_ == FIELDS
    same_answers(model, clone(opened).fit(RECORDS, LABELS))
    same_answers(model, pickle.loads(pickle.dumps(model)))


def test_numbers_and_a_hierarchy_are_saved_together(tmp_path: Path) -> None:
    parents = {label: label.split("/")[0] for label in set(LABELS)}
    model = TextClassifier(fields=FIELDS, random_state=0).fit(RECORDS, LABELS, hierarchy=parents)
    model.save(tmp_path / "m")
    again = load(tmp_path / "m")
    assert again.hierarchy_.nodes.tolist() == model.hierarchy_.nodes.tolist()
    same_answers(model, again)


def test_a_teacher_takes_records(model: TextClassifier, tmp_path: Path) -> None:
    path = tmp_path / "model.longtail"
    model.save(path)
    teacher = Teacher(path)
    teacher.teach(NEW[:5], NEW_LABELS[:5])
    teacher.teach([{"brand": "new brand", "price": 7}], ["new"])
    assert load(path).predict([{"brand": "new brand"}]).tolist() == ["new"]
    same_answers(teacher.model, load(path))
    [kept] = teacher.changes()[-1].content["documents"]
    assert kept == '{"brand": "new brand", "price": 7}'
    teacher.forget(NEW[:5], NEW_LABELS[:5])
    teacher.undo(3)
    same_answers(model, load(path))
    with pytest.raises(ValueError, match="field 'price' holds 'a'; expected a number"):
        teacher.teach([{"price": "a"}], ["new"])
    teacher.close()


def test_label_sets_class_texts_and_scikit_learn() -> None:
    sets = [label.split("/")[::2] for label in LABELS]
    model = TextClassifier(fields=FIELDS, random_state=0)
    model.fit(RECORDS, sets, class_texts={"lost": "parcel lost refund"})
    found = model.predict(NEW)
    assert np.mean(["dear" in labels for labels in found]) > 0.2
    assert "lost" in model.classes_
    predicted = cross_val_predict(
        TextClassifier(fields=FIELDS, random_state=0), RECORDS, LABELS, cv=KFold(3)
    )
    assert np.mean(predicted == np.array(LABELS)) > 0.4


def test_class_texts_are_compared_with_shared_terms(model: TextClassifier) -> None:
    named = clone(model).fit(RECORDS, LABELS, class_texts={"lost": "subject broken"})
    row = named.classifier_.state_.names
    class_id = named.classes_.tolist().index("lost")
    terms = named.vocabulary_.terms
    indices = row.indices[row.indptr[class_id] : row.indptr[class_id + 1]]
    assert not any(":" in terms[i] or "=" in terms[i] for i in indices)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fields": [["a", "text"], ["a", "number"]]}, "wrong fields"),
        ({"fields": [["a", "none"]]}, "wrong fields"),
        ({"fields": {"a": "text"}}, "wrong fields"),
        ({"fields": [["a\x7f", "text"]]}, "wrong fields"),
        ({"fields": [["a", "text"]]}, "bins of 1 numbers"),
        ({"bins/edges": np.array([2.0, 1.0])}, "bins/edges"),
        ({"bins/edges": np.array([np.nan])}, "bins/edges"),
        ({"bins/offsets": np.array([0, 1, 1])}, "bins/offsets|bins of 2"),
        ({"bins/offsets": None}, "bins/offsets"),
    ],
)
def test_hostile_files_are_refused(
    model: TextClassifier, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    path = tmp_path / "model.longtail"
    model.save(path)
    file = open_model(path)
    header = {key: dict(value) for key, value in file.parameters.items()}
    arrays = {name: np.array(array) for name, array in file.arrays.items()}
    for name, value in change.items():
        if name == "fields":
            for kind in ("TextClassifier", "TextVectorizer"):
                header["estimators"][kind] = {**header["estimators"][kind], "fields": value}
        elif value is None:
            del arrays[name]
        else:
            arrays[name] = value
            if name == "bins/edges":
                arrays["bins/offsets"] = np.array([0, len(value)])
    hostile = tmp_path / "hostile.longtail"
    write_model(hostile, file.kind, header, arrays)
    with pytest.raises(ModelFileError, match=message):
        load(hostile)
