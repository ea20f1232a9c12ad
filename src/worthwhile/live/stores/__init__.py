"""Stores: where live schedulers keep their tasks and reports. One interface, three homes."""

from __future__ import annotations

from urllib.parse import parse_qs

from worthwhile.errors import BadParameter
from worthwhile.live.stores.base import Store
from worthwhile.live.stores.memory import MemoryStore
from worthwhile.live.stores.schema import without_password

FORMS = "write sqlite:///relative.db, sqlite:////absolute.db, postgresql://user@host/database or memory://"


def open_store(url: str | None = None, create: bool = True) -> Store:
    """A store by its address; a plain path is a SQLite file. In memory without one.

    >>> open_store("memory://").transact(lambda tx: tx.schedulers())
    []
    """
    if url is None or url == "memory://":
        return MemoryStore()
    if not isinstance(url, str):
        raise BadParameter(f"store {url!r}; {FORMS}")
    scheme, separator, rest = url.partition("://")
    if separator and scheme in ("postgresql", "postgres"):
        from worthwhile.live.stores.postgres import PostgresStore

        return PostgresStore(url)
    if separator and scheme in ("http", "https"):
        raise BadParameter(
            f"store {without_password(url)!r}: that is a service, and this needs the store itself; {FORMS}. "
            "In Python, Client(url, token) takes the place of Scheduler"
        )
    if separator and scheme != "sqlite":
        raise BadParameter(f"store {without_password(url)!r}: no store called {scheme!r}; {FORMS}")
    if (
        not separator and "password=" in url.replace(" ", "").lower()
    ):  # libpq's keywords; as a file's name they would be shown
        raise BadParameter(f"store {without_password(url)!r}: keywords are not taken; {FORMS}")
    path, _, settings = (rest.removeprefix("/") if separator else url).partition("?" if separator else "\0")
    from worthwhile.live.stores.sqlite import SYNCHRONOUS, SqliteStore

    given = parse_qs(settings, keep_blank_values=True)
    synchronous = given.pop("synchronous", ["full"])[-1]
    if not path or given or synchronous not in SYNCHRONOUS:
        raise BadParameter(f"store {without_password(url)!r}; {FORMS}; ?synchronous=normal is the one setting there is")
    return SqliteStore(path, synchronous, create)


__all__ = ["MemoryStore", "Store", "open_store", "without_password"]
