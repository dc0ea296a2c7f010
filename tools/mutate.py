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


def fails(tests: list[str], folder: Path) -> bool:
    """Return whether one of the tests fails on the copy."""
    command = [sys.executable, "-m", "pytest", "-qx", "-n0", "-p", "no:cacheprovider"]
    places = {"PYTHONPATH": str(folder / "src"), "NUMBA_CACHE_DIR": str(folder / "compiled")}
    done = subprocess.run(
        [*command, "-m", "not slow", *tests],
        cwd=folder,
        env=os.environ | places,
        capture_output=True,
        text=True,
    )
    if done.returncode not in (0, 1):
        raise RuntimeError(f"the tests did not run: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.returncode == 1


def main(tests: list[str]) -> int:
    """Make one mutation after the other; return the exit code."""
    n_noticed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("src", "tests", "pyproject.toml"):
            copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
            copy(ROOT / part, folder / part)
        if fails(tests, folder):
            raise RuntimeError("a test fails although nothing is broken yet")
        for path, old, new in MUTATIONS:
            file = folder / "src" / "longtail" / path
            source = file.read_text()
            if source.count(old) != 1:
                raise ValueError(f"{path} must have this once: {old!r}")
            file.write_text(source.replace(old, new))
            noticed = fails(tests, folder)
            file.write_text(source)
            n_noticed += noticed
            change = f"{old.strip()} -> {new.strip()}"
            print(f"{'noticed' if noticed else 'MISSED'}: {path}: {change}", flush=True)
    print(f"{n_noticed} of {len(MUTATIONS)} noticed")
    return int(n_noticed < len(MUTATIONS) - 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or list(DEFAULT)))
