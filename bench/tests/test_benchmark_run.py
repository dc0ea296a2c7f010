"""Systems in real processes: rows, failures, limits, searches, files that survive anything."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
from benchmark_data import write_counts
from longtail_bench import worker
from longtail_bench.baselines import BM25
from longtail_bench.data import load_counts
from longtail_bench.environments import find_environment
from longtail_bench.processes import Limits, RunError, run_limited, session_processes
from longtail_bench.rows import Row, append_row, read_rows
from longtail_bench.run import run
from longtail_bench.splits import hold_out, write_splits
from longtail_bench.systems import SYSTEMS, System, trials

from longtail.datasets import DataFormatError
from tests.conftest import make_problem

ODD_SYSTEMS = '''
import os, subprocess, sys, time
from pathlib import Path
import numpy as np
from sklearn.base import BaseEstimator

class Constant(BaseEstimator):
    """Always the same class, and nothing else."""
    def __init__(self, best=0, n_jobs=None):
        self.best, self.n_jobs = best, n_jobs
    def fit(self, X, y):
        return self
    def rank(self, X, k):
        return np.full((X.shape[0], 1), self.best), np.zeros((X.shape[0], 1))

class Broken(Constant):
    def fit(self, X, y):
        print("a line that is not the last")
        raise ValueError(f"cannot learn with best={self.best}")

class Slow(Constant):
    def fit(self, X, y):
        Path(os.environ["PID_FILE"]).write_text(str(os.getpid()))
        time.sleep(60)

class Greedy(Constant):
    """Its child takes the memory."""
    def fit(self, X, y):
        code = "import time; hoard = bytearray(400_000_000); time.sleep(60)"
        child = subprocess.Popen([sys.executable, "-c", code])
        Path(os.environ["PID_FILE"]).write_text(str(child.pid))
        child.wait()
'''


@pytest.fixture
def letters(tmp_path):
    problem = make_problem(n_documents=300, n_classes=20, n_terms=60)
    return write_counts(tmp_path / "data" / "letters", problem.X, problem.y, 220)


@pytest.fixture
def odd(tmp_path, monkeypatch):
    """Add systems that do nothing well; returns the file where one leaves a process number."""
    (tmp_path / "odd_systems.py").write_text(ODD_SYSTEMS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("PID_FILE", str(tmp_path / "pid"))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "odd_systems", raising=False)
    for name in ("Constant", "Broken", "Slow", "Greedy"):
        system = System(name, "odd_systems", name, grid={"best": (1, 2, 3)})
        monkeypatch.setitem(SYSTEMS, name.lower(), system)
    return tmp_path / "pid"


def is_alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def wait_until(condition, what, seconds=60):
    for _ in range(int(seconds / 0.05)):
        if condition():
            return
        time.sleep(0.05)
    pytest.fail(f"waited in vain for {what}")


# --- rows of real processes ---------------------------------------------------------------------


def test_a_row_says_everything(letters, tmp_path):
    steps, seen, out = [], [], tmp_path / "results.jsonl"
    options = {"n_threads": 1, "data_folder": letters.parent, "out": out, "time_limit": 300}
    (row,) = run(
        ["letters"],
        ["bm25"],
        settings={"bm25": {"k1": 2.0}},
        progress=lambda *step: steps.append(step),
        on_row=seen.append,
        **options,
    )
    assert row.error is None
    data = load_counts(letters)
    model = BM25(k1=2.0, n_jobs=1).fit(data.X_train, data.y_train)
    assert row.accuracy == np.mean(model.predict(data.X_test) == data.y_test)
    assert row.accuracy <= row.top_5 <= 1
    assert (row.n_train, row.n_test, row.n_classes, row.n_terms) == (220, 80, 20, 60)
    assert sum(band.n_documents for band in row.bands) == 80
    assert row.fit_cpu_seconds > 0 < row.predict_cpu_seconds
    assert 0 < row.fit_seconds < row.warmup_seconds + 60
    assert 20 < row.peak_megabytes < 4000
    assert row.model_bytes == model.model_bytes()
    assert (row.settings, row.parameters) == ({"k1": 2.0}, {"k1": 2.0, "b": 0.75})
    assert {"python", "longtail", "numpy", "numba"} <= set(row.versions)
    assert row.machine["cores"] == os.cpu_count()
    assert (row.n_threads, row.time_limit) == (1, 300)
    assert seen == [row]
    assert [kept.to_json() for kept in read_rows(out)] == [row.to_json()]
    assert steps[-1] == ("done", 1, 1)


def test_failures_are_rows(letters, odd, tmp_path):
    out = tmp_path / "results.jsonl"
    broken, constant, misspelt = run(
        [letters], ["broken", "constant", "bm25"], out=out, settings={"bm25": {"k2": 1}}
    )
    assert (broken.outcome, broken.error) == ("failed", "ValueError: cannot learn with best=0")
    assert np.isnan(broken.accuracy)
    assert constant.accuracy == np.mean(load_counts(letters).y_test == 0)
    assert np.isnan(constant.top_5)  # it ranks no second class
    assert misspelt.error.endswith("BM25 has no setting 'k2'; it has b, k1.")
    again = read_rows(out)
    assert [row.error for row in again] == [broken.error, None, misspelt.error]
    assert "NaN" not in out.read_text()


def test_time_limit(letters, odd):
    (row,) = run([letters], ["slow"], time_limit=4)
    assert (row.outcome, row.error) == ("time", "not finished after 4 s")
    assert not odd.exists() or not is_alive(int(odd.read_text()))


@pytest.mark.skipif(sys.platform != "linux", reason="memory is looked up in /proc")
def test_memory_of_all_processes_is_limited(letters, odd):
    (row,) = run([letters], ["greedy"], memory_limit=350)
    assert (row.outcome, row.error) == ("memory", "more than 350 MB of memory")
    assert row.peak_megabytes > 350
    wait_until(lambda: not is_alive(int(odd.read_text())), "the end of the child")


def test_unreadable_data_are_rows(tmp_path):
    broken = write_counts(tmp_path / "broken", np.ones((4, 3)), np.zeros(4), 2, test_y=None)
    (row,) = run([broken], ["bm25"])
    assert row.outcome == "failed"
    assert row.error.endswith("there is no array test_y")


def test_short_rankings_are_padded(tmp_path):
    X = np.array([[1, 0], [0, 1], [1, 0], [0, 1]])
    folder = write_counts(tmp_path / "two", X, np.array([0, 1, 0, 1]), n_train=2)
    (row,) = run([folder], ["bm25"], n_threads=1)
    assert (row.error, row.accuracy, row.top_5) == (None, 1.0, 1.0)


def test_peer_without_environment_is_a_row_that_is_tried_again(letters, tmp_path):
    (tmp_path / "file").touch()
    out = tmp_path / "results.jsonl"
    for n_rows in (1, 2):
        (row,) = run([letters], ["parabel"], environments=tmp_path / "file", out=out)
        assert row.outcome == "environment"
        assert row.error.startswith("no environment for omikuji")
        assert len(read_rows(out)) == n_rows


@pytest.mark.parametrize("name", [name for name, s in SYSTEMS.items() if s.environment])
def test_peers(letters, name):
    if find_environment(SYSTEMS[name].environment) is None:
        pytest.skip(f"no environment for {name} is here")
    settings = {"recalltree": {"bits": 18}}  # less memory
    row, simple = run([letters], [name, "bm25"], n_threads=1, settings=settings)
    assert row.error is None
    assert row.accuracy > simple.accuracy - 0.4
    assert row.warmup_seconds == 0
    assert row.model_bytes > 1000
    assert "numba" not in row.versions


# --- interruption and resumption ----------------------------------------------------------------


def test_finished_rows_are_not_run_again(letters, odd, tmp_path):
    out, seen = tmp_path / "results.jsonl", []
    options = {"out": out, "on_row": seen.append}
    first = run([letters], ["constant", "broken"], **options)
    late = run([letters], ["slow"], time_limit=1, **options)
    assert len(seen) == 3
    known = run([letters], ["constant", "broken"], **options)
    known += run([letters], ["slow"], time_limit=0.5, **options)
    assert [row.to_json() for row in known] == [row.to_json() for row in first + late]
    assert len(seen) == 3
    run([letters], ["constant"], seeds=[1], **options)
    run([letters], ["constant"], settings={"constant": {"best": 4}}, **options)
    assert len(seen) == 5
    run([letters], ["constant", "slow"], time_limit=2, **options)
    assert [row.system for row in seen[5:]] == ["slow"]  # it had less time before
    run([letters], ["constant", "broken"], retry=True, **options)
    assert [row.system for row in seen[6:]] == ["broken"]
    assert [row.to_json() for row in read_rows(out)] == [row.to_json() for row in seen]


def test_what_makes_a_row_the_same_run():
    row = Row("bm25", "letters", 0, settings={"k1": 2, "b": 1}, data_digest="a")
    assert replace(row, settings={"b": 1, "k1": 2}, accuracy=1.0).key == row.key
    for other in (
        {"data_digest": "b"},
        {"system": "knn"},
        {"seed": 1},
        {"split": "held-out"},
        {"settings": {"k1": 2}},
        {"n_threads": 4},
    ):
        assert replace(row, **other).key != row.key


DRIVER = """
import sys
from longtail_bench.run import run
from longtail_bench.systems import SYSTEMS, System
for name in ("Constant", "Slow"):
    SYSTEMS[name.lower()] = System(name, "odd_systems", name)
run([sys.argv[1]], ["constant", "slow"], out=sys.argv[2], time_limit=100)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="workers end with their parent on Linux alone")
def test_a_killed_run_goes_on(letters, odd, tmp_path):
    out, seen = tmp_path / "results.jsonl", []
    driver = subprocess.Popen([sys.executable, "-c", DRIVER, str(letters), str(out)])
    wait_until(lambda: odd.exists() and odd.read_text(), "the second system")
    driver.kill()
    driver.wait()
    wait_until(lambda: not is_alive(int(odd.read_text())), "the end of the worker")
    (kept,) = read_rows(out)
    with out.open("a") as file:
        file.write('{"system": "slow", "da')  # as when the machine goes down
    rows = run([letters], ["constant", "slow"], out=out, time_limit=2, on_row=seen.append)
    assert rows[0].to_json() == kept.to_json()
    assert [row.system for row in seen] == ["slow"]
    assert [row.to_json() for row in read_rows(out)] == [row.to_json() for row in rows]


def test_an_interrupt_leaves_no_worker(letters, odd, monkeypatch):
    started = []

    class Interrupted(subprocess.Popen):
        def wait(self, timeout=None):
            if not started:
                started.append(self.pid)
                raise KeyboardInterrupt
            return super().wait(timeout)

    monkeypatch.setattr("longtail_bench.processes.subprocess.Popen", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        run([letters], ["slow"])
    assert not is_alive(started[0])


# --- files of rows ------------------------------------------------------------------------------


def test_rows_come_back_as_they_were(tmp_path):
    row = Row("bm25", "letters", 3, settings={"k1": 2}, accuracy=0.5, machine={"cores": 2})
    append_row(tmp_path / "rows", row)
    append_row(tmp_path / "rows", replace(row, seed=4, error="no"))
    first, second = read_rows(tmp_path / "rows")
    assert first.to_json() == row.to_json()
    assert (second.seed, second.error) == (4, "no")
    assert np.isnan(first.top_5)


def test_torn_line_is_cut_off_and_others_are_not_tolerated(tmp_path):
    path, row = tmp_path / "rows", Row("bm25", "letters", 0)
    append_row(path, row)
    with path.open("ab") as file:
        file.write(row.to_json().encode()[:-1] + "é".encode()[:1])
    assert len(read_rows(path)) == 1
    append_row(path, replace(row, seed=1))
    assert [kept.seed for kept in read_rows(path)] == [0, 1]
    path.write_text(row.to_json() + "\n[1, 2]\n" + row.to_json() + "\n")
    with pytest.raises(DataFormatError, match=r"rows, line 2: this is no row of results"):
        read_rows(path)


def test_full_disk_leaves_the_rows_that_are_there(tmp_path):
    path, row = tmp_path / "rows", Row("bm25", "letters", 0)
    append_row(path, row)
    size = path.stat().st_size
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, old[1]))
        with pytest.raises(OSError, match=r"cannot write to .*rows: File too large; the rows in"):
            append_row(path, replace(row, seed=1))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        signal.signal(signal.SIGXFSZ, handler)
    assert path.stat().st_size == size
    assert len(read_rows(path)) == 1


def test_file_that_cannot_be_written_stops_before_anything_runs(letters, tmp_path):
    with pytest.raises(OSError, match="no-such-folder"):
        run([letters], ["bm25"], out=tmp_path / "no-such-folder" / "rows")


# --- searches -----------------------------------------------------------------------------------


def test_search_uses_held_out_documents_alone(letters, odd, tmp_path):
    out = tmp_path / "results.jsonl"
    (row,) = run([letters], ["constant"], tune=3, out=out)
    *tried, last = read_rows(out)
    assert last.to_json() == row.to_json()
    assert [trial.split for trial in tried] == ["held-out"] * 3
    assert all(trial.n_train + trial.n_test == 220 for trial in tried)
    best = max(tried, key=lambda trial: trial.accuracy)
    assert (row.settings, row.tuned, row.split) == (best.settings, 3, "test")
    assert (row.n_train, row.n_test) == (220, 80)
    (again,) = run([letters], ["constant"], tune=3, out=out)
    assert again.to_json() == row.to_json()
    assert len(read_rows(out)) == 4


def test_search_without_any_result_is_a_row(letters, odd, tmp_path):
    (row,) = run([letters], ["broken"], tune=2, out=tmp_path / "rows")
    assert (row.outcome, row.split, row.tuned) == ("failed", "test", 2)
    assert len(read_rows(tmp_path / "rows")) == 3


def test_hold_out_keeps_a_document_of_each_class(letters):
    data = load_counts(letters)
    part = hold_out(data)
    assert part.X_test.shape[0] == 22
    assert set(part.y_train) == set(data.y_train)
    rows = [X.toarray().tolist() for X in (part.X_train, part.X_test)]
    assert sorted(rows[0] + rows[1]) == sorted(data.X_train.toarray().tolist())
    np.testing.assert_array_equal(hold_out(data).y_test, part.y_test)
    alone = replace(data, X_train=data.X_train[:20], y_train=np.arange(20))
    with pytest.raises(ValueError, match="no document can be held out"):
        hold_out(alone)


def test_trials_have_the_same_budget():
    for name, system in SYSTEMS.items():
        tried = trials(name, 4, seed=0)
        assert tried[0] == dict(system.settings)
        assert len(tried) <= 4
        assert len({json.dumps(one, sort_keys=True) for one in tried}) == len(tried)
    every = [{"k1": k1, "b": b} for k1 in (1.2, 2.0) for b in (0.5, 0.75, 0.9)]
    assert trials("bm25", 100, 0) == [{}, *(one for one in every if one != {"k1": 1.2, "b": 0.75})]


def test_settings_and_grids_name_parameters_that_exist():
    for name, system in SYSTEMS.items():
        parameters = getattr(import_module(system.module), system.estimator)().get_params()
        assert set(system.settings) | set(system.grid) <= set(parameters), name


# --- what cannot be run -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"systems": ["nonsense"]}, "systems must be among longtail, text, .*; got 'nonsense'"),
        ({"systems": []}, "systems must be a list with at least one entry"),
        ({"systems": "bm25"}, "systems must be a list"),
        ({"settings": {"nonsense": {}}}, "systems must be among .*; got 'nonsense'"),
        ({"data": []}, "data must be a list with at least one entry"),
        ({"data": "letters"}, "data must be a list"),
        ({"seeds": ()}, "seeds must be a list"),
        ({"n_threads": 0}, "n_threads must be at least 1; got 0"),
        ({"time_limit": 0}, "time_limit must be a number of seconds above 0; got 0"),
        ({"memory_limit": -1}, "memory_limit must be a number of MB above 0; got -1"),
        ({"tune": -1}, "tune must be a number of settings to try, or 0; got -1"),
    ],
)
def test_bad_arguments(letters, arguments, message):
    with pytest.raises(ValueError, match=message):
        run(**({"data": [letters], "systems": ["bm25"]} | arguments))


def test_absent_data_set_stops_before_anything_runs(letters):
    rows = []
    with pytest.raises(FileNotFoundError, match="no data set digits"):
        run(["letters", "digits"], ["bm25"], data_folder=letters.parent, on_row=rows.append)
    assert rows == []


# --- parts of it --------------------------------------------------------------------------------


def test_worker_reads_no_test_labels(letters, tmp_path):
    write_splits(load_counts(letters), tmp_path / "parts.npz")
    with np.load(tmp_path / "parts.npz") as arrays:
        assert "test_y" not in arrays.files
    X, y = worker.load_part(tmp_path / "parts.npz", "train")
    np.testing.assert_array_equal(X.toarray(), load_counts(letters).X_train.toarray())
    np.testing.assert_array_equal(y, load_counts(letters).y_train)


def test_stopwatch_counts_the_processor_of_children():
    code = "sum(range(10**7)); print(flush=True); input()"
    stopwatch = worker.Stopwatch()
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        child.stdout.readline()
        living = stopwatch.read()
        child.communicate(b"\n")
    assert living.seconds > 0
    assert living.cpu_seconds > 0.05
    assert stopwatch.read().cpu_seconds >= living.cpu_seconds - 0.02


def test_process_that_fails_or_is_killed(tmp_path):
    def end(code):
        with pytest.raises(RunError) as caught:
            run_limited(
                [sys.executable, "-c", code], os.environ, Limits(60, 1e6), tmp_path / "messages"
            )
        return caught.value.outcome, str(caught.value)

    assert end("print('first'); raise SystemExit('the reason')") == ("failed", "the reason")
    assert end("raise SystemExit(3)") == ("failed", "ended with exit code 3")
    killed = "import os; os.kill(os.getpid(), 9)"
    assert end(killed) == ("failed", "ended by SIGKILL, as when memory runs out")
    assert end("raise MemoryError('needs 9 GB')") == ("memory", "MemoryError: needs 9 GB")


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")
def test_what_a_process_leaves_behind_is_ended(tmp_path):
    code = (
        "import os, subprocess, sys;"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']);"
        "print(os.getpid(), child.pid)"
    )
    run_limited([sys.executable, "-c", code], os.environ, Limits(60), tmp_path / "messages")
    session, child = (int(number) for number in (tmp_path / "messages").read_text().split())
    wait_until(lambda: not session_processes(session), "the end of the session")
    assert child not in session_processes(session)
