"""Break the code in ten places and say whether tests of `make test` notice each.

Run as ``python tools/mutate.py [TESTS ...]``, on a copy; exits 1 where two are not noticed, or one
cannot be made any more. Minutes of compiling for each place. Without arguments the tests are
`DEFAULT`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DEFAULT = (
    "tests/against_oracle",
    "tests/property/test_core.py",
    "tests/property/test_score.py",
    "tests/property/test_search.py",
    "tests/unit/test_calibration.py",
    "tests/unit/test_search.py",
)
# File below src/longtail, what it has, what it gets instead.
MUTATIONS = (
    ("_kernels/ranking.py", "== other_score and c < other)", "== other_score and c > other)"),
    ("_kernels/residuals.py", "        square = 1.0\n", "        square = 0.5\n"),
    ("_kernels/weighting.py", "<< 32) + j\n", "<< 32) + length - j\n"),
    ("_kernels/statistics.py", "total += factor * b.", "total += b."),
    ("_kernels/search.py", "error_bound += 1.001 + 1.01 * level", "error_bound += 0.1 * level"),
    ("_kernels/listwise.py", "scores[0] -= 1.0", "scores[0] -= 0.99"),
    ("_kernels/sampling.py", "                pick = top\n", "                pick = top - 1\n"),
    ("training/calibration.py", "np.minimum(others, top[:, None])", "others * 1.0"),
    ("training/calibration.py", "true_last, axis=1)[:, :-1]", "true_last, axis=1)[:, 1:]"),
    ("training/calibration.py", "/ (sizes + expected[:, -1:])", "/ (sizes + expected)"),
)


def is_noticed(path: str, old: str, new: str, tests: list[str], folder: Path) -> bool:
    """Return whether a test fails once `old` is `new`."""
    source = (ROOT / "src" / "longtail" / path).read_text()
    if source.count(old) != 1:
        raise ValueError(f"{path} has {source.count(old)} times, not once: {old!r}")
    (folder / "src" / "longtail" / path).write_text(source.replace(old, new))
    command = [sys.executable, "-m", "pytest", "-qxn0", "-p", "no:cacheprovider", "-m", "not slow"]
    places = {"PYTHONPATH": str(folder / "src"), "NUMBA_CACHE_DIR": str(folder / "compiled")}
    done = subprocess.run([*command, *tests], cwd=folder, env=os.environ | places, stdout=-1)
    (folder / "src" / "longtail" / path).write_text(source)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"the tests did not run: {done.stdout[-2000:].decode()}")
    return done.returncode == 1


def main(tests: list[str]) -> int:
    """Make one mutation after the other; return the exit code."""
    n_noticed = 0
    with tempfile.TemporaryDirectory() as name:
        for part in ("src", "tests", "pyproject.toml"):
            copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
            copy(ROOT / part, Path(name) / part)
        for path, old, new in MUTATIONS:
            noticed = is_noticed(path, old, new, tests, Path(name))
            n_noticed += noticed
            print(f"{'noticed' if noticed else 'MISSED'}: {path}: {old.strip()} -> {new.strip()}")
            sys.stdout.flush()
    print(f"{n_noticed} of {len(MUTATIONS)} noticed")
    return int(n_noticed < len(MUTATIONS) - 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or list(DEFAULT)))
