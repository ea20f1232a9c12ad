"""Which scheduler of a store a command is about."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from worthwhile.errors import BadParameter
from worthwhile.formatting import shown
from worthwhile.live.scheduler import Scheduler
from worthwhile.live.stores import open_store

if TYPE_CHECKING:
    from worthwhile.service.client import Client

TOKEN = "WORTHWHILE_TOKEN"  # in the environment: where a service wants one
DEFAULT_NAME, MOST_NAMES = "default", 10  # of a scheduler that nobody named; names in a message


def opened(arguments: argparse.Namespace, create: bool = False) -> Scheduler | Client:
    """The scheduler of a store, or of a service if the address is one's."""
    if arguments.store.startswith(("http://", "https://")):
        from worthwhile.service.client import Client

        return Client(arguments.store, os.environ.get(TOKEN), arguments.name or DEFAULT_NAME)
    return Scheduler(arguments.store, arguments.name or usual_name(arguments.store, create), create=create)


def usual_name(address: str, create: bool) -> str:
    """The scheduler that is meant if none is named: the default one, or the only one there is."""
    store = open_store(address, create)
    try:
        names = store.transact(lambda tx: tx.schedulers())
    finally:
        store.close()
    if DEFAULT_NAME in names or not names:
        return DEFAULT_NAME
    if len(names) > 1:
        more = f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else ""
        known = ", ".join(map(shown, names[:MOST_NAMES])) + more
        raise BadParameter(f"there are several schedulers, and none is called {DEFAULT_NAME}; give --name: {known}")
    return names[0]
