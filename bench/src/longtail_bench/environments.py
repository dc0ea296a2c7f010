"""A peer whose pins clash with ours -> the interpreter of an environment that has it.

Environments live in a cache folder, one for each peer, and are created when first asked for. The
installation that runs this code is never touched.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

FOLDER_VARIABLE = "LONGTAIL_ENVIRONMENTS"

_MARKER = "complete.json"  # written last: without it the environment is not trusted
# Settings of the caller's shell that would send packages elsewhere, or bring in others.
_LEFT_OUT = (
    "PYTHONHOME",
    "PYTHONPATH",
    "PIP_CONSTRAINT",
    "PIP_PREFIX",
    "PIP_ROOT",
    "PIP_TARGET",
    "PIP_USER",
)


class BaselineEnvironmentError(OSError):
    """An environment that could not be created: which, at what step, why."""


@dataclass(frozen=True)
class BaselinePackages:
    """Packages that pip installs for a system."""

    packages: tuple[str, ...]  # requirements, installed with all they depend on
    bare_packages: tuple[str, ...]  # requirements installed without what they ask for
    module: str  # what must be importable in the end


# What every worker and `longtail_bench.baselines.base` need.
_WORKER = ("numpy>=1.26", "scipy>=1.13", "scikit-learn>=1.6")

BASELINES = {
    # XR-Linear imports numpy, scipy and scikit-learn alone; torch, transformers and the rest that
    # libpecos asks for (several GB) serve other models of the package.
    "pecos": BaselinePackages(
        packages=("numpy>=1.26,<2", "scipy>=1.13,<1.14", "scikit-learn>=1.6"),
        bare_packages=("libpecos==1.2.8",),
        module="pecos.xmc.xlinear",
    ),
    "omikuji": BaselinePackages((*_WORKER, "omikuji==0.5.2"), (), "omikuji"),
    "napkinxc": BaselinePackages((*_WORKER, "napkinxc==0.7.2"), (), "napkinxc.models"),
    "vowpalwabbit": BaselinePackages((*_WORKER, "vowpalwabbit==9.11.9"), (), "vowpalwabbit"),
    "libmultilabel": BaselinePackages(
        (*_WORKER, "libmultilabel==0.10.0"), (), "libmultilabel.linear"
    ),
    "fasttext": BaselinePackages((*_WORKER, "fasttext-numpy2==0.10.4"), (), "fasttext"),
}


def environments_folder(folder: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder of all environments.

    Parameters
    ----------
    folder : str or path-like, optional
        Taken if given; otherwise the environment variable LONGTAIL_ENVIRONMENTS, otherwise
        `longtail/environments` in the user's cache folder.
    """
    configured = folder or os.environ.get(FOLDER_VARIABLE)
    if configured:
        return Path(configured).expanduser().absolute()
    if sys.platform == "darwin":
        caches = Path.home() / "Library" / "Caches"
    else:
        caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return caches / "longtail" / "environments"


def find_environment(name: str, folder: str | os.PathLike[str] | None = None) -> Path | None:
    """Return the interpreter of a peer's environment, or None if it is not complete.

    Parameters
    ----------
    name : str
        A key of `PEERS`.
    folder : str or path-like, optional
        As in `environments_folder`.

    Examples
    --------
    >>> find_environment("pecos", "/nowhere") is None
    True
    """
    folder_path = environments_folder(folder) / name
    python = folder_path / "bin" / "python"
    try:
        complete = json.loads((folder_path / _MARKER).read_text(encoding="utf-8")) == _stamp(name)
    except (OSError, ValueError):
        return None
    # The interpreter is a link: the one it points to may be gone.
    return python if complete and python.exists() else None


def ensure_environment(name: str, folder: str | os.PathLike[str] | None = None) -> Path:
    """Return the interpreter of a peer's environment, creating the environment if need be.

    An environment whose creation was interrupted, or that has other packages than this version
    wants, is created anew.

    Parameters
    ----------
    name : str
        A key of `PEERS`.
    folder : str or path-like, optional
        As in `environments_folder`.

    Raises
    ------
    BaselineEnvironmentError
        If it cannot be created; one line that says why.
    """
    if python := find_environment(name, folder):
        return python
    folder_path = environments_folder(folder) / name
    try:
        folder_path.parent.mkdir(parents=True, exist_ok=True)
        with _locked(folder_path.with_name(f"{name}.lock")):
            # Another process may have created it while this one waited.
            return find_environment(name, folder) or _create(name, folder_path)
    except BaselineEnvironmentError:
        raise
    except OSError as error:
        raise BaselineEnvironmentError(
            f"no environment for {name} in {folder_path}: {error}"
        ) from error


def package_names(name: str) -> list[str]:
    """Return the names of the packages of a peer's environment, without versions."""
    baseline = BASELINES[name]
    return [
        re.split("[<>=]", package)[0] for package in (*baseline.packages, *baseline.bare_packages)
    ]


def clean_variables() -> dict[str, str]:
    """Return the caller's environment variables without those that reach into an installation."""
    return {key: value for key, value in os.environ.items() if key not in _LEFT_OUT}


def _stamp(name: str) -> dict[str, object]:
    """Return what an environment was made of, as JSON gives it back."""
    stamp: dict[str, object] = json.loads(json.dumps(asdict(BASELINES[name])))
    return stamp


def _create(name: str, folder_path: Path) -> Path:
    """Create an environment from nothing and mark it as complete."""
    if folder_path.exists():
        shutil.rmtree(folder_path)
    baseline, python = BASELINES[name], folder_path / "bin" / "python"
    pip = (str(python), "-I", "-m", "pip", "--require-virtualenv", "install", "--quiet")
    _run(name, folder_path, "creating it", (sys.executable, "-m", "venv", str(folder_path)))
    _run(name, folder_path, "pip install", (*pip, *baseline.packages))
    if baseline.bare_packages:
        _run(name, folder_path, "pip install", (*pip, "--no-deps", *baseline.bare_packages))
    _run(
        name, folder_path, "a first import", (str(python), "-I", "-c", f"import {baseline.module}")
    )
    (folder_path / _MARKER).write_text(json.dumps(_stamp(name)), encoding="utf-8")
    return python


def _run(name: str, folder_path: Path, step: str, command: Sequence[str]) -> None:
    """Run one step; an error says which, with the line of its output that tells why."""
    done = subprocess.run(
        command, env=clean_variables(), capture_output=True, text=True, errors="replace"
    )
    if done.returncode:
        lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        # pip's first error is the cause, what follows is advice; a traceback ends with its cause.
        causes = [line for line in lines if line.startswith("ERROR:")] or lines[-1:]
        cause = causes[0] if causes else f"exit code {done.returncode}"
        raise BaselineEnvironmentError(
            f"no environment for {name} in {folder_path}: {step} failed: "
            f"{cause.removeprefix('ERROR: ')}"
        )


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Let one process at a time in."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
