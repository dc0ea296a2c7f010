"""Fixtures that several folders of tests share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, settings

from longtail._labels import LabelSets
from longtail.store.changes import WITH_DOCUMENTS, Row, encode
from longtail.store.checks import check_contents, check_rules, check_structure, check_utf8
from longtail.store.schema import STATISTICS, TEXT
from longtail.training.negatives import MinedPairs
from longtail.training.residuals import batch_log_odds, solve_residuals

# `make test` tries a few examples of each property, `make test-all` all of them. Kernels compile on
# first use, which no deadline survives.
_SHARE_OF_QUICK = 4
for _profile, _n_examples in (("quick", 100 // _SHARE_OF_QUICK), ("full", 100)):
    settings.register_profile(
        _profile,
        max_examples=_n_examples,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile("quick")

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@dataclass(frozen=True)
class Problem:
    """A small long-tailed problem with integer counts."""

    X: np.ndarray
    y: np.ndarray
    n_classes: int


def make_problem(
    seed: int = 0, n_documents: int = 60, n_classes: int = 7, n_terms: int = 25
) -> Problem:
    """Draw documents from a term distribution for each class; no class is without documents."""
    rng = np.random.default_rng(seed)
    popularity = 1 / np.arange(1, n_classes + 1)
    y = rng.choice(n_classes, n_documents, p=popularity / popularity.sum())
    y[:n_classes] = np.arange(n_classes)
    profiles = rng.dirichlet(np.full(n_terms, 0.3), n_classes)
    X = np.array([rng.multinomial(rng.integers(1, 20), profiles[c]) for c in y])
    return Problem(X, y, n_classes)


@pytest.fixture
def problem() -> Problem:
    return make_problem()


def examples(n_examples: int) -> settings:
    """Return the settings of a property whose examples cost more, or less, than those of others.

    `n_examples` are tried in the profile `full`, a quarter of them in the profile `quick`.
    """
    if settings.get_current_profile_name() != "full":
        n_examples = max(5, n_examples // _SHARE_OF_QUICK)
    return settings(max_examples=n_examples)


def load_shared(name: str) -> tuple[sp.csr_array, np.ndarray, sp.csr_array, np.ndarray]:
    """Load one of the shared sets, or skip the test where they are absent."""
    path = SHARED_DATA / name / "counts.npz"
    if not path.exists():
        pytest.skip(f"{path} is absent")
    with np.load(path) as z:
        n_train, n_test, _, n_terms = z["shape"]
        parts = {}
        for part, n_rows in (("train", n_train), ("test", n_test)):
            arrays = (z[f"{part}_data"], z[f"{part}_indices"], z[f"{part}_indptr"])
            parts[part] = sp.csr_array(arrays, shape=(n_rows, n_terms))
        return parts["train"], z["train_y"], parts["test"], z["test_y"]


def assert_same_predictions(one, other, X, k=4):
    a, b = one.predict_topk(X, k), other.predict_topk(X, k)
    assert np.array_equal(a.classes, b.classes)
    assert np.array_equal(a.scores, b.scores)


def mined_rows(classes):
    """Rows of classes, the label in column 0, as the pairs that residuals are learned from."""
    classes = np.asarray(classes)
    labels = LabelSets.single(classes[:, 0], np.arange(int(classes.max(initial=0)) + 1))
    return MinedPairs(labels, classes.shape[1] - 1, classes.ravel())


def fit_residuals(documents, mined, scores_of, n_classes, cost, *, n_jobs=None, **masks):
    """Residuals of pairs whose scores are known, a slice of the documents at a time."""
    log_odds = batch_log_odds(mined, scores_of, n_jobs)
    return solve_residuals(documents, mined, log_odds, n_classes, cost, n_jobs=n_jobs, **masks)


def check_arrays(specs, arrays):
    """Check arrays as those of a file are."""
    sizes = check_structure(specs, arrays)
    for spec in sorted(specs, key=lambda spec: not spec.offsets):
        check_contents(spec, arrays, sizes)


def check_statistics(statistics):
    """Check statistics as those of a file are."""
    parts = {"statistics": statistics, "corpus": statistics.corpus}
    arrays = {}
    for spec in STATISTICS:
        part, _, name = spec.name.partition("/")
        arrays[spec.name] = getattr(parts[part], name)
    arrays = {name: array for name, array in arrays.items() if array is not None}
    check_arrays([spec for spec in STATISTICS if spec.name in arrays], arrays)
    names = ("length", "mean_class_length")
    values = {f"corpus/{name}": getattr(statistics.corpus, name) for name in names}
    check_rules(arrays, values | {"statistics/count_bits": statistics.count_bits})


def check_vocabulary(vocabulary):
    """Check a vocabulary as that of a file is; its tables refuse a term that is there twice."""
    specs = [spec for spec in TEXT if spec.name.startswith("vocabulary/")]
    check_arrays(specs, {spec.name: getattr(vocabulary, spec.name[11:]) for spec in specs})
    check_utf8("vocabulary", vocabulary.utf8, vocabulary.offsets, "strict")
    _ = vocabulary.tables


def single_labels(y, n_classes=None):
    """Class ids as label sets of one label each."""
    y = np.asarray(y, np.int64)
    n_classes = int(y.max(initial=-1)) + 1 if n_classes is None else n_classes
    return LabelSets.single(y, np.arange(n_classes))


def as_row(action, fields):
    """A row of a journal without numbers: what is shown of documents, or the facts of an edit."""
    data = fields if isinstance(fields, bytes) else encode(fields)
    return Row(content=data) if action in WITH_DOCUMENTS else Row(facts=data)
