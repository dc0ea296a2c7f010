"""The change log under real crashes: killed processes, full disks, two processes at once."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import traceback
import warnings
from pathlib import Path

import numpy as np
import pytest

import longtail
from longtail import LongTailClassifier, ModelFileError, Teacher, load
from longtail.store.container import read_checksum
from longtail.store.journal import ChangeLog, log_path, read_log
from tests.conftest import assert_same_predictions, make_problem

fcntl = pytest.importorskip("fcntl")
resource = pytest.importorskip("resource")

SOURCE = Path(longtail.__file__).parents[1]
PROBLEM = make_problem()
NEW = make_problem(seed=3, n_documents=20).X


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    path = tmp_path_factory.mktemp("fitted") / "model"
    LongTailClassifier(random_state=0).fit(PROBLEM.X, PROBLEM.y.astype(str)).save(path)
    return path


@pytest.fixture
def path(fitted, tmp_path):
    return shutil.copy(fitted, tmp_path / "model")


class Child:
    """A process that runs a function, for it to be killed; it says how far it is in lines."""

    def __init__(self, function, *arguments):
        here, there = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # other tests' idle threads do not matter to the child
            self.pid = os.fork()
        if self.pid == 0:
            self.run(function, arguments, there)
        os.close(there)
        self.output = os.fdopen(here)

    @staticmethod
    def run(function, arguments, there):
        status = 1
        try:
            function(
                lambda *words: os.write(there, f"{' '.join(map(str, words))}\n".encode()),
                *arguments,
            )
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        return self.wait()

    def wait(self):
        with self.output:
            lines = self.output.read().splitlines()
        return os.waitpid(self.pid, 0)[1], lines


def sizes_of(model):
    sizes = model.statistics_.class_sizes.tolist()
    return dict(zip(model.classes_.tolist(), sizes, strict=True))


def assert_same_model(one, other):
    assert sizes_of(one) == sizes_of(other)
    assert one.statistics_ == other.statistics_
    assert_same_predictions(one, other, PROBLEM.X)


def test_golden_log():
    """A log as the first version wrote it: every later one must read it."""
    golden = Path(__file__).parent / "golden" / "changes_1.changes"
    contents = read_log(golden)
    assert contents.model == "0123456789abcdef" * 4
    found = [[c.number, c.time, c.by, c.action, c.content] for c in contents.changes]
    assert found == json.loads((golden.parent / "changes_1.json").read_text())


def test_the_checksum_tells_model_files_apart(path, tmp_path):
    assert read_checksum(path) == path.read_bytes()[32:64].hex()
    other = tmp_path / "other"
    load(path).partial_fit(NEW[:1], ["a"]).save(other)
    assert read_checksum(other) != read_checksum(path)
    other.write_bytes(b"something else")
    with pytest.raises(ModelFileError, match="not a longtail model file"):
        read_checksum(other)


# Killed


def test_what_was_acknowledged_survives_a_kill(path):
    """A process of its own, which nothing prepares for the end."""
    script = """
        import sys
        from longtail import Teacher
        from tests.persistence.test_change_log import NEW
        teacher = Teacher(sys.argv[1])
        for i in range(10**6):
            teacher.teach(NEW[[i % 20]], [f"new {i % 3}"])
            print(i, flush=True)
    """
    expected = load(path)
    environment = {**os.environ, "PYTHONPATH": f"{SOURCE}{os.pathsep}{SOURCE.parent}"}
    command = [sys.executable, "-c", textwrap.dedent(script), str(path)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        acknowledged = [process.stdout.readline() for _ in range(25)]
        process.kill()
        acknowledged += process.stdout.readlines()
    n_acknowledged = len([line for line in acknowledged if line.endswith("\n")])
    assert n_acknowledged >= 25
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # it may have died within a write
        teacher = Teacher(path)
        n_taught = len(teacher.changes())
    assert n_acknowledged <= n_taught <= n_acknowledged + 1
    expected.partial_fit(NEW[np.arange(n_taught) % 20], [f"new {i % 3}" for i in range(n_taught)])
    assert_same_model(teacher.model, expected)


def stop(when, owner, name, count, say):
    """Make a function say "here" before or after its `count`-th call, and wait for the end."""
    real, calls = getattr(owner, name), []

    def call(*arguments, **options):
        calls.append(name)
        if when == "after":
            real(*arguments, **options)
        if len(calls) == count:
            say("here")
            signal.pause()
        return None if when == "after" else real(*arguments, **options)

    setattr(owner, name, call)


# The first rename is that of `save`, the second puts the file in its place.
MOMENTS = {
    "before the log says so": ("before", ChangeLog, "append", 1),
    "after the log says so": ("after", ChangeLog, "_write", 1),
    "before the rename": ("before", os, "replace", 2),
    "after the rename": ("after", os, "replace", 2),
    "before the log is emptied": ("before", ChangeLog, "start", 1),
    "while the log is emptied": ("after", os, "ftruncate", 1),
    "after all": ("after", ChangeLog, "start", 1),
}
REPLACED = list(MOMENTS)[3:]


def compact_until(say, path, moment):
    teacher = Teacher(path)
    teacher.teach(NEW[:2], ["a", "b"])
    teacher.teach(NEW[2:4], ["a", "b"])
    stop(*MOMENTS[moment], say)
    teacher.compact()


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_kill_while_compacting_loses_and_doubles_nothing(path, moment):
    base, old = load(path), read_checksum(path)
    expected = load(path).partial_fit(NEW[:4], ["a", "b", "a", "b"])
    child = Child(compact_until, path, moment)
    assert child.output.readline() == "here\n"
    child.kill()
    assert (read_checksum(path) != old) == (moment in REPLACED)
    assert_same_model(load(path), expected)
    teacher = Teacher(path)
    assert_same_model(teacher.model, expected)
    if moment in REPLACED:
        assert teacher.changes() == []
    teacher.teach(NEW[4:5], ["c"])
    assert_same_model(load(path), expected.partial_fit(NEW[4:5], ["c"]))
    if moment not in REPLACED:
        teacher.undo(3)
        assert_same_model(load(path), base)
    teacher.compact()
    assert_same_model(load(path), teacher.model)


def test_a_folded_log_beside_yet_another_model_is_refused(path):
    child = Child(compact_until, path, "before the log is emptied")
    assert child.output.readline() == "here\n"
    child.kill()
    load(path).partial_fit(NEW[:1], ["z"]).save(path)
    with pytest.raises(ModelFileError, match="of another model file"):
        load(path)


# A full disk: the system refuses to let a file grow beyond a limit


def teach_until_full(say, path):
    teacher = Teacher(path)
    limit = os.path.getsize(log_path(path)) + 1000
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))  # Python ignores SIGXFSZ
    model = teacher.model
    try:
        teacher.teach(NEW, ["lost"] * len(NEW))
    except OSError as error:
        say(error.errno, error)
    say(teacher.model is model)
    teacher.teach(NEW[1:2], ["small"])


def test_a_full_disk_changes_nothing(path):
    Teacher(path).teach(NEW[:1], ["kept"])
    before = log_path(path).read_bytes()
    status, lines = Child(teach_until_full, path).wait()
    assert status == 0
    assert lines[0].startswith(f"{errno.EFBIG} ")
    assert "The change was not recorded; the log is as it was" in lines[0]
    assert lines[1] == "True"
    assert log_path(path).read_bytes().startswith(before)
    sizes = sizes_of(load(path))
    assert (sizes["kept"], sizes["small"], "lost" in sizes) == (1, 1, False)


def compact_on_a_full_disk(say, path):
    teacher = Teacher(path)
    teacher.teach(NEW[:1], ["kept"])
    limit = os.path.getsize(path) // 2
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    try:
        teacher.compact()
    except OSError as error:
        say(error.errno, sorted(os.listdir(path.parent)))


def test_a_full_disk_while_compacting(path):
    _, lines = Child(compact_on_a_full_disk, path).wait()
    assert lines == [f"{errno.EFBIG} ['model', 'model.changes']"]
    assert sizes_of(load(path))["kept"] == 1


# Two processes


def teach_many(say, path, name):
    teacher = Teacher(path)
    say("ready")
    for i in range(15):
        teacher.teach(NEW[[i]], [name], by=name)
        if i == 7 and name == "one":
            teacher.compact()


def test_two_processes_teach_at_once(path):
    expected = load(path).partial_fit(np.vstack([NEW[:15]] * 2), ["one"] * 15 + ["two"] * 15)
    with log_path(path).open("a+b") as file:  # hold both until both are ready
        fcntl.flock(file, fcntl.LOCK_EX)
        children = [Child(teach_many, path, name) for name in ("one", "two")]
        fcntl.flock(file, fcntl.LOCK_UN)
    for child in children:
        assert child.wait() == (0, ["ready"])
    assert_same_model(load(path), expected)
    numbers = [change.number for change in Teacher(path).changes()]
    assert numbers == list(range(numbers[0], 32))  # 30 changes and a compaction
