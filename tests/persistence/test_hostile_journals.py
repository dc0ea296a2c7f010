"""Journals with right checksums and any content: one documented error, or a model that works."""

import random
from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp

import longtail
from longtail.exceptions import ModelFileError
from longtail.store.changes import Row, encode
from longtail.store.container import read_checksum
from longtail.store.journal import Journal
from tests.fuzz.cases import TEXTS, read_only
from tests.fuzz.seeds import SEEDS, copy_seed

N_CASES = 250
LABELS = [
    "new", "", "x\0", "\ud800", "\x1b[31m", "=1+1", "a" * 5000, "77", 0, 1, 3, 22.0, -1, 77, 2**24,
    2**53, 2**63, 2**64, 2**200, 1.5, 1e308, -0.0, True, False,
]  # fmt: skip
MORE_TEXTS = ["\ud800", "\0", "x" * 10_000, "bearish " * 300, "\u0300" * 50, "中文字" * 20, " \n"]
OFFSETS = [-1, 0, 1, 2, 49, 2**31 - 1, 2**31, 2**62, 2**63 - 1, -(2**63), -(2**63) + 5]
COUNTS = [np.nan, np.inf, -1.0, 1e308, 1e18, 2.0**62, 5e-324]


def draw_numbers(choose, model, labels):
    """Documents as a journal holds them, most of them spoiled."""
    n_terms, known = model.statistics_.n_terms, model.classes_.tolist()
    X = sp.csr_array(sp.random(len(labels), n_terms, 0.2, random_state=choose.randrange(99)))
    ids = [known.index(x) if x in known else choose.choice([len(known), 0]) for x in labels]
    arrays = {
        "classes": np.array(ids, "<i8"),
        "sizes": np.diff(X.indptr).astype("<i8"),
        "terms": X.indices.astype("<i4"),
        "counts": np.ceil(3 * X.data).astype(choose.choice(["<f4", "<f8"])),
    }
    for name in choose.sample(list(arrays), choose.choice([0, 0, 0, 0, 0, 1, 2])):
        array = arrays[name].copy()
        if choose.random() < 0.6 and len(array):
            wrong = choose.choice(COUNTS if name == "counts" else OFFSETS)
            with np.errstate(over="ignore"):
                spoiled = np.array([wrong]).astype(array.dtype)
            array[choose.randrange(len(array))] = spoiled[0]
        else:
            array = choose.choice([array[:-1], np.append(array, array[-1:]), array[::-1]])
        arrays[name] = array
    data = {name: array.tobytes() for name, array in arrays.items()}
    if choose.random() < 0.04:
        data[choose.choice(list(data))] = choose.choice([b"", b"\0", b"\xff" * 9])
    return data


def draw_change(choose, model):
    """An action and a row of it; now and then with a field too many or too few."""

    def label():
        return choose.choice([*LABELS, *2 * model.classes_.tolist()])

    is_text = hasattr(model, "vocabulary_")
    text = choose.choice([*TEXTS, *MORE_TEXTS])
    action = choose.choice(
        ["teach", "teach", "forget", "recalibrate", "rename", "merge", "remove", "describe",
         "hierarchy", "move", "refine", "undo"]
    )  # fmt: skip
    facts = {
        "rename": lambda: {"old": label(), "new": label()},
        "merge": lambda: {"source": label(), "into": label()},
        "remove": lambda: {"label": label()},
        "describe": lambda: {"label": label(), "text": text, "is_new": choose.random() < 0.5},
        "hierarchy": lambda: {"n_nodes": 3, "nodes": [label() for _ in range(3)]},
        "move": lambda: {"label": label(), "parents": [label(), label()]},
        "refine": lambda: {
            "file": "ab" * 32,
            "live": choose.choice([[], [1], [1, 2]]),
            "until": choose.choice([0, 1, 2, 9, "x"]),
        },
        "undo": lambda: {"changes": [choose.choice([1, 2, 0, -1, 2**60])]},
    }.get(action, dict)()
    labels = [label() for _ in range(choose.choice([1, 2, 3]))]
    if action in ("teach", "forget", "recalibrate"):
        numbers = draw_numbers(choose, model, labels)
        content = {"labels": labels}
        if is_text:
            content["documents"] = [choose.choice([text, *TEXTS]) for _ in labels]
        if action == "teach" and choose.random() < 0.4:
            facts["classes"] = [choose.choice(LABELS)]
        if action == "teach" and (is_text or choose.random() < 0.05) and choose.random() < 0.4:
            facts["terms"] = [choose.choice(["zebra", "yak", "x\0", "bear", "", "\ud800"])]
        if action == "teach" and choose.random() < 0.5:
            numbers_seen = [0.0, 1.0, 3, -2.5, 1e300, 2.0**60, -1]
            rows = [[choose.choice(numbers_seen) for _ in range(5)] for _ in labels]
            facts["observed"] = [[choose.choice(numbers_seen) for _ in range(6)], *rows]
    else:
        content = {}
        ids = choose.sample([0, 1, 2], 2 if action == "merge" else 1)
        if choose.random() < 0.2:
            ids = [choose.choice(OFFSETS) for _ in range(choose.choice([0, 1, 2]))]
        if action in ("hierarchy", "move"):
            ids = [choose.choice([-1, 0, 1, 2]) for _ in range(3)]
            pairs = ([0, 0], [1, 2]) if action == "move" else ([0, 1], [2, 2])
            if choose.random() < 0.3:
                pairs = [[choose.choice(OFFSETS) for _ in range(2)] for _ in range(2)]
        numbers = {"classes": np.array(ids, np.int64).tobytes()}
        if action in ("hierarchy", "move"):
            with np.errstate(over="ignore"):
                children, above = (np.array(values, np.int64) for values in pairs)
            numbers |= {"sizes": children.tobytes(), "terms": above.astype(np.int32).tobytes()}
    if choose.random() < 0.05:
        facts["more"] = 1
    elif facts and choose.random() < 0.05:
        facts.popitem()
    row = Row(facts=encode(facts) if facts else b"", **numbers)
    return action, row._replace(content=encode(content) if content else b"")


def write_journal(path, changes):
    journal = Journal(path)
    with journal.locked():
        action, row = changes[0]
        journal.append(journal.restart(None, read_checksum(path)), action, [row], None)
    for action, row in changes[1:]:
        with journal.locked():
            journal.append(journal.header(), action, [row], None)
    journal.close()


def run_case(path, number):
    choose = random.Random(number)
    copy_seed(choose.choice(SEEDS)).write(path)
    model = longtail.load(path)
    changes = [draw_change(choose, model) for _ in range(choose.choice([1, 1, 2, 4]))]
    write_journal(path, changes)
    problem = ""
    try:
        read_only(longtail.load(path))
    except ModelFileError as error:
        problem = error.problem
    if problem:
        assert len(problem) < 1000
        return "refused"
    teacher = longtail.Teacher(path)
    for edit in (teacher.undo, teacher.compact):
        try:
            edit()
        except UnicodeError:
            raise
        except ValueError:  # nothing to undo, or what is later builds on it
            pass
    read_only(longtail.load(path))
    return "works"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "share", [0, *(pytest.param(share, marks=pytest.mark.slow) for share in range(1, 5))]
)
def test_any_change_is_refused_or_works(share, tmp_path):
    found = Counter()
    for number in range(share, N_CASES, 5):
        folder = tmp_path / str(number)
        folder.mkdir()
        with np.errstate(all="ignore"):
            found[run_case(folder / "model", number)] += 1
    assert min(found["refused"], found["works"]) > 3


@pytest.mark.parametrize("seed", ["double_sampling", "text_double_sampling"])
@pytest.mark.parametrize("action", ["describe", "refine"])
def test_an_action_that_the_model_does_not_have(seed, action, tmp_path):
    path = tmp_path / "model"
    copy_seed(seed).write(path)
    label = longtail.load(path).classes_[0].item()
    facts: dict = {"file": "ab" * 32, "live": [], "until": 0}
    if action == "describe":
        facts = {"label": label, "text": "a name", "is_new": False}
    write_journal(path, [(action, Row(np.zeros(1, "<i8").tobytes(), facts=encode(facts)))])
    with pytest.raises(ModelFileError, match=rf"record 1 \({action}\) does not fit the model"):
        longtail.load(path)
