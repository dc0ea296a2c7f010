"""The journal under real crashes: killed processes, full disks, several processes at once.

``LONGTAIL_KILLS`` says how many times a busy process is killed (``make kills``: 300).
"""

import errno
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import traceback
import warnings
from collections import Counter
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import longtail
from longtail import LongTailClassifier, ModelFileError, Teacher, TextClassifier, load
from longtail.store import journal_database
from longtail.store.container import read_checksum
from longtail.store.forking import GATE
from longtail.store.journal import Journal, journal_path
from tests.conftest import assert_same_predictions, make_problem
from tests.unit.test_embedder import LABELS, TEXTS, encode
from tests.unit.test_embedder import NEW as NEW_TEXTS

resource = pytest.importorskip("resource")

SOURCE = Path(longtail.__file__).parents[1]
PROBLEM = make_problem()
NEW = make_problem(seed=3, n_documents=20).X
N_KILLS = int(os.environ.get("LONGTAIL_KILLS", "60"))


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
        from tests.persistence.test_journal_crashes import NEW
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


# The first rename is that of `save`, the second puts the file in its place. The first transaction
# is that of the change, the second that of the replacement.
MOMENTS = {
    "before the journal says so": ("before", Journal, "replace_model", 1),
    "after the journal says so": ("before", journal_database, "begin", 2),
    "before the rename": ("before", os, "replace", 2),
    "after the rename": ("after", os, "replace", 2),
    "before the journal is emptied": ("before", Journal, "restart", 1),
    "before the journal is erased": ("before", Journal, "erase", 1),
    "after all": ("before", Journal, "close", 1),
}
REPLACED = list(MOMENTS)[3:]


def teach_two(path):
    teacher = Teacher(path)
    teacher.teach(NEW[:2], ["a", "b"])
    teacher.teach(NEW[2:4], ["a", "b"])
    return teacher


def compact_until(say, path, moment):
    teacher = teach_two(path)
    stop(*MOMENTS[moment], say)
    teacher.compact()
    teacher.close()


def kill_at(moment, path, function=compact_until):
    child = Child(function, path, moment)
    assert child.output.readline() == "here\n"
    child.kill()


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_kill_while_compacting_loses_and_doubles_nothing(path, moment):
    base, old = load(path), read_checksum(path)
    expected = load(path).partial_fit(NEW[:4], ["a", "b", "a", "b"])
    kill_at(moment, path)
    assert (read_checksum(path) != old) == (moment in REPLACED)
    assert_same_model(load(path), expected)
    teacher = Teacher(path)
    assert_same_model(teacher.model, expected)
    assert len(teacher.changes()) == (0 if moment in REPLACED else 2)
    assert teacher.teach(NEW[4:5], ["c"]) == 3
    assert_same_model(load(path), load_taught(path, expected))
    teacher.undo()
    assert_same_model(load(path), expected)
    if moment not in REPLACED:
        teacher.undo(2)
        assert_same_model(load(path), base)
    teacher.compact()
    assert_same_model(load(path), teacher.model)
    teacher.close()
    assert sorted(os.listdir(path.parent)) == ["model", "model.journal"]


def load_taught(path, expected):
    """The expected model, saved and loaded, with one more document."""
    expected.save(path.parent / "copy")
    model = load(path.parent / "copy").partial_fit(NEW[4:5], ["c"])
    (path.parent / "copy").unlink()
    return model


@pytest.mark.parametrize("moment", MOMENTS)
def test_undo_right_after_a_killed_compaction(path, moment):
    """Nothing folded is replayed a second time."""
    before = load(path).partial_fit(NEW[:2], ["a", "b"])
    expected = load(path).partial_fit(NEW[:4], ["a", "b", "a", "b"])
    kill_at(moment, path)
    teacher = Teacher(path)
    if moment in REPLACED:
        with pytest.raises(ValueError, match="there is nothing to undo"):
            teacher.undo()
        assert_same_model(teacher.model, expected)
    else:
        assert teacher.undo() == 3
        assert_same_model(teacher.model, before)
    assert_same_model(load(path), teacher.model)


def test_a_folded_journal_beside_yet_another_model_is_refused(path, tmp_path):
    kill_at("before the journal is emptied", path)
    load(path).partial_fit(NEW[:1], ["z"]).save(tmp_path / "other")
    os.replace(tmp_path / "other", path)
    with pytest.raises(ModelFileError, match="of another model file"):
        load(path)


def erase_until(say, path, moment):
    teacher = teach_two(path)
    stop(*MOMENTS[moment], say)
    teacher.forget(NEW[:1], ["a"], erase=True)
    teacher.close()


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_kill_while_erasing(path, moment):
    taught = load(path).partial_fit(NEW[:4], ["a", "b", "a", "b"])
    expected = taught.forget(NEW[:1], ["a"]) if moment in REPLACED else taught
    kill_at(moment, path, erase_until)
    assert_same_model(load(path), expected)
    announced = moment != "before the journal says so"  # the number may be in the new file
    assert Teacher(path).teach(NEW[4:5], ["c"]) == (4 if announced else 3)


def save_until(say, path, moment):
    teach_two(path).close()
    model = load(path).partial_fit(NEW[4:5], ["c"])
    stop(*MOMENTS[moment], say)
    model.save(path, discard_changes=True)


@pytest.mark.parametrize("moment", list(MOMENTS)[:-2])
def test_a_kill_while_saving_over_changes(path, moment):
    labels = ["a", "b", "a", "b", "c"]
    expected = load(path).partial_fit(NEW[:4], labels[:4])
    if moment in REPLACED:
        expected.partial_fit(NEW[4:5], labels[4:])
    kill_at(moment, path, save_until)
    assert_same_model(load(path), expected)
    assert Teacher(path).teach(NEW[4:5], ["d"]) == 3


# Killed while a refinement is made

REFINING = {
    "before the file is written": ("before", Journal, "new_file", 1),
    "within the file": ("before", os, "fsync", 1),
    "before the file has its first name": ("before", os, "replace", 1),
    "before the file has its name": ("before", os, "replace", 2),
    "before the journal says so": ("after", os, "replace", 2),
    "before the journal has said so": ("before", Journal, "append", 1),
    "after all": ("after", Journal, "append", 1),
}


def refine_until(say, path, moment):
    teacher = teach_two(path)
    stop(*REFINING[moment], say)
    teacher.refine()


@pytest.mark.parametrize("moment", REFINING)
def test_a_kill_while_refining(path, moment):
    expected = load(path).partial_fit(NEW[:2], ["a", "b"]).partial_fit(NEW[2:4], ["a", "b"])
    kill_at(moment, path, refine_until)
    if moment == "after all":
        expected.refine()
    assert_same_model(load(path), expected)
    teacher = Teacher(path)
    number = teacher.refine()
    assert number == (4 if moment == "after all" else 3)
    assert_same_model(load(path), expected.refine())
    teacher.undo(numbers=[number])
    teacher.compact()
    teacher.close()
    assert sorted(os.listdir(path.parent)) == ["model", "model.journal"]


def fold_refined_until(say, path, moment, erase):
    teacher = teach_two(path)
    teacher.refine()
    stop(*MOMENTS[moment], say)
    if erase:
        teacher.forget(NEW[:1], ["a"], erase=True)
    else:
        teacher.compact()


@pytest.mark.parametrize("erase", [False, True])
@pytest.mark.parametrize("moment", list(MOMENTS)[:-2])
def test_a_kill_while_a_refinement_is_folded(path, moment, erase):
    """What was learned is in a file of its own until the model file has it."""
    expected = load(path).partial_fit(NEW[:2], ["a", "b"]).partial_fit(NEW[2:4], ["a", "b"])
    expected.refine()
    if erase and moment in REPLACED:
        expected.forget(NEW[:1], ["a"])
    kill_at(moment, path, partial(fold_refined_until, erase=erase))
    assert_same_model(load(path), expected)
    teacher = Teacher(path)
    teacher.teach(NEW[4:5], ["c"])
    if moment in REPLACED:  # no copy of what was forgotten stays
        teacher.close()
        assert sorted(os.listdir(path.parent)) == ["model", "model.journal"]


# A process that never stops changing the model, killed at any moment


def work(say, path, seed, kind):
    """Do one thing after the other; say what before, and that it is done after."""
    rng = random.Random(seed)
    teacher = Teacher(path, refine="never", embedder=kind.embedder)
    say("ready")
    while True:
        action = rng.choice(["teach"] * 4 + ["undo", "undo", "refine", "compact", "save", "forget"])
        document = rng.randrange(len(kind.new))
        say("begin", action, document)
        number = 0
        if action == "teach":
            number = teacher.teach(kind.new[[document]], ["new"])
        elif action == "forget":  # teach first, so that there is something to forget
            number = teacher.teach(kind.new[[document]], ["new"])
            say("done", number)
            say("begin", "erase", document)
            number = teacher.forget(kind.new[[document]], ["new"], erase=True)
        elif action == "undo" and any(
            c.in_effect and c.action != "undo" for c in teacher.changes()
        ):
            number = teacher.undo()
        elif action == "compact":
            teacher.compact()
        elif action == "refine":
            number = teacher.refine()
        elif action == "save":
            load(path).save(path, discard_changes=True)
        say("done", number)


def n_to_undo(teacher):
    return len([c for c in teacher.changes() if c.in_effect and c.action != "undo"])


class Expected:
    """Documents taught since the model was fitted, and what can be undone, as plain lists."""

    def __init__(self):
        self.documents = Counter()
        self.history = []  # documents taught since the last fold, of those in effect
        self.last_number = 0

    def after(self, action, document):
        """Return the state after one action."""
        state = Expected()
        state.documents, state.history = self.documents.copy(), [*self.history]
        state.last_number = self.last_number
        if action in ("teach", "forget"):
            state.documents[document] += 1
            state.history.append(document)
        elif action == "refine":
            state.history.append(None)  # no document
        elif action == "undo" and state.history:
            undone = state.history.pop()
            if undone is not None:
                state.documents[undone] -= 1
        elif action == "erase":
            state.documents[document] -= 1
            state.history = []
        elif action in ("compact", "save"):
            state.history = []
        return state

    def statistics(self, kind):
        """Return the sums of these documents and those of the fit."""
        rows = sorted(self.documents.elements())
        model = load(kind.fitted, embedder=kind.embedder)
        if rows:
            model.partial_fit(kind.new[rows], ["new"] * len(rows))
        return kind.sums(model)


def follow(lines, state):
    """Return the state after what was acknowledged, and after what was begun as well."""
    begun = None
    for line in lines:
        word, *rest = line.split()
        if word == "begin":
            begun = state.after(rest[0], int(rest[1]))
        elif word == "done":
            state, begun = begun, None
            number = int(rest[0])
            assert number == 0 or number > state.last_number  # never reused
            state.last_number = max(number, state.last_number)
    return state, begun


class Kind(NamedTuple):
    """A model that is killed: its file, documents to teach it, and its encoder."""

    fitted: Path
    new: Any
    embedder: Any = None

    def sums(self, model):
        """Return what does not depend on the order of changes: which terms enter does."""
        found = model.statistics_
        if self.embedder is None:
            return found
        return model.classes_.tolist(), sizes_of(model), found.embedding_sums.tolist()


@pytest.fixture(params=["counts", "texts with an encoder"])
def kind(request, fitted, tmp_path_factory):
    if request.param == "counts":
        return Kind(fitted, NEW)
    path = tmp_path_factory.mktemp("texts") / "model"
    model = TextClassifier(random_state=0, embedder=encode)
    model.fit(TEXTS[:800], LABELS[:800]).save(path)
    assert load(path).statistics_.embedding_sums is not None
    return Kind(path, np.array(NEW_TEXTS), encode)


@pytest.mark.slow
def test_kills_at_any_moment(kind, tmp_path):
    """Nothing acknowledged is lost, no number used twice, undo exact after every kill."""
    rng, path = random.Random(0), shutil.copy(kind.fitted, tmp_path / "model")
    state = Expected()
    for kill in range(N_KILLS if kind.embedder is None else N_KILLS // 3):
        child = Child(work, path, rng.random(), kind)
        assert child.output.readline() == "ready\n"
        time.sleep(rng.random() ** 2 * 0.6)
        _, lines = child.kill()
        state, begun = follow(lines, state)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # it may have died within a write
            teacher = Teacher(path, embedder=kind.embedder)
        found = kind.sums(teacher.model)
        if begun is not None and n_to_undo(teacher) == len(begun.history):
            state = begun if found == begun.statistics(kind) else state
        assert found == state.statistics(kind)
        number = teacher.teach(kind.new[:1], ["new"])
        assert number > state.last_number
        assert teacher.undo() == number + 1
        state.last_number = number + 1
        assert kind.sums(teacher.model) == found
        if state.history and kill % 3 == 0:
            teacher.undo()
            state = state.after("undo", 0)
            state.last_number = number + 2
            assert kind.sums(teacher.model) == state.statistics(kind)
        assert load(path).statistics_ == teacher.model.statistics_
        teacher.close()


# A full disk: the system refuses to let a file grow beyond a limit

LARGE = np.random.default_rng(0).random((600, NEW.shape[1]))  # 120 kB that zlib cannot shrink


def teach_until_full(say, path):
    teacher = Teacher(path)
    teacher.teach(NEW[:1], ["kept"])
    limit = 60_000
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))  # Python ignores SIGXFSZ
    model = teacher.model
    try:
        teacher.teach(LARGE, ["lost"] * len(LARGE))
    except OSError as error:
        say(error)
    say(teacher.model is model)
    teacher.teach(NEW[1:2], ["small"])
    say([change.number for change in teacher.changes()])


@pytest.mark.parametrize("largest", [300, 1 << 19])
def test_a_full_disk_changes_nothing(path, monkeypatch, largest):
    """Of one row, and of many."""
    monkeypatch.setattr("longtail.teaching.log._LARGEST_BATCH", largest)
    status, lines = Child(teach_until_full, path).wait()
    assert status == 0
    assert f"[Errno {errno.EIO}]" in lines[0]
    assert "The change was not recorded; model and journal are as they were" in lines[0]
    assert lines[1:] == ["True", "[1, 2]"]
    sizes = sizes_of(load(path))
    assert (sizes["kept"], sizes["small"], "lost" in sizes) == (1, 1, False)


def compact_on_a_full_disk(say, path):
    teacher = Teacher(path, refine="never")
    teacher.teach(LARGE, ["kept"] * len(LARGE))
    limit = os.path.getsize(path) // 2
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    try:
        teacher.compact()
    except OSError as error:
        say(error.errno)
    say(sorted(name for name in os.listdir(path.parent) if name.startswith(".")))


def test_a_full_disk_while_compacting(path):
    _, lines = Child(compact_on_a_full_disk, path).wait()
    assert lines == [str(errno.EFBIG), "[]"]
    assert sizes_of(load(path))["kept"] == len(LARGE)


# Several processes


def teach_many(say, path, name):
    teacher = Teacher(path)
    say("ready")
    for i in range(12):
        teacher.teach(NEW[[i]], [name], by=name)
        if i == 7 and name == "one":
            teacher.compact()
        if i == 9 and name == "two":
            number = teacher.teach(NEW[[i]], ["undone"])
            try:
                teacher.undo(numbers=[number])
            except ValueError as error:  # "one" has compacted in between
                if "since the journal was compacted" not in str(error):
                    raise
                teacher.forget(NEW[[i]], ["undone"])


def test_several_processes_teach_at_once(path):
    names = ["one", "two", "three"]
    labels = [name for name in names for _ in range(12)]
    expected = load(path).partial_fit(np.vstack([NEW[:12]] * 3), labels)
    children = [Child(teach_many, path, name) for name in names]
    for child in children:
        assert child.wait() == (0, ["ready"])
    assert_same_model(load(path), expected)
    numbers = [change.number for change in Teacher(path).changes()]
    assert numbers == list(range(numbers[0], 39))  # 36 documents, one more and its undo


def teach_inherited(say, teacher):
    say(teacher.teach(NEW[:1], ["child"]))


def test_a_teacher_used_on_both_sides_of_a_fork(path):
    teacher = Teacher(path)
    teacher.teach(NEW[:1], ["before"])
    assert Child(teach_inherited, teacher).wait() == (0, ["2"])
    assert teacher.teach(NEW[:1], ["after"]) == 3
    assert {"before", "child", "after"} <= set(load(path).classes_)


def fork_while_a_thread_teaches(say, path):
    teacher = Teacher(path)
    teacher.teach(NEW[:1], ["before"])
    is_over, n_taught = threading.Event(), 0

    def teach_on():
        nonlocal n_taught
        while not is_over.is_set():
            teacher.teach(NEW[:1], ["thread"])
            n_taught += 1

    thread = threading.Thread(target=teach_on)
    thread.start()
    for i in range(6):
        status, _ = Child(teach_inherited, teacher).wait()
        say(i, status)
    is_over.set()
    thread.join()
    say("taught", sizes_of(load(path))["thread"] == n_taught)


def test_a_fork_while_a_thread_teaches(path):
    """The child gets neither the thread nor its locks, those of SQLite among them."""
    child = Child(fork_while_a_thread_teaches, path)
    alarm = threading.Timer(120, os.kill, (child.pid, signal.SIGKILL))
    alarm.start()
    status, lines = child.wait()
    alarm.cancel()
    assert status == 0
    assert lines == [*(f"{i} 0" for i in range(6)), "taught True"]
    assert sizes_of(load(path))["child"] == 6


def open_and_close(say, path):
    for _ in range(60):
        with closing(Teacher(path)) as teacher:
            teacher.teach(NEW[:1], ["again"])
    (path.parent / "done").touch()
    say("done")


def load_without_permission(say, path):
    os.setgid(65_534)
    os.setuid(65_534)
    n_loaded = 0
    while not (path.parent / "done").exists():
        load(path)
        n_loaded += 1
    say(n_loaded > 10)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become someone else")
def test_reading_beside_a_teacher_that_opens_and_closes(fitted):
    with tempfile.TemporaryDirectory() as folder:  # pytest's own folders are closed to others
        os.chmod(folder, 0o755)
        path = Path(shutil.copy(fitted, folder))
        os.chmod(path, 0o644)
        writer = Child(open_and_close, path)
        status, lines = Child(load_without_permission, path).wait()
        assert (status, lines) == (0, ["True"])
        assert writer.wait() == (0, ["done"])


def test_a_log_that_grows_while_a_reader_opens_is_not_torn(fitted, tmp_path, monkeypatch):
    path = Path(shutil.copy(fitted, tmp_path / "model"))
    with closing(Teacher(path)) as teacher:
        teacher.teach(NEW[:1], ["a"])
    journal = journal_path(path)
    assert not journal_database._holds_something(journal_database.companions(journal)[0])
    monkeypatch.setattr(journal_database, "_holds_something", lambda _: False)
    journal_database.companions(journal)[0].write_bytes(bytes(100))  # a writer is half through
    journal_database.connect(journal, writable=False).close()


# Ctrl-C


class Interruption:
    """Raises KeyboardInterrupt before the n-th line that a call runs in what holds a journal."""

    FILES = ("teacher.py", "journal.py", "journal_database.py", "forking.py", "contextlib.py")

    def __init__(self, at):
        self.left = at

    def __call__(self, frame, event, _):
        if Path(frame.f_code.co_filename).name not in self.FILES:
            return None
        if event == "line":
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self

    def of(self, call):
        """Return the interrupt, with the frames that it holds, or None where the call ended."""
        before = sys.gettrace()
        sys.settrace(self)
        try:
            call()
        except KeyboardInterrupt as interrupt:
            return interrupt
        finally:
            sys.settrace(before)
        return None


def others_can_take(lock):
    """Return whether a lock is free for other threads."""
    found = []

    def attempt():
        if lock.acquire(blocking=False):
            lock.release()
            found.append(lock)

    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()
    return bool(found)


@pytest.mark.parametrize(
    "action", ["teach", "undo", "refresh", pytest.param("compact", marks=pytest.mark.slow)]
)
def test_an_interrupt_anywhere_leaves_nothing_held(path, action):
    teacher = Teacher(path, refine="never")  # or its thread may hold it, rightly
    teacher.teach(NEW[:1], ["first"])
    actions = {
        "teach": lambda: teacher.teach(NEW[1:2], ["again"]),
        "undo": teacher.undo,
        "refresh": teacher.refresh,
        "compact": teacher.compact,
    }
    line, interrupted = 0, 0
    while True:
        line += 1
        if action in ("undo", "compact"):
            teacher.teach(NEW[1:2], ["again"])
        interrupt = Interruption(line).of(actions[action])
        if interrupt is None:
            break
        interrupted += 1
        with closing(sqlite3.connect(journal_path(path), 0)) as other:
            other.execute("BEGIN IMMEDIATE")
            other.execute("ROLLBACK")
        del interrupt
        assert others_can_take(teacher._turn.lock)
        assert others_can_take(GATE.lock)
    assert interrupted > 20
    teacher.teach(NEW[2:3], ["last"])
    assert_same_model(load(path), teacher.model)
    teacher.close()
