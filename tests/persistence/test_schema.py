"""The schema covers every field and parameter, and the format page says what it says."""

import dataclasses
import inspect
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import longtail
from longtail import DoubleSamplingClassifier, LongTailClassifier, TextClassifier
from longtail.exceptions import ModelFileError
from longtail.store import open_model, pack_texts, write_model
from longtail.store.schema import PARAMETERS, SCHEMAS, TEXT, TEXT_VALUES
from longtail.store.state_io import _STATES
from longtail.text import TextVectorizer
from tests.conftest import make_problem
from tests.fuzz.seeds import SEEDS, read_seed
from tools.format_page import format_tables

PAGE = Path(__file__).parents[2] / "docs" / "model-format.md"
GOLDEN = Path(__file__).parent / "golden"
# Of a machine or a session, not of a model; the classifier has parameters of its own.
NOT_SAVED = {"vectorizer", "tokenizer", "n_jobs", "verbose", "classifier", "embedder"}
# Computed from the rest, or known only to the process that fitted the model.
DERIVED = {
    "classes",
    "sample",
    "overlay",
    "calibrations",
    "parent_edits",
    "pending",
}


def test_the_format_page_is_written_from_the_schema():
    """To bring it up to date: python -m tests.persistence.test_schema."""
    _, _, rest = PAGE.read_text().partition("<!-- schema -->\n")
    assert rest.partition("<!-- end of schema -->")[0] == format_tables()


@pytest.mark.parametrize(
    "estimator", [LongTailClassifier, DoubleSamplingClassifier, TextClassifier, TextVectorizer]
)
def test_every_constructor_parameter_is_saved_or_left_out_on_purpose(estimator):
    names = set(inspect.signature(estimator).parameters)
    assert {spec.name for spec in PARAMETERS[estimator.__name__]} == names - NOT_SAVED


@pytest.mark.parametrize("kind", SCHEMAS)
def test_every_field_of_a_state_is_saved_or_derived(kind):
    schema = SCHEMAS[kind]
    saved = {spec.name.split("/")[0] for spec in (*schema.arrays, *schema.values)}
    assert saved == {field.name for field in dataclasses.fields(_STATES[kind])} - DERIVED


def test_every_array_value_and_parameter_is_fuzzed():
    known, fuzzed = {"class_texts.utf8", "feature_names.utf8"}, set()
    for schema in SCHEMAS.values():
        known |= {spec.name for spec in (*schema.arrays, *schema.values, *TEXT, *TEXT_VALUES)}
    known |= {f"{kind}.{spec.name}" for kind, specs in PARAMETERS.items() for spec in specs}
    for seed in SEEDS:
        content = read_seed(seed)
        fuzzed |= content.arrays.keys()
        fuzzed |= content.parameters["values"].keys()
        for kind, given in content.parameters["estimators"].items():
            fuzzed |= {f"{kind}.{name}" for name in given}
    assert known - fuzzed == set()


def test_the_number_of_threads_is_not_in_a_file(tmp_path):
    problem = make_problem()
    LongTailClassifier(n_jobs=2, random_state=0).fit(problem.X, problem.y).save(tmp_path / "model")
    assert "n_jobs" not in open_model(tmp_path / "model").parameters["estimators"].popitem()[1]
    assert longtail.load(tmp_path / "model").n_jobs is None


@pytest.mark.parametrize(
    "labels",
    [
        np.arange(7, dtype=np.int8) - 3,
        np.arange(7, dtype=np.uint64) + 2**63,
        np.array([2**53 + i for i in range(7)]),
        np.arange(7.0, dtype=np.float32),
        np.array([f"class {i}" for i in range(7)]),
        np.array([f"class {i}" for i in range(7)], dtype=object),
        np.array(["x", "x\0", "y", "z", "é", "熊", "\ud800"], dtype=object),
    ],
    ids=lambda labels: f"{labels.dtype.kind}{labels.dtype.itemsize}",
)
def test_labels_keep_their_type(labels, tmp_path):
    problem = make_problem()
    classifier = LongTailClassifier(random_state=0).fit(problem.X, problem.y)
    classifier._state = dataclasses.replace(classifier.state_, classes=labels)
    classifier.save(tmp_path / "model")
    found = longtail.load(tmp_path / "model").classes_
    assert found.dtype == labels.dtype
    assert found.tolist() == labels.tolist()


@pytest.mark.parametrize(
    "labels", [["x", "x\0"], ["x\0", "y"], [2**53 + 1, 0.5], [2**63 + 1, -1]], ids=repr
)
def test_labels_that_numpy_would_change_are_refused(labels):
    with pytest.raises(
        ValueError, match=r"ends with a NUL|no equal among floats|no integer of 64 bits"
    ):
        LongTailClassifier(random_state=0).fit(np.eye(2), labels)


def test_labels_of_two_types_do_not_run_together():
    problem = make_problem()
    classifier = LongTailClassifier(random_state=0).fit(problem.X, problem.y + 2**60)
    for y in (np.array([1.0]), np.array([2**63 + 5], np.uint64)):
        with pytest.raises(ValueError, match="is not exact in a type for both"):
            classifier.partial_fit(problem.X[:1], y)
    with pytest.raises(ValueError, match="ends with a NUL"):
        LongTailClassifier(random_state=0).fit(problem.X, problem.y.astype(str)).rename_class(
            "0", "x\0"
        )


def with_labels(arrays, texts, name="classes.text"):
    kept = {key: array for key, array in arrays.items() if not key.startswith("classes")}
    return kept | pack_texts(name, texts)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (sorted(f"{i:02}" for i in range(24))[::-1], "not sorted"),
        (["a"] * 24, "not sorted, or one twice"),
        ([f"{i:02}" for i in range(23)] + ["99\0"], "ends with a NUL"),
        ([f"{i:02}" for i in range(23)], "must have the shape"),
    ],
)
def test_wrong_labels_are_refused(texts, message, tmp_path):
    file = open_model(GOLDEN / "format_1_long_tail.longtail")
    write_model(tmp_path / "bad", file.kind, file.parameters, with_labels(file.arrays, texts))
    with pytest.raises(ModelFileError, match=message):
        longtail.load(tmp_path / "bad")


LOAD = """
import resource, sys
import longtail
longtail.load(sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
classes = longtail.load(sys.argv[2]).classes_
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, classes.dtype, len(classes[-1]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in kB on Linux")
def test_one_long_label_does_not_make_all_of_them_long(tmp_path):
    """As fixed-width strings these labels would take 24 x 4 x 10 MB."""
    plain = GOLDEN / "format_1_long_tail.longtail"
    file = open_model(plain)
    texts = [f"{i:02}" for i in range(23)] + ["z" * 10_000_000]
    write_model(tmp_path / "m", file.kind, file.parameters, with_labels(file.arrays, texts))
    source = str(Path(longtail.__file__).parents[1])
    run = [sys.executable, "-c", LOAD, str(plain), str(tmp_path / "m")]
    environment = {"PYTHONPATH": source, "PATH": "/usr/bin:/bin"}
    output = subprocess.run(run, env=environment, check=True, capture_output=True, text=True)
    grown, dtype, length = output.stdout.split()
    assert (dtype, length) == ("object", "10000000")
    assert int(grown) < 10 * 10_000_000 / 1024 + 50_000


def test_what_cannot_be_loaded_cannot_be_saved(tmp_path):
    problem = make_problem()
    classifier = LongTailClassifier(random_state=0).fit(problem.X, problem.y)
    with pytest.raises(ValueError, match="cannot be saved: it has a wrong candidates: 'many'"):
        classifier.set_params(candidates="many").save(tmp_path / "model")
    assert not (tmp_path / "model").exists()
    classifier.set_params(candidates=5)
    classifier._state = dataclasses.replace(
        classifier.state_, term_weights=np.full_like(classifier.state_.term_weights, np.nan)
    )
    with pytest.raises(ValueError, match="array 'term_weights' must be from 0"):
        classifier.save(tmp_path / "model")


@pytest.mark.parametrize(
    ("where", "refused"),
    [
        ([0, 1], True),  # two terms of a class
        ([0, "same term"], True),
        ([0, "elsewhere"], False),  # above 2^62 over all classes, but in none and of no term
    ],
)
def test_sums_that_would_overflow_are_refused(tmp_path, where, refused):
    file = open_model(GOLDEN / "format_1_long_tail.longtail")
    indptr, indices = file.arrays["statistics/indptr"], file.arrays["statistics/indices"]
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    other = {
        "same term": (rows > 0) & (indices == indices[0]),
        "elsewhere": (rows > 0) & (indices != indices[0]),
    }
    entries = [np.flatnonzero(other[i])[0] if isinstance(i, str) else i for i in where]
    counts = file.arrays["statistics/centroid_sums"].copy()
    counts[entries] = 2**62 - 2**50
    arrays = {**file.arrays, "statistics/centroid_sums": counts}
    write_model(tmp_path / "m", file.kind, file.parameters, arrays)
    if refused:
        with pytest.raises(ModelFileError, match="add up to at most"):
            longtail.load(tmp_path / "m")
    else:
        longtail.load(tmp_path / "m")


if __name__ == "__main__":
    start, _, rest = PAGE.read_text().partition("<!-- schema -->\n")
    end = rest.partition("<!-- end of schema -->")[2]
    PAGE.write_text(f"{start}<!-- schema -->\n{format_tables()}<!-- end of schema -->{end}")


def test_a_class_of_your_own_is_not_saved(tmp_path):
    class Mine(LongTailClassifier):
        pass

    model = Mine(random_state=0).fit(np.eye(4), ["a", "b", "a", "b"])
    with pytest.raises(TypeError, match="Mine cannot be saved: a file holds no class of your own"):
        model.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())
