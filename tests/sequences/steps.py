"""Random sequences of changes, each made from a seed; a shorter one that fails where one fails.

`KINDS` are models of texts, whose changes are compared between teachers, what is opened and what is
saved; `ORACLES` are the plain counters of `tests/property`, with longer sequences.
"""

import random
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np

from longtail import DoubleSamplingClassifier, LongTailClassifier, Teacher, TextClassifier, load
from longtail.model import overlay
from tests.property import test_changes, test_parents
from tests.property.test_change_log import FITTED
from tests.unit import test_embedder

WORDS = "bear bears eats wants has honey goose fox owl hoots newt gills axolotl the a red night c7"
LABELS = ["bear", "fox", "owl", "wolf", "crow", "newt", "axo", "a first", "zz"]
OF_VECTORS = ["class 00", "class 05", "class 44", "class 50", "newt", "zz"]
NODES = [*LABELS[:6], "mammal", "bird", "animal", "thing"]
QUESTIONS = ["bear eats honey", "newt gills", "night owl hoots", "red fox goose", "axolotl", "crow"]
CLASS_TEXTS = ["gills of a newt", "", "a grey wolf", "night owl"]
SIZES = [8, 5, 3, 2, 1, 1]  # of classes, relative to each other
KINDS = ["plain", "register", "names", "large", "memory", "sets", "paper", "vectors"]
ORACLES = ["sums", "parents"]

WEIGHTS = {
    "teach": 20,
    "forget": 3,
    "forget again": 7,
    "rename_class": 5,
    "merge_classes": 5,
    "remove_class": 4,
    "set_class_text": 4,
    "undo": 16,
    "undo last": 4,
    "refine": 4,
    "refresh": 4,
    "reopen": 4,
    "swap": 8,
    "set_hierarchy": 2,
    "move_class": 3,
    "recalibrate": 1,
    "compact": 0.4,
    "check": 3,
}


def write_text(rng, label=None):
    """Write a document, as a rule with a word of its class."""
    own = [label.split()[-1]] if label and rng.random() < 0.7 else []
    return " ".join([*own, *rng.choices(WORDS.split(), k=rng.randint(1, 5))])


def draw_labels(rng, n):
    return rng.choices(LABELS[: len(SIZES)], SIZES, k=n)


def fit(kind):
    """Fit a model of a kind."""
    rng, counts = random.Random(kind), LongTailClassifier(random_state=0)
    more = {}
    if kind in ("plain", "register", "names"):
        texts, y = map(list, zip(*FITTED, strict=True))
        model = TextClassifier(counts, remember_documents=kind == "register", random_state=0)
        if kind == "names":
            counts.set_params(memory=2)
            more["class_texts"] = {"owl": "a bird", "axo": "axolotl"}
    elif kind == "vectors":
        texts, y = test_embedder.TEXTS, test_embedder.LABELS
        model = TextClassifier(embedder=test_embedder.encode, random_state=0)
        more["class_texts"] = test_embedder.NAMES
    else:
        n = {"large": 420, "memory": 60, "sets": 60, "paper": 20}[kind]
        y = draw_labels(rng, n)
        texts = [write_text(rng, label) for label in y]
        model = TextClassifier(counts, random_state=0)
        if kind == "large":  # calibrated, with residuals that count
            counts.set_params(memory=3)
            more["class_texts"] = {"owl": "a bird", "axo": "axolotl gills"}
            more["hierarchy"] = {"bear": "mammal", "fox": "mammal", "mammal": "animal"}
        elif kind == "memory":
            counts.set_params(memory=1000)
        elif kind == "sets":
            y = [sorted({label, rng.choice(LABELS)}) for label in y]
            more["class_texts"] = {"axo": "axolotl gills"}
        else:
            model.set_params(classifier=DoubleSamplingClassifier(random_state=0))
    return model.fit(texts, y, **more)


def draw_steps(rng, kind, n):
    """Draw changes of a model of a kind."""
    known = OF_VECTORS if kind == "vectors" else LABELS
    steps = []
    for action in rng.choices(list(WEIGHTS), list(WEIGHTS.values()), k=n):
        if action in ("teach", "forget", "recalibrate"):
            sets = [rng.sample(known, rng.randint(1, 3)) for _ in range(rng.randint(1, 3))]
            labels = sets if kind == "sets" else [labels[0] for labels in sets]
            arguments = [write_text(rng, labels[0]) for labels in sets], labels
        elif action in ("forget again", "undo"):
            arguments = (rng.randrange(10**6),)
        elif action in ("rename_class", "merge_classes"):
            arguments = rng.choice(known), rng.choice(known)
        elif action == "remove_class":
            arguments = (rng.choice(known),)
        elif action == "set_class_text":
            arguments = rng.choice(known), rng.choice(CLASS_TEXTS)
        elif action == "set_hierarchy":
            arguments = ([(rng.choice(NODES), rng.choice(NODES)) for _ in range(3)],)
        elif action == "move_class":
            arguments = rng.choice(NODES), rng.sample(NODES, rng.randint(0, 2))
        else:
            arguments = ()
        steps.append((action, *arguments))
    return steps


def describe(model):
    """Return all that changes change, by label and term, and some predictions."""
    statistics, terms = model.statistics_, np.array(model.vocabulary_.terms)
    rows = np.repeat(np.arange(statistics.n_classes), np.diff(statistics.indptr))
    counts = (statistics.counts * 2.0**-statistics.count_bits).tolist()
    labels, named = model.classes_[rows].tolist(), terms[statistics.indices].tolist()
    there = statistics.document_frequencies > 0
    frequencies = statistics.document_frequencies[there].tolist()
    hierarchy = getattr(model, "hierarchy_", None)
    found = {
        "sizes": dict(zip(model.classes_.tolist(), statistics.class_sizes.tolist(), strict=True)),
        "sums": sorted(zip(labels, named, counts, statistics.centroid_sums.tolist(), strict=True)),
        "frequencies": dict(zip(terms[there].tolist(), frequencies, strict=True)),
        "texts": getattr(model, "class_texts_", None),
        "parents": hierarchy
        and {node: set(hierarchy.parents_of(node)) for node in hierarchy.nodes.tolist()},
    }
    k = min(3, len(model.classes_))
    for method in ("predict_topk", "predict_proba_topk"):
        if hasattr(model, method):
            top = getattr(model, method)(QUESTIONS, k)
            found[method] = top.classes.tolist(), top.scores.tolist()
    return found


def perform(teacher, taught, step):
    """Make a change; what is refused must change nothing."""
    action, *given = step
    call = getattr(teacher, action, None)
    if action == "forget again":
        if not taught:
            return
        text, label = taught[given[0] % len(taught)]
        call, given = teacher.forget, [[text], [label]]
    elif action == "undo":
        numbers = [change.number for change in teacher.changes() if change.in_effect]
        if not numbers:
            return
        call, given = teacher._undo_one, [numbers[given[0] % len(numbers)]]
    elif action == "undo last":
        call = teacher.undo
    before = teacher.model
    try:
        call(*given)
    except ValueError:
        assert teacher.model is before
        return
    if action == "teach":
        taught.extend(zip(*given, strict=True))


class Runner:
    """Runs sequences; models are fitted once.

    Parameters
    ----------
    folder : path-like
        Where to.
    """

    def __init__(self, folder):
        self.folder = Path(folder)

    def steps(self, kind, seed, n):
        """Return the sequence of a seed."""
        rng = random.Random(f"{kind} {seed}")
        if kind in ORACLES:
            return DRAW[kind](rng, n)
        return draw_steps(rng, kind, n)

    def run(self, kind, steps):
        """Run a sequence; raise where something is wrong."""
        file = self.folder / kind
        if kind in ORACLES:
            if not file.exists():
                FIT[kind](file)
            TESTS[kind].hypothesis.inner_test(file, steps)
            return
        if not file.exists():
            fit(kind).save(file)
        more = {"embedder": test_embedder.encode} if kind == "vectors" else {}
        before, overlay.SMALL_TIER = overlay.SMALL_TIER, [1, 256][len(steps) % 2]
        try:
            with tempfile.TemporaryDirectory(dir=self.folder) as folder:
                path = Path(shutil.copy(file, Path(folder) / "model"))
                _run(path, steps, more)
        finally:
            overlay.SMALL_TIER = before

    def shorten(self, kind, steps, seconds=60):
        """Return a part of a sequence that fails as well."""

        def fails(part):
            try:
                self.run(kind, part)
            except Exception:
                return True
            return False

        end, size = time.monotonic() + seconds, len(steps) // 2
        while size:
            first = 0
            while first < len(steps) and time.monotonic() < end:
                part = steps[:first] + steps[first + size :]
                if fails(part):
                    steps = part
                else:
                    first += size
            size //= 2
        return steps


class _Teacher(Teacher):
    def _undo_one(self, number):
        return self.undo(numbers=[number])


def _run(path, steps, more):
    def open_teacher():
        return _Teacher(path, refine="never", **more)

    teacher, other, taught = open_teacher(), open_teacher(), []

    def check():
        other.refresh()
        expected = describe(teacher.model)
        assert describe(other.model) == expected
        assert describe(load(path, **more)) == expected

    for step in steps:
        if step[0] == "refresh":
            other.refresh()
        elif step[0] == "reopen":
            teacher.close()
            teacher = open_teacher()
        elif step[0] == "swap":
            teacher, other = other, teacher
            teacher.refresh()
        elif step[0] == "check":
            check()
        else:
            perform(teacher, taught, step)
    check()
    saved = path.with_name("saved")
    teacher.model.save(saved)
    assert describe(load(saved, **more)) == describe(teacher.model)


# ---- longer sequences for oracles


def draw_sums(rng, n):
    names, steps = list("abcde"), []
    weights = {"teach": 10, "forget": 2, "forget some": 6, "rename": 4, "merge": 4, "remove": 4}
    weights |= {"undo": 4, "undo one": 12, "refine": 2, "compact": 0.5, "reopen": 3}
    for action in rng.choices(list(weights), list(weights.values()), k=n):
        pair = rng.choice(test_changes.POOL), rng.choice(names)
        if action == "teach":
            arguments = ([pair] * rng.randint(1, 2),)
        elif action == "forget":
            arguments = pair
        elif action in ("rename", "merge"):
            arguments = rng.choice(names), rng.choice(names)
        elif action == "remove":
            arguments = (rng.choice(names),)
        elif action in ("forget some", "undo", "undo one"):
            arguments = (rng.randint(1, 2 if action == "undo" else n),)
        else:
            arguments = ()
        steps.append((action, *arguments))
    return steps


def draw_parents(rng, n):
    names, nodes, steps = list("abcde"), list("abcdpq"), []
    weights = {"teach": 4, "rename": 3, "remove": 2, "hierarchy": 3, "move": 8, "undo": 8}
    weights |= {"compact": 0.5, "reopen": 2}

    def some():
        return set(rng.sample(nodes, rng.randint(0, 2)))

    for action in rng.choices(list(weights), list(weights.values()), k=n):
        if action in ("teach", "remove"):
            arguments = (rng.choice(names),)
        elif action == "rename":
            arguments = rng.choice(names), rng.choice(names + nodes)
        elif action == "hierarchy":
            arguments = ({rng.choice(nodes): some() for _ in range(rng.randint(0, 4))},)
        elif action == "move":
            arguments = rng.choice(nodes), some()
        else:
            arguments = (rng.randint(1, n),) if action == "undo" else ()
        steps.append((action, *arguments))
    return steps


def fit_sums(file):
    X, y = zip(*test_changes.START, strict=True)
    LongTailClassifier(random_state=0).fit(np.array(X), list(y)).save(file)


def fit_parents(file):
    y = test_parents.START
    X = np.array([[i % 3, (i + 1) % 2, i % 2, 1] for i in range(len(y))])
    LongTailClassifier(random_state=0).fit(X, y, hierarchy=test_parents.PARENTS).save(file)


DRAW = {"sums": draw_sums, "parents": draw_parents}
FIT = {"sums": fit_sums, "parents": fit_parents}
TESTS = {
    "sums": test_changes.test_teaching_is_summing,
    "parents": test_parents.test_parents_are_those_of_the_live_changes,
}
