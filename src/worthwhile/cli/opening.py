"""Which scheduler of a store a command is about."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from worthwhile.errors import BadParameter, UnknownScheduler
from worthwhile.formatting import shown
from worthwhile.live.settings import SettingsChange
from worthwhile.live.stores import open_store
from worthwhile.live.transactor import Transactor
from worthwhile.live.validation import check_text

if TYPE_CHECKING:
    from worthwhile.live.scheduler import Scheduler
    from worthwhile.service.client import Client

TOKEN = "WORTHWHILE_TOKEN"  # in the environment: where a service wants one
DEFAULT_NAME, MOST_NAMES = "default", 10  # of a scheduler that nobody named; names in a message


def is_service(address: str) -> bool:
    """Whether a store's address is that of a service."""
    return address.startswith(("http://", "https://"))


def opened(arguments: argparse.Namespace, create: bool = False) -> Scheduler | Client:
    """The scheduler of a store, or of a service if the address is one's. Imported here: either takes a while."""
    if is_service(arguments.store):
        return client(arguments.store, arguments.name or DEFAULT_NAME)
    from worthwhile.live.scheduler import Scheduler

    return Scheduler(arguments.store, name_of(arguments, create), create=create)


def client(address: str, name: str, **settings: Any) -> Client:
    """A scheduler of a service; it is made if there is none, and settings are given."""
    from worthwhile.service.client import Client

    return Client(address, os.environ.get(TOKEN), name, **settings)


def is_there(address: str, name: str) -> bool:
    """Whether there is a scheduler of that name, in a store that is made if there is none, or in a service."""
    if not is_service(address):
        return name in names_in(address, create=True)
    with client(address, name) as scheduler, suppress(UnknownScheduler):
        scheduler.latest(1)
        return True
    return False


def made(address: str, name: str, exists: bool, settings: dict[str, Any]) -> Scheduler | Client:
    """A scheduler with these settings, which have to agree with its own if it exists."""
    if is_service(address):  # which makes none unless it is told a setting: one that is as usual, then
        return client(address, name, **settings | ({} if exists else {"overhead": settings.get("overhead", 0.0)}))
    from worthwhile.live.scheduler import Scheduler

    return Scheduler(address, name, **settings)


@contextmanager
def asked(arguments: argparse.Namespace, create: bool = False) -> Iterator[Transactor]:
    """The same for decisions and reports, which ask for no more than that."""
    name = check_text("scheduler", name_of(arguments, create), BadParameter)
    transactor = Transactor(arguments.store, name, "python", create)
    try:
        transactor.find_or_create(SettingsChange())
        yield transactor
    finally:
        transactor.close()


def name_of(arguments: argparse.Namespace, create: bool) -> str:
    """The scheduler that is meant: the one named, the default one, or the only one there is."""
    if arguments.name:
        return str(arguments.name)
    names = names_in(arguments.store, create)
    if DEFAULT_NAME in names or not names:
        return DEFAULT_NAME
    if len(names) > 1:
        more = f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else ""
        known = ", ".join(map(shown, names[:MOST_NAMES])) + more
        raise BadParameter(f"there are several schedulers, and none is called {DEFAULT_NAME}; give --name: {known}")
    return names[0]


def names_in(address: str, create: bool = False) -> list[str]:
    """All schedulers of a store."""
    store = open_store(address, create)
    try:
        return store.transact(lambda tx: tx.schedulers())
    finally:
        store.close()
