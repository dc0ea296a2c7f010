"""Systems side by side: data folders, environments of peers, workers in real processes."""

import lzma
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from longtail.baselines import NearestCentroid
from longtail.benchmark import environments, worker
from longtail.benchmark.compare import SYSTEMS, Row, compare, cost_ratios, write_parts
from longtail.benchmark.data import find_data_set, find_data_sets, load_counts
from longtail.datasets import DataFormatError
from tests.conftest import make_problem


def write_counts(
    folder: Path, X, y, n_train: int, n_classes: int | None = None, **replaced
) -> Path:
    """Store counts the way the data folders hold them."""
    folder.mkdir(parents=True)
    n_classes = int(y.max()) + 1 if n_classes is None else n_classes
    arrays = {"shape": np.array([n_train, len(y) - n_train, n_classes, X.shape[1]])}
    for part, rows in (("train", slice(n_train)), ("test", slice(n_train, None))):
        counts = sp.csr_array(X[rows].astype(np.uint16))
        arrays[f"{part}_data"], arrays[f"{part}_indices"] = counts.data, counts.indices
        arrays[f"{part}_indptr"], arrays[f"{part}_y"] = counts.indptr, y[rows].astype(np.int32)
    arrays |= replaced
    np.savez(folder / "counts.npz", **{k: v for k, v in arrays.items() if v is not None})
    return folder


@pytest.fixture
def letters(tmp_path):
    problem = make_problem(n_documents=300, n_classes=20, n_terms=60)
    return write_counts(tmp_path / "data" / "letters", problem.X, problem.y, 220)


# --- data ---------------------------------------------------------------------------------------


def test_sets_are_found_by_name(letters):
    (letters.parent / "empty").mkdir()
    assert find_data_sets(letters.parent) == {"letters": letters}
    assert find_data_set("letters", letters.parent) == letters
    assert find_data_set(letters, None) == letters


def test_absent_sets_say_where_was_looked(letters, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no folder of data sets at .*nowhere"):
        find_data_sets(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match=r"counts\.npz is missing in each folder of"):
        find_data_sets(letters)
    with pytest.raises(
        FileNotFoundError, match=r"no data set digits: .*digits/counts\.npz.*letters"
    ):
        find_data_set("digits", letters.parent)
    with pytest.raises(FileNotFoundError, match=r"counts\.npz is missing in .*data"):
        load_counts(letters.parent)


def test_counts_without_names(letters):
    problem = make_problem(n_documents=300, n_classes=20, n_terms=60)
    data = load_counts(letters)
    np.testing.assert_array_equal(data.X_train.toarray(), problem.X[:220])
    np.testing.assert_array_equal(data.X_test.toarray(), problem.X[220:])
    np.testing.assert_array_equal(data.y_test, problem.y[220:])
    np.testing.assert_array_equal(data.classes, np.arange(20))
    np.testing.assert_array_equal(data.terms, np.arange(60))


def test_names_and_classes_without_training_documents(tmp_path):
    X, y = np.eye(4, 3) + 1, np.array([2, 0, 1, 2])
    folder = write_counts(tmp_path / "unseen", X, y, n_train=2)
    (folder / "classes.txt.xz").write_bytes(lzma.compress(b"zero\none\ntwo\n"))
    (folder / "terms.txt.xz").write_bytes(lzma.compress(b"a\nb\nc\n"))
    data = load_counts(folder)
    assert data.n_train_classes == 2
    assert data.n_unseen == 1
    assert data.classes.tolist() == ["zero", "two", "one"]
    assert data.classes[data.y_train].tolist() == ["two", "zero"]
    assert data.classes[data.y_test].tolist() == ["one", "two"]
    assert data.terms.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("replaced", "message"),
    [
        ({"test_indptr": None}, "there is no array test_indptr"),
        ({"train_y": np.array([0])}, "one class number for each"),
        ({"train_y": np.array([0, 7, 1])}, "class numbers from 0 to 1; got 0 to 7"),
        ({"train_indices": np.array([0, 1, 9, 0, 1, 2, 0, 1, 2])}, "cannot be read"),
        ({"shape": np.array([3, 1])}, "cannot be read"),
        ({"train_y": np.array([None, 1, 1])}, "cannot be read"),
    ],
)
def test_bad_counts(tmp_path, replaced, message):
    folder = write_counts(
        tmp_path / "bad", np.ones((4, 3)), np.array([0, 1, 1, 0]), n_train=3, **replaced
    )
    with pytest.raises(DataFormatError, match=message):
        load_counts(folder)


def test_counts_that_are_no_archive(tmp_path):
    (tmp_path / "counts.npz").write_bytes(b"PK\x03\x04 cut short")
    with pytest.raises(DataFormatError, match="cannot be read"):
        load_counts(tmp_path)


def test_wrong_number_of_names(letters):
    (letters / "classes.txt.xz").write_bytes(lzma.compress(b"one\ntwo\n"))
    with pytest.raises(DataFormatError, match="must have 20 lines"):
        load_counts(letters)


# --- environments -------------------------------------------------------------------------------


def test_folder_of_environments(monkeypatch, tmp_path):
    monkeypatch.setenv("LONGTAIL_ENVIRONMENTS", str(tmp_path / "here"))
    assert environments.environments_folder() == tmp_path / "here"
    assert environments.environments_folder(tmp_path / "there") == tmp_path / "there"
    monkeypatch.delenv("LONGTAIL_ENVIRONMENTS")
    assert environments.environments_folder().parts[-2:] == ("longtail", "environments")


def test_environment_is_created_once_and_again_after_an_interruption(monkeypatch, tmp_path):
    commands = []

    def run(name, place, step, command):
        commands.append(list(command))
        (place / "bin").mkdir(parents=True, exist_ok=True)
        (place / "bin" / "python").touch()

    monkeypatch.setattr(environments, "_run", run)
    assert environments.find_environment("pecos", tmp_path) is None
    python = environments.ensure_environment("pecos", tmp_path)
    assert environments.find_environment("pecos", tmp_path) == python
    assert commands[0] == [sys.executable, "-m", "venv", str(tmp_path / "pecos")]
    assert {command[0] for command in commands[1:]} == {str(python)}
    assert commands[2][-2:] == ["--no-deps", "libpecos==1.2.8"]
    assert environments.ensure_environment("pecos", tmp_path) == python
    assert len(commands) == 4
    (tmp_path / "pecos" / "complete.json").unlink()
    (tmp_path / "pecos" / "left over").touch()
    assert environments.find_environment("pecos", tmp_path) is None
    environments.ensure_environment("pecos", tmp_path)
    assert len(commands) == 8
    assert not (tmp_path / "pecos" / "left over").exists()
    other = environments.Peer(("numpy<2",), ("libpecos",), "pecos")
    monkeypatch.setitem(environments.PEERS, "pecos", other)
    assert environments.find_environment("pecos", tmp_path) is None


def test_variables_that_reach_into_an_installation_are_left_out(monkeypatch):
    monkeypatch.setenv("PIP_TARGET", "/elsewhere")
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    monkeypatch.setenv("PIP_TIMEOUT", "15")
    assert not {"PIP_TARGET", "PYTHONPATH"} & set(environments.clean_variables())
    assert environments.clean_variables()["PIP_TIMEOUT"] == "15"


def test_pip_failure_is_one_line_and_is_not_taken_for_an_environment(monkeypatch, tmp_path):
    peer = environments.Peer(("no-such-package-of-longtail",), (), "nothing")
    monkeypatch.setitem(environments.PEERS, "absent", peer)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(environments.PeerEnvironmentError) as caught:
        environments.ensure_environment("absent", tmp_path)
    assert "no environment for absent" in str(caught.value)
    assert "pip install failed" in str(caught.value)
    assert "no-such-package-of-longtail" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert environments.find_environment("absent", tmp_path) is None


def test_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(environments.PeerEnvironmentError, match="no environment for pecos in"):
        environments.ensure_environment("pecos", tmp_path / "file")


# --- workers and rows ---------------------------------------------------------------------------


def test_rows_of_real_processes(letters):
    seen, steps = [], []
    rows = compare(
        ["letters"],
        ["centroid", "paper"],
        n_threads=1,
        seeds=(0, 1),
        data_folder=letters.parent,
        progress=lambda *step: steps.append(step),
        on_row=seen.append,
    )
    assert [row.error for row in rows] == [None] * 4
    assert [(row.system, row.data, row.seed) for row in rows] == [
        ("centroid", "letters", 0),
        ("paper", "letters", 0),
        ("centroid", "letters", 1),
        ("paper", "letters", 1),
    ]
    assert seen == rows
    assert steps[-1] == ("letters: done", 4, 4)
    data = load_counts(letters)
    model = NearestCentroid().fit(data.X_train, data.y_train)
    for row in rows:
        assert row.n_test == 80
        assert 0 < row.macro_f1 <= row.top_5 <= 1
        assert row.accuracy <= row.top_5
        assert sum(band.n_documents for band in row.bands) == 80
        assert 0 < row.fit_seconds < row.warmup_seconds + 60
        assert row.fit_processor_seconds > 0
        assert row.predict_processor_seconds > 0
        assert 20 < row.peak_megabytes < 4000
    assert rows[0].accuracy == np.mean(model.predict(data.X_test) == data.y_test)
    assert rows[0].accuracy == rows[2].accuracy


def test_short_rankings_are_padded(tmp_path):
    X = np.array([[1, 0], [0, 1], [1, 0], [0, 1]])
    folder = write_counts(tmp_path / "two", X, np.array([0, 1, 0, 1]), n_train=2)
    (row,) = compare([folder], ["centroid"], n_threads=1)
    assert (row.error, row.accuracy, row.top_5) == (None, 1.0, 1.0)


def test_failure_and_time_out_are_rows(letters, tmp_path):
    lonely = write_counts(tmp_path / "lonely", np.ones((4, 3)), np.zeros(4), n_train=2)
    broken = write_counts(tmp_path / "broken", np.ones((4, 3)), np.zeros(4), 2, test_y=None)
    failed, unreadable = compare([lonely, broken], ["paper"], n_threads=1)
    assert failed.error.startswith("ValueError: ")
    assert "class" in failed.error
    assert np.isnan(failed.accuracy)
    assert unreadable.error.endswith("there is no array test_y")
    (late,) = compare([letters], ["centroid"], time_limit=0.01)
    assert late.error == "not finished after 0.01 s"


def test_peer_without_environment_is_a_row(letters, tmp_path):
    (tmp_path / "file").touch()
    (row,) = compare([letters], ["pecos"], environments=tmp_path / "file")
    assert row.error.startswith("no environment for pecos")


def test_an_interrupt_leaves_no_worker(letters, monkeypatch):
    started = []

    class Interrupted(subprocess.Popen):
        def wait(self, timeout=None):
            if not started:
                started.append(self.pid)
                raise KeyboardInterrupt
            return super().wait(timeout)

    monkeypatch.setattr("longtail.benchmark.compare.subprocess.Popen", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        compare([letters], ["centroid"])
    with pytest.raises(ProcessLookupError):
        os.kill(started[0], 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"systems": ["fasttext"]}, "systems must be among longtail, paper, centroid, pecos; got"),
        ({"systems": []}, "systems must be a list with at least one entry"),
        ({"data": []}, "data must be a list with at least one entry"),
        ({"data": "letters"}, "data must be a list"),
        ({"seeds": ()}, "seeds must be a list"),
        ({"n_threads": 0}, "n_threads must be at least 1; got 0"),
        ({"time_limit": 0}, "time_limit must be a number of seconds above 0; got 0"),
    ],
)
def test_bad_arguments(letters, arguments, message):
    with pytest.raises(ValueError, match=message):
        compare(**({"data": [letters], "systems": ["centroid"]} | arguments))


def test_absent_data_set_stops_before_anything_runs(letters):
    rows = []
    with pytest.raises(FileNotFoundError, match="no data set digits"):
        compare(["letters", "digits"], ["centroid"], data_folder=letters.parent, on_row=rows.append)
    assert rows == []


def test_worker_reads_no_test_labels(letters, tmp_path):
    write_parts(load_counts(letters), tmp_path / "parts.npz")
    with np.load(tmp_path / "parts.npz") as arrays:
        assert "test_y" not in arrays.files
    X, y = worker.load_part(tmp_path / "parts.npz", "train")
    np.testing.assert_array_equal(X.toarray(), load_counts(letters).X_train.toarray())
    np.testing.assert_array_equal(y, load_counts(letters).y_train)


def test_stopwatch_counts_the_processor_of_children():
    stopwatch = worker.Stopwatch()
    subprocess.run([sys.executable, "-c", "sum(range(10**6))"], check=True)
    time.sleep(0.01)
    cost = stopwatch.read()
    assert cost.seconds >= 0.01
    assert cost.processor_seconds > 0


def test_pecos_ranking_breaks_ties_by_class():
    scores = sp.csr_matrix(
        (np.array([0.5, 0.9, 0.5, 0.7]), np.array([8, 2, 3, 6]), np.array([0, 3, 3, 4])),
        shape=(3, 10),
    )
    ranking = worker.Pecos.ranking(None, scores)
    assert ranking.tolist() == [[2, 3, 8, -1, -1], [-1] * 5, [6, -1, -1, -1, -1]]


@pytest.mark.skipif(
    environments.find_environment("pecos") is None, reason="no environment with PECOS is here"
)
def test_pecos(letters):
    centroid, pecos = compare([letters], ["centroid", "pecos"], n_threads=1)
    assert pecos.error is None
    assert pecos.accuracy > centroid.accuracy - 0.3
    assert 0 < pecos.tfidf_processor_seconds < pecos.fit_processor_seconds
    assert pecos.warmup_seconds == 0


# --- ratios -------------------------------------------------------------------------------------


def cost_row(system: str, data: str, seed: int, cost: float, error: str | None = None) -> Row:
    return Row(
        system,
        data,
        seed,
        fit_processor_seconds=cost,
        predict_processor_seconds=2 * cost,
        peak_megabytes=3 * cost,
        error=error,
    )


def test_ratios_divide_means_over_seeds():
    rows = [
        cost_row("longtail", "a", 0, 3.0),
        cost_row("longtail", "a", 1, 6.0),
        cost_row("pecos", "a", 0, 2.0),
        cost_row("pecos", "a", 1, 4.0),
        cost_row("longtail", "b", 0, 1.0),
        cost_row("longtail", "c", 0, 1.0),
        cost_row("pecos", "c", 0, float("nan"), error="not finished after 1 s"),
    ]
    a, b, c = cost_ratios(rows)
    assert (a.data, a.fit_processor, a.predict_processor, a.peak_memory) == ("a", 1.5, 1.5, 1.5)
    assert b.error == "pecos: not run"
    assert c.error == "pecos: not finished after 1 s"
    assert np.isnan(c.fit_processor)


def test_every_system_has_a_name():
    assert set(environments.PEERS) < set(SYSTEMS)
