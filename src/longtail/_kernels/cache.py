"""Compiled kernels on the disk: where they are looked for, and how they are kept.

Folders, in this order: ``NUMBA_CACHE_DIR``, ``__pycache__`` of this package, the user's cache
folder (``~/.cache/longtail``). A kernel is read from the first folder that has it, whether that
folder can be written or not, and kept in the first that can. Where none can, it is compiled in each
process, with one warning.

In a folder, each version of the package has a folder of its own, named after its number and a hash
of the sources of all kernels: a kernel is never run with arguments that another version laid out
differently. In it, each compiled signature is one file, written under another name and then
renamed: processes that compile the same kernels at the same time write the same files, and a reader
finds a whole one or none. (Numba's own cache has an index per kernel, which two processes can
overwrite with different entries.)

What is read is a pickle, so whoever may write it runs code. A folder or file is used only if it
belongs to this user, to root or to the owner of this package, and nobody else may write it.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import stat
import sys
import uuid
import warnings
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

_CHECKSUM_BYTES = 32
_config: Any = numba.config
_warned = False


class KernelCache:
    """The compiled signatures of one kernel, as numba's dispatcher wants a cache to be.

    Parameters
    ----------
    function : function
        The kernel, in Python.
    """

    def __init__(self, function: Any) -> None:
        self._name = f"{function.__module__.rpartition('.')[2]}.{function.__name__}"

    @property
    def cache_path(self) -> str | None:
        """Where this kernel was found or kept; where it would be looked for first, if nowhere."""
        found = [folder for folder in list_folders() if any(folder.glob(f"{self._name}-*"))]
        return str((found or list_folders())[0])

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Return what was compiled for a signature; None where no folder has it."""
        target.refresh()
        name = self._file_name(signature, target.codegen())
        for folder in list_folders():
            content = _read(folder / name)
            if content is not None:
                return CompileResult._rebuild(target, *pickle.loads(content))
        return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keep what was compiled for a signature, in the first folder that can be written."""
        content = dumps(compiled._reduce())
        name = self._file_name(signature, compiled.codegen)
        if not any(_write(folder / name, content) for folder in list_folders()):
            _warn_once()

    def _file_name(self, signature: Any, codegen: Any) -> str:
        """Return a name that tells apart whatever the machine code depends on."""
        settings = (_config.BOUNDSCHECK, _config.OPT, _config.DEBUGINFO_DEFAULT)
        versions = (numba.__version__, sys.version_info[:2])
        key = repr((str(signature), codegen.magic_tuple(), settings, versions))
        return f"{self._name}-{hashlib.sha256(key.encode()).hexdigest()[:24]}.kernel"


@cache
def list_folders() -> tuple[Path, ...]:
    """Return the folders of compiled kernels, in the order in which they are tried."""
    package = Path(__file__).parent
    given = [Path(_config.CACHE_DIR)] if _config.CACHE_DIR else []
    version = f"longtail-{hash_sources(package)}"
    return tuple(folder / version for folder in (*given, package / "__pycache__", *_user_folders()))


def hash_sources(package: Path) -> str:
    """Return the number of this version and a hash of the sources of all kernels."""
    version = sys.modules["longtail"].__version__  # the package around this one is there already
    digest = hashlib.sha256()
    for path in sorted(package.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return f"{version}-{digest.hexdigest()[:16]}"


def _user_folders() -> list[Path]:
    """Return the user's cache folder; none where the user has no home."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return [Path(base) / "longtail"] if base and os.path.isabs(base) else []


def _read(path: Path) -> bytes | None:
    """Return the content of a file; None if it is not ours, or not as it was written."""
    try:
        if not _is_ours(os.lstat(path.parent)):
            return None
        with open(path, "rb") as file:
            if not _is_ours(os.fstat(file.fileno())):
                return None
            content = file.read()
    except OSError:
        return None
    whole = hashlib.sha256(content[_CHECKSUM_BYTES:]).digest() == content[:_CHECKSUM_BYTES]
    return content[_CHECKSUM_BYTES:] if whole else None


def _write(path: Path, content: bytes) -> bool:
    """Write a file whole or not at all; return whether that was possible."""
    temporary = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
    try:
        path.parent.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            path.parent.mkdir(0o755)
        if not _is_ours(os.lstat(path.parent)):
            return False
        with open(temporary, "xb", opener=_open_for_owner) as file:
            file.write(hashlib.sha256(content).digest() + content)
        temporary.replace(path)
    except OSError:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        return path.exists()  # where another process has it open, it cannot be replaced (Windows)
    return True


def _open_for_owner(path: str, flags: int) -> int:
    """Open a new file that others may read, whatever the umask lets them write."""
    return os.open(path, flags, 0o644)


def _is_ours(found: os.stat_result) -> bool:
    """Return whether nobody may write a file or folder who could not change the package anyway."""
    if sys.platform == "win32" or stat.S_ISLNK(found.st_mode):
        return sys.platform == "win32"
    owners = (os.geteuid(), 0, os.stat(__file__).st_uid)
    return found.st_uid in owners and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _warn_once() -> None:
    """Say that kernels are compiled anew in each process."""
    global _warned
    if _warned:
        return
    _warned = True
    warnings.warn(
        "compiled kernels cannot be kept: none of these folders can be written, by this user "
        "alone: "
        f"{', '.join(str(folder.parent) for folder in list_folders())}. Each process compiles "
        "them again. Set NUMBA_CACHE_DIR to a folder that can be written, or run "
        "`longtail warmup` where the package is installed, as a user who may write there.",
        RuntimeWarning,
        stacklevel=2,
    )
