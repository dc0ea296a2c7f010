"""Journals with right checksums and any content: one documented error, or a model that works."""

import base64
import random
from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp

import longtail
from longtail.exceptions import ModelFileError
from longtail.store.changes import pack_counts
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
SIZES = [-1, 0, 1, 2, 48, 49, 2**31 - 1, 2**31, None, "x", 1.5, True]
OFFSETS = [-1, 0, 1, 49, 2**31, 2**62, 2**63 - 1, -(2**63), -(2**63) + 5]
COUNTS = [np.nan, np.inf, -1.0, 1e308, 1e18, 2.0**62, 5e-324]


def packed_counts(choose, n_terms):
    """Counts of one to three documents as a journal holds them, most of them spoiled."""
    X = sp.random(choose.choice([1, 2, 3]), n_terms, 0.2, "csr", random_state=choose.randrange(99))
    X.data = np.ceil(3 * X.data)
    packed = pack_counts(sp.csr_array(X))
    for name in choose.sample(list(packed), choose.choice([0, 0, 1, 1, 2])):
        if name in ("n_documents", "n_terms"):
            packed[name] = choose.choice(SIZES)
            continue
        dtype = "<f8" if name == "data" else "<i8"
        array = np.frombuffer(base64.b64decode(packed[name]), dtype).copy()
        if choose.random() < 0.6 and len(array):
            array[choose.randrange(len(array))] = choose.choice(
                COUNTS if name == "data" else OFFSETS
            )
        else:
            array = choose.choice([array[:-1], np.append(array, array[-1:]), array[::-1]])
        packed[name] = base64.b64encode(array.tobytes()).decode()
        if choose.random() < 0.1:
            packed[name] = choose.choice(["!!", None, "AAA", 5, ""])
    return packed, X.shape[0]


def draw_change(choose, model):
    """An action and its content; now and then with a field too many or too few."""

    def label():
        return choose.choice([*LABELS, *2 * model.classes_.tolist()])

    is_text = hasattr(model, "vocabulary_")
    text = choose.choice([*TEXTS, *MORE_TEXTS])
    action = choose.choice(
        ["teach", "teach", "forget", "rename", "merge", "remove", "describe", "refine", "undo"]
    )
    content = {
        "rename": lambda: {"old": label(), "new": label()},
        "merge": lambda: {"source": label(), "into": label()},
        "remove": lambda: {"label": label()},
        "describe": lambda: {"label": label(), "text": text},
        "refine": dict,
        "undo": lambda: {"changes": [choose.choice([1, 2, 0, -1, 2**60])]},
    }.get(action)
    if content is not None:
        found = content()
    elif is_text != (choose.random() < 0.05):
        found = {"documents": [text, TEXTS[0]], "labels": [label()] * 2}
    else:
        documents, n_documents = packed_counts(choose, model.statistics_.n_terms)
        found = {"documents": documents, "labels": [label() for _ in range(n_documents)]}
    if choose.random() < 0.05:
        found["more"] = 1
    elif found and choose.random() < 0.05:
        found.popitem()
    return action, found


def write_journal(path, changes):
    journal = Journal(path)
    with journal.locked():
        journal.append(journal.restart(None, read_checksum(path)), *changes[0], None)
    for action, batches in changes[1:]:
        with journal.locked():
            journal.append(journal.header(), action, batches, None)
    journal.close()


def run_case(path, number):
    choose = random.Random(number)
    copy_seed(choose.choice(SEEDS)).write(path)
    model = longtail.load(path)
    changes = [draw_change(choose, model) for _ in range(choose.choice([1, 1, 2, 4]))]
    write_journal(path, [(action, [content]) for action, content in changes])
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
    content = {"label": label, "text": "a name"} if action == "describe" else {}
    write_journal(path, [(action, [content])])
    with pytest.raises(ModelFileError, match=rf"record 1 \({action}\) does not fit the model"):
        longtail.load(path)
