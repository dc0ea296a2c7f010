"""Documents that a `Teacher` keeps to learn from: which, where, and how they go again."""

import numpy as np
import pytest

from longtail import LongTailClassifier, Teacher, TextClassifier, load
from longtail.exceptions import ModelFileError
from longtail.store.container import open_model, write_model
from longtail.training import relearning
from tests.estimator.test_recent import make_documents

WORDS = [f"w{i}" for i in range(120)]


def write(seed, n_documents, n_classes=20):
    rng = np.random.default_rng(seed)
    labels = [f"c{i % n_classes:02}" for i in range(n_documents)]
    texts = [
        " ".join(rng.choice(WORDS[5 * (i % n_classes) : 5 * (i % n_classes) + 9], 6))
        for i in range(n_documents)
    ]
    return texts, labels


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "model"
    TextClassifier(random_state=0).fit(*write(0, 200)).save(path)
    return path


def memory_of(teacher):
    return teacher.model._arrays.memory


def kept(model):
    """How often each term occurs in the documents kept, by class."""
    state = model._arrays
    memory = state.memory.settle(state.overlay, 10**6)
    counts = memory.documents(len(state.term_weights))
    names = np.array(model.vocabulary_.terms)
    found = []
    for row, class_id in enumerate(memory.class_ids.tolist()):
        entries = slice(*counts.indptr[row : row + 2])
        terms = {str(t) for t in names[counts.indices[entries]] if " " not in str(t)}
        found.append((str(state.all_classes[class_id]), terms))
    return found


def test_a_teacher_keeps_what_it_is_taught_and_a_fit_nothing(path):
    assert load(path)._arrays.memory is None
    teacher = Teacher(path, refine="never")
    assert memory_of(teacher).n_documents == 0
    teacher.teach(["an owl hoots", "a red fox"], ["owl", "fox"])
    assert kept(teacher.model) == [("owl", {"an", "owl", "hoots"}), ("fox", {"a", "red", "fox"})]
    teacher.undo()
    assert kept(teacher.model) == []


@pytest.mark.parametrize("write_file", [Teacher.refine, Teacher.compact])
def test_files_have_the_documents_and_other_processes_read_them(path, write_file):
    teacher = Teacher(path, refine="never")
    teacher.teach(["an owl hoots"], ["owl"])
    write_file(teacher)
    others = load(path), Teacher(path, refine="never").model
    for model in (teacher.model, *others):
        assert kept(model) == [("owl", {"an", "owl", "hoots"})]
    texts = write(2, 40)[0]
    found, expected = (m.predict_proba_topk(texts, k=3) for m in (others[0], teacher.model))
    assert np.array_equal(found.scores, expected.scores)


@pytest.mark.parametrize("refines", [False, True])
def test_a_forgotten_document_leaves_the_files(path, refines):
    teacher = Teacher(path, refine="never")
    teacher.teach(["secret secret honey", "an owl"], ["bear", "owl"])
    if refines:
        teacher.refine()
    teacher.forget(["secret secret honey"], ["bear"], erase=True)
    assert kept(teacher.model) == [("owl", {"an", "owl"})]
    assert not list(path.parent.glob("*.refined-*"))
    assert len(open_model(path).arrays["memory/class_ids"]) == 1
    assert kept(load(path)) == [("owl", {"an", "owl"})]


def test_what_is_undone_after_a_refine_is_no_longer_kept(path):
    teacher = Teacher(path, refine="never")
    teacher.teach(["an owl hoots"], ["owl"])
    teacher.teach(["a red fox"], ["fox"])
    teacher.refine()
    teacher.undo(numbers=[1])
    assert kept(teacher.model) == [("fox", {"a", "red", "fox"})]
    assert kept(Teacher(path, refine="never").model) == kept(teacher.model)


def test_one_word_keeps_none_and_the_file_remembers_it(path):
    teacher = Teacher(path, refine="never")
    teacher.teach(["an owl hoots"], ["owl"])
    teacher.refine()
    teacher.close()
    private = Teacher(path, refine="never", memory="never")
    assert memory_of(private) is None
    private.teach(["a red fox"], ["fox"])
    private.compact()
    assert not [name for name in open_model(path).arrays if name.startswith("memory")]
    again = Teacher(path, refine="never")
    again.teach(["a grey wolf"], ["wolf"])
    assert memory_of(again) is None
    assert load(path).classifier_.memory == 0


def test_compact_drops_what_a_fit_kept(tmp_path):
    path = tmp_path / "model"
    counts = LongTailClassifier(memory="auto", random_state=0)
    TextClassifier(counts, random_state=0).fit(*write(0, 200)).save(path)
    assert "memory/gaps" in open_model(path).arrays
    Teacher(path, memory="never").compact()
    assert "memory/gaps" not in open_model(path).arrays
    teacher = Teacher(path, refine="never")
    assert teacher.teach(["a grey wolf"], ["wolf"]) == 1
    assert memory_of(teacher) is None


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("memory/gaps", lambda gaps: np.where(np.arange(len(gaps)) == 1, 60_000, gaps)),
        ("memory/gaps", lambda gaps: np.where(np.arange(len(gaps)) == 1, 0, gaps)),
        ("memory/data", lambda data: -data.astype(float)),
    ],
)
def test_a_file_whose_documents_cannot_be_is_refused(tmp_path, name, change):
    path = tmp_path / "model"
    counts = LongTailClassifier(memory="auto", random_state=0)
    TextClassifier(counts, random_state=0).fit(*write(0, 200)).save(path)
    file = open_model(path)
    arrays = {key: np.array(array) for key, array in file.arrays.items()}
    arrays[name] = change(arrays[name]).astype(arrays[name].dtype if "gaps" in name else float)
    write_model(path, file.kind, file.parameters, arrays)
    with pytest.raises(ModelFileError, match=r"gaps of a document|memory/data"):
        load(path)


def test_a_number_is_kept_to(tmp_path):
    path = tmp_path / "model"
    counts = LongTailClassifier(memory=2, random_state=0)
    TextClassifier(counts, random_state=0).fit(*write(0, 200)).save(path)
    teacher = Teacher(path, refine="never")
    teacher.teach(["w0 w1", "w0 w2", "w1 w2"], ["c00"] * 3)
    assert [terms for label, terms in kept(teacher.model) if label == "c00"] == [
        {"w0", "w2"},
        {"w1", "w2"},
    ]


def test_what_cannot_be_kept_is_taught_all_the_same(tmp_path):
    X = np.random.default_rng(0).poisson(1.0, (40, 12))
    sets = [[f"c{i % 5}", f"d{i % 4}"] for i in range(40)]
    LongTailClassifier(random_state=0).fit(X, sets).save(tmp_path / "sets")
    teacher = Teacher(tmp_path / "sets", refine="never")
    teacher.teach(X[:2], [["c0", "new"], ["c1"]])
    assert memory_of(teacher) is None
    assert "new" in teacher.model.classes_


@pytest.fixture
def counted(monkeypatch):
    """Counts of documents that are hard to tell apart, of which few are enough to learn from."""
    monkeypatch.setattr(relearning, "MIN_HELD_OUT", 1)
    X, y = make_documents(n_classes=25, per_class=12, n_terms=60)
    there = np.flatnonzero(np.arange(300) % 12 <= np.arange(300) // 24)  # 1 to 12 of each class
    rows = np.random.default_rng(0).permutation(there)
    return X[rows], y[rows]


def test_residuals_are_learned_from_what_is_kept(counted, tmp_path):
    X, y = counted
    LongTailClassifier(memory="auto", random_state=0).fit(X, y).save(tmp_path / "model")
    teacher = Teacher(tmp_path / "model", refine="never")
    teacher.teach(X[:9], y[:9])
    assert teacher.model.health().n_stale > 0
    teacher.refine()
    assert teacher.model.health().n_stale == 0


def test_classes_of_which_nothing_is_kept_leave_residuals_as_they_are(counted, tmp_path):
    X, y = counted
    LongTailClassifier(random_state=0).fit(X, y).save(tmp_path / "model")
    teacher = Teacher(tmp_path / "model", refine="never")
    teacher.teach(X[:50], y[:50])  # of half the classes
    n_stale = teacher.model.health().n_stale
    teacher.refine()
    assert teacher.model.health().n_stale == n_stale


@pytest.mark.parametrize(("given", "n_kept"), [("auto", 80), (None, None), (0, None), (1, 20)])
def test_a_fit_keeps_what_it_is_told_to(given, n_kept):
    counts = LongTailClassifier(memory=given, random_state=0)
    memory = TextClassifier(counts, random_state=0).fit(*write(0, 120))._arrays.memory
    assert (memory and memory.n_documents) == n_kept


def test_a_fit_keeps_no_fractions_unless_it_was_told_a_number(counted):
    X, y = counted
    model = LongTailClassifier(memory="auto", random_state=0)
    assert model.fit(X, y, sample_weight=np.full(len(y), 0.5)).state_.memory is None


@pytest.mark.parametrize("memory", ["all", None, 3])
def test_another_word_is_refused(path, memory):
    with pytest.raises(ValueError, match='memory must be "auto" or "never"'):
        Teacher(path, memory=memory)
