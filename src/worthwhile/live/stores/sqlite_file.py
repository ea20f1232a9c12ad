"""The file of a SQLite store: made for its owner alone, watched while it is open, and its errors in our words."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import apsw

from worthwhile.errors import StoreError, StoreReplaced

WAL_EVERY = 20  # transactions: to look at a file takes two per cent of one

NO_DATABASE = "is damaged, or no SQLite database; it was left as it is: restore a backup, or name another file"
READ_ONLY = "it can only be read here; nothing was stored: to decide and report, make the file and its folder writable"
REMEDIES: dict[type[apsw.Error], str] = {
    apsw.FullError: "no space left on the disk; nothing was stored: free some and try again",
    apsw.ReadOnlyError: READ_ONLY,
    apsw.PermissionsError: READ_ONLY,
    apsw.CantOpenError: "{error}; nothing was stored: the file and its folder must be there and writable: SQLite keeps "
    "two more files beside it (a file with a -wal beside it can be read in another folder, if both are copied)",
    apsw.IOError: "{error}; what was asked may or may not be stored: check the disk, then repeat it (a key or a report "
    "counts once)",
    apsw.SQLError: "{error}; nothing was stored: its tables are not as worthwhile made them; restore a backup",
}
Identity = tuple[int, int] | None  # None: there is no such file


def identity(path: str) -> Identity:
    """Which file this is, whatever its name."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_dev


def make_private(path: str) -> None:
    """An empty file that nobody else can read, if there is none: the hashes of tokens will be in it.

    SQLite gives the files that it keeps beside it the same rights. A file that is there keeps those it has.
    """
    with suppress(OSError):  # SQLite says more clearly what is wrong
        number = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        try:
            if hasattr(os, "fchmod"):
                os.fchmod(number, 0o600)  # whatever the umask
        finally:
            os.close(number)


def is_writable(path: str) -> bool:
    """Whether SQLite could write there: it needs the folder, too."""
    return os.access(path, os.W_OK) and os.access(os.path.dirname(os.path.realpath(path)), os.W_OK)


class OpenFile:
    """The file that a connection has opened. Writes to one that was deleted or replaced would succeed, and be lost."""

    def __init__(self, path: str) -> None:
        self.path, self.wal = path, f"{os.path.realpath(path)}-wal"
        self.file, self.log = identity(path), identity(self.wal)
        self.until_wal = 0

    def check(self) -> None:
        """Raise `StoreReplaced` unless it is still there."""
        try:
            found = os.stat(self.path)
            same = (found.st_ino, found.st_dev) == self.file
        except OSError:
            same = False
        if not same:
            raise StoreReplaced(
                f"{self.path} was deleted, or another file is in its place; nothing was stored: stop every process "
                f"that uses it, remove {self.path}-wal and -shm, put the right file there, and start them again"
            )
        self.until_wal -= 1
        if self.until_wal < 0:
            self.check_wal()

    def check_wal(self) -> None:
        """The same for the file beside it, which has the latest commits; now and then, for who deletes only that?"""
        self.until_wal = WAL_EVERY
        if self.log is None:
            self.log = identity(self.wal)  # it is made with the first transaction
        elif identity(self.wal) != self.log:
            raise StoreReplaced(f"{self.wal} was deleted while it was in use; repeat the call, and leave it alone")

    def left_behind(self) -> bool:
        """Whether another file has come, and beside it lies what belongs to this one: SQLite would mix them."""
        return identity(self.path) != self.file and self.log is not None and identity(self.wal) == self.log


def version_of(path: str) -> tuple[int, int] | None:
    """What changes when somebody writes to a file; None if it is not there, or if somebody has begun to."""
    try:
        found, log = os.stat(path), Path(f"{os.path.realpath(path)}-wal")
        return None if log.exists() and log.stat().st_size > 0 else (found.st_mtime_ns, found.st_size)
    except OSError:
        return None


def explained(error: apsw.Error, path: Path, patience: float) -> StoreError:
    """SQLite's errors in our words."""
    if isinstance(error, apsw.NotADBError | apsw.CorruptError):
        return StoreError(f"{path} {NO_DATABASE} ({error})")
    if isinstance(error, apsw.BusyError):
        busy = StoreError(f"{path}: other processes kept it locked for {patience:g} s; nothing was stored: try again")
        busy.waited = True
        return busy
    remedy = REMEDIES.get(type(error), "{error}; nothing was stored")
    return StoreError(f"{path}: {remedy.format(error=error)}")
