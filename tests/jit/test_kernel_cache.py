"""Where compiled kernels are kept: read-only folders, upgrades, damage, several processes at once.

Each process is a real one, on a copy of the package. Root may write anywhere, so processes run
without the capabilities that make it so.
"""

from __future__ import annotations

import ctypes
import gc
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import longtail
from longtail._kernels import jit

SCRIPT = """
import json, warnings
import numpy as np
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from longtail._kernels import sorting, statistics
    starts, order = np.zeros(4, np.int64), np.zeros(3, np.int64)
    sorting.group_by_class(np.array([2, 0, 1]), 3, np.zeros(3, np.int64), starts, order)
    norms = np.zeros(2)
    sums = np.array([3, 4, 5])
    statistics.norm_of_classes(np.array([0, 2, 3]), np.array([0, 1, 0]), sums, np.ones(2), norms)
assert order.tolist() == [1, 2, 0] and norms.tolist() == [5.0, 5.0]
misses = (k.stats.cache_misses for k in (sorting.group_by_class, statistics.norm_of_classes))
print(json.dumps([sum(sum(m.values()) for m in misses), [str(w.message) for w in caught]]))
"""
KERNELS = 2


def drop_root_rights():
    """Make permissions of files count for root too, after the next exec."""
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None)
        for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
            libc.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP


class Installation:
    """A copy of the kernels in a folder of its own, with a home."""

    def __init__(self, folder: Path):
        source = Path(longtail.__file__).parent
        self.package = folder / "site" / "longtail"
        self.kernels = self.package / "_kernels"
        shutil.copytree(
            source / "_kernels", self.kernels, ignore=shutil.ignore_patterns("__pycache__")
        )
        shutil.copy(source / "__init__.py", self.package)
        self.given, self.home = folder / "given", folder / "home"
        self.home.mkdir()

    def start(self, **environment: str) -> subprocess.Popen[str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA", "XDG"))}
        return subprocess.Popen(
            [sys.executable, "-B", "-c", SCRIPT],
            env=kept
            | {"PYTHONPATH": str(self.package.parent), "HOME": str(self.home)}
            | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=drop_root_rights,
        )

    def run(self, **environment: str) -> tuple[int, list[str]]:
        """Return how many kernels were compiled, and the warnings."""
        return finish(self.start(**environment))

    def kept_in(self, folder: Path) -> list[Path]:
        return sorted(folder.rglob("*.kernel*"))


def finish(process: subprocess.Popen[str]) -> tuple[int, list[str]]:
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    compiled, warned = json.loads(output)
    return compiled, warned


@pytest.fixture
def installation(tmp_path):
    yield Installation(tmp_path)
    for folder, names, _ in os.walk(tmp_path):
        for name in names:
            (Path(folder) / name).chmod(0o755)


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="permissions are those of Linux")


def test_folders_are_read_in_order_and_need_not_be_writable(installation):
    package, home = installation.kernels, installation.home
    cache = package / "__pycache__"
    assert installation.run() == (KERNELS, [])
    assert len(installation.kept_in(cache)) == KERNELS
    # An image in which `longtail warmup` ran, as any user, on a read-only root.
    assert all(path.stat().st_mode & 0o444 == 0o444 for path in installation.kept_in(cache))
    for folder in (package, cache, *cache.iterdir(), home):
        folder.chmod(0o555)
    assert installation.run() == (0, [])
    # Another folder that has nothing yet is no reason to compile either.
    assert installation.run(NUMBA_CACHE_DIR=str(installation.given)) == (0, [])
    cache.chmod(0o755)
    for folder in cache.iterdir():
        folder.chmod(0o755)
        shutil.rmtree(folder)
    cache.chmod(0o555)
    compiled, [warning] = installation.run()
    assert compiled == KERNELS
    assert "none of these folders can be written, by this user alone" in warning
    assert "NUMBA_CACHE_DIR" in warning
    home.chmod(0o755)
    assert installation.run() == (KERNELS, [])
    assert len(installation.kept_in(home)) == KERNELS
    home.chmod(0o555)
    assert installation.run() == (0, [])
    assert not installation.kept_in(package)


def test_other_sources_and_damaged_files_are_compiled_again(installation):
    given = str(installation.given)
    installation.run(NUMBA_CACHE_DIR=given)
    first, second = installation.kept_in(installation.given)
    first.write_bytes(first.read_bytes()[:-1])
    second.write_bytes(b"")
    assert installation.run(NUMBA_CACHE_DIR=given) == (KERNELS, [])
    assert installation.run(NUMBA_CACHE_DIR=given) == (0, [])
    types = installation.kernels / "types.py"  # named tuples, which both kernels could take
    types.write_text(types.read_text() + "\n# another version\n")
    assert installation.run(NUMBA_CACHE_DIR=given) == (KERNELS, [])


@pytest.mark.parametrize("hole", ["folder", "file", "link", "owner of the folder", "owner"])
def test_what_others_may_write_is_not_read(installation, hole):
    if hole.startswith("owner") and os.geteuid() != 0:
        pytest.skip("only root may give files away")
    given = str(installation.given)
    installation.run(NUMBA_CACHE_DIR=given)
    kept = installation.kept_in(installation.given)
    folder, marker = kept[0].parent, installation.home / "ran"
    content = b"cos\nsystem\n(S'touch " + os.fsencode(marker) + b"'\ntR."
    poison = hashlib.sha256(content).digest() + content
    for path in kept:
        path.write_bytes(poison)
    if hole == "folder":
        folder.chmod(0o777)
    elif hole == "link":
        folder.rename(folder.with_name("elsewhere"))
        folder.symlink_to(folder.with_name("elsewhere"))
    elif hole == "owner of the folder":
        os.chown(folder, 54_321, 54_321)
    for path in kept if hole in ("file", "owner") else ():
        path.chmod(0o666) if hole == "file" else os.chown(path, 54_321, 54_321)
    assert installation.run(NUMBA_CACHE_DIR=given) == (KERNELS, [])
    assert not marker.exists()


def test_others_may_read_but_not_write_what_is_kept(installation):
    before = os.umask(0)
    try:
        installation.run(NUMBA_CACHE_DIR=str(installation.given))
    finally:
        os.umask(before)
    for path in installation.kept_in(installation.given):
        assert path.stat().st_mode & 0o777 == 0o644
        assert path.parent.stat().st_mode & 0o777 == 0o755


def test_processes_may_start_together_on_an_empty_cache(installation):
    processes = [installation.start() for _ in range(4)]
    assert [warned for _, warned in map(finish, processes)] == [[]] * 4
    assert len(installation.kept_in(installation.kernels)) == KERNELS  # nothing half-written
    assert installation.run() == (0, [])


def test_the_collector_is_paused_while_a_kernel_compiles_and_goes_on_after_an_error():
    states = []

    @jit.kernel
    def double(value):
        return value * 2

    compile_signature = double.compile.__wrapped__
    double.compile = jit._without_collector(
        lambda signature: (states.append(gc.isenabled()), compile_signature(signature))[1]
    )
    assert double(21) == 42
    with pytest.raises(numba.TypingError):
        double({})
    assert states == [False, False]
    assert gc.isenabled()
