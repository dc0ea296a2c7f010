"""Files on disk: only regular ones are opened; a file is replaced at once or not at all."""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from longtail.store.strict_json import FaultError

try:
    import fcntl
except ImportError:  # Windows, where a file in use cannot be deleted anyway
    fcntl = None  # type: ignore[assignment]

_TEMPORARY = re.compile(r"\.longtail-([0-9]{1,10})-[0-9a-f]+\.tmp")


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a regular file for reading; a pipe or device would block or never end."""
    fault = FaultError("is not a regular file; a model is one file")
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise fault
    # Another file may be there by now: opening a pipe must not wait for its writer.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    handle = os.open(path, flags)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise fault
    return open(handle, "rb", buffering=0)


def set_mode(path: str | os.PathLike[str], mode: int) -> None:
    """Give a regular file permissions; never what a link leads to.

    The file is not opened for reading: closing a file that SQLite has open in this process would
    give up its locks, which closing a handle of `O_PATH` does not.
    """
    if not hasattr(os, "O_PATH"):  # macOS and Windows
        if stat.S_ISREG(os.lstat(path).st_mode):
            os.chmod(path, mode)
        return
    handle = os.open(path, os.O_PATH | os.O_NOFOLLOW)
    try:
        if stat.S_ISREG(os.fstat(handle).st_mode):
            os.chmod(f"/proc/self/fd/{handle}", mode)
    finally:
        os.close(handle)


def replace_file(target: Path, blocks: Iterable[bytes | memoryview], mode: int | None) -> None:
    """Write blocks of bytes beside the target, make them durable and rename them into place.

    What is there is replaced, whatever it is. The temporary file has the permissions from its first
    byte; without `mode` they are the umask's.

    Raises
    ------
    OSError
        The system could not write it; what was there is unchanged.
    """
    remove_abandoned(target.parent)
    temporary = temporary_path(target)
    try:
        _write_durably(temporary, blocks, mode, target)
    except BaseException as error:  # also an interrupt: the temporary file must not stay
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            raise _unwritten(target, error) from error
        raise
    sync_folder(target.parent)


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """Give a new name beside the target; what is written there replaces it if all goes well."""
    temporary = temporary_path(target)
    try:
        yield temporary
        os.replace(temporary, target)
    except BaseException:  # also an interrupt: the temporary file must not stay
        with suppress(OSError):
            temporary.unlink()
        raise


def temporary_path(target: Path) -> Path:
    """Return a new name beside a file, which `remove_abandoned` knows."""
    return target.parent / f".longtail-{os.getpid()}-{secrets.token_hex(8)}.tmp"


def remove_abandoned(folder: Path) -> None:
    """Remove temporary files of saves that were killed.

    Such a file's name has the id of a process that has ended, and its lock is free (the process
    may live on another machine that shares the folder).
    """
    with suppress(OSError):
        for path in folder.iterdir():
            match = _TEMPORARY.fullmatch(path.name)
            if match and not _is_running(int(match[1])):
                with suppress(OSError):
                    _remove_unlocked(path)


def _is_running(process: int) -> bool:
    """Return whether there is a process of this id, as far as can be detected."""
    if os.name == "nt":  # there a signal would end it
        return process == os.getpid()
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def _remove_unlocked(path: Path) -> None:
    """Remove a regular file unless its lock is held."""
    if fcntl is None:
        path.unlink()
        return
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    try:
        if stat.S_ISREG(os.fstat(handle).st_mode):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()
    finally:
        os.close(handle)


def _write_durably(
    path: Path, blocks: Iterable[bytes | memoryview], mode: int | None, target: Path
) -> None:
    """Write a new file durably, and rename it while its lock is held."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    with open(os.open(path, flags, 0o666 if mode is None else mode), "wb") as file:
        if fcntl is not None:
            with suppress(OSError):  # a file system without locks
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if mode is not None:
            set_mode(path, mode)  # what the umask took away
        for block in blocks:
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
        if os.name != "nt":
            os.replace(path, target)
            return
    os.replace(path, target)  # Windows renames closed files only


def _unwritten(target: Path, error: OSError) -> OSError:
    """Return the system's error, of the same class and number, in terms of the model."""
    message = f"{error.strerror or error}. The model was not saved; what was there is unchanged"
    return OSError(error.errno, message, str(target))


def sync_folder(folder: Path) -> None:
    """Make a rename durable; Windows has no such call and needs none."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
