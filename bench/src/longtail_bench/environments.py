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


class PeerEnvironmentError(OSError):
    """An environment that could not be created: which, at what step, why."""


@dataclass(frozen=True)
class Peer:
    """What pip installs for a peer.

    Attributes
    ----------
    packages : tuple of str
        Requirements, installed with all they depend on.
    bare_packages : tuple of str
        Requirements installed without what they ask for.
    module : str
        What must be importable in the end.
    """

    packages: tuple[str, ...]
    bare_packages: tuple[str, ...]
    module: str


# What every worker and `longtail_bench.baselines.base` need.
_WORKER = ("numpy>=1.26", "scipy>=1.13", "scikit-learn>=1.6")

PEERS = {
    # XR-Linear imports numpy, scipy and scikit-learn alone; torch, transformers and the rest that
    # libpecos asks for (several GB) serve other models of the package.
    "pecos": Peer(
        packages=("numpy>=1.26,<2", "scipy>=1.13,<1.14", "scikit-learn>=1.6"),
        bare_packages=("libpecos==1.2.8",),
        module="pecos.xmc.xlinear",
    ),
    "omikuji": Peer((*_WORKER, "omikuji==0.5.2"), (), "omikuji"),
    "napkinxc": Peer((*_WORKER, "napkinxc==0.7.2"), (), "napkinxc.models"),
    "vowpalwabbit": Peer((*_WORKER, "vowpalwabbit==9.11.9"), (), "vowpalwabbit"),
    "fasttext": Peer((*_WORKER, "fasttext-numpy2==0.10.4"), (), "fasttext"),
}


def environments_folder(folder: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder of all environments.

    Parameters
    ----------
    folder : str or path-like, optional
        Taken if given; otherwise the environment variable LONGTAIL_ENVIRONMENTS, otherwise
        `longtail/environments` in the user's cache folder.
    """
    chosen = folder or os.environ.get(FOLDER_VARIABLE)
    if chosen:
        return Path(chosen).expanduser().absolute()
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
    place = environments_folder(folder) / name
    python = place / "bin" / "python"
    try:
        complete = json.loads((place / _MARKER).read_text(encoding="utf-8")) == _stamp(name)
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
    PeerEnvironmentError
        If it cannot be created; one line that says why.
    """
    if python := find_environment(name, folder):
        return python
    place = environments_folder(folder) / name
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with _locked(place.with_name(f"{name}.lock")):
            # Another process may have created it while this one waited.
            return find_environment(name, folder) or _create(name, place)
    except PeerEnvironmentError:
        raise
    except OSError as error:
        raise PeerEnvironmentError(f"no environment for {name} in {place}: {error}") from error


def package_names(name: str) -> list[str]:
    """Return the names of the packages of a peer's environment, without versions."""
    peer = PEERS[name]
    return [re.split("[<>=]", package)[0] for package in (*peer.packages, *peer.bare_packages)]


def clean_variables() -> dict[str, str]:
    """Return the caller's environment variables without those that reach into an installation."""
    return {key: value for key, value in os.environ.items() if key not in _LEFT_OUT}


def _stamp(name: str) -> dict[str, object]:
    """Return what an environment was made of, as JSON gives it back."""
    stamp: dict[str, object] = json.loads(json.dumps(asdict(PEERS[name])))
    return stamp


def _create(name: str, place: Path) -> Path:
    """Create an environment from nothing and mark it as complete."""
    if place.exists():
        shutil.rmtree(place)
    peer, python = PEERS[name], place / "bin" / "python"
    pip = (str(python), "-I", "-m", "pip", "--require-virtualenv", "install", "--quiet")
    _run(name, place, "creating it", (sys.executable, "-m", "venv", str(place)))
    _run(name, place, "pip install", (*pip, *peer.packages))
    if peer.bare_packages:
        _run(name, place, "pip install", (*pip, "--no-deps", *peer.bare_packages))
    _run(name, place, "a first import", (str(python), "-I", "-c", f"import {peer.module}"))
    (place / _MARKER).write_text(json.dumps(_stamp(name)), encoding="utf-8")
    return python


def _run(name: str, place: Path, step: str, command: Sequence[str]) -> None:
    """Run one step; an error says which, with the line of its output that tells why."""
    done = subprocess.run(
        command, env=clean_variables(), capture_output=True, text=True, errors="replace"
    )
    if done.returncode:
        lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        # pip's first error is the cause, what follows is advice; a traceback ends with its cause.
        causes = [line for line in lines if line.startswith("ERROR:")] or lines[-1:]
        cause = causes[0] if causes else f"exit code {done.returncode}"
        raise PeerEnvironmentError(
            f"no environment for {name} in {place}: {step} failed: {cause.removeprefix('ERROR: ')}"
        )


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Let one process at a time in."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
