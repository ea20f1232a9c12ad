"""Which scheduler of a store a command is about."""

from __future__ import annotations

import argparse

from worthwhile.errors import BadParameter
from worthwhile.formatting import shown
from worthwhile.live.scheduler import Scheduler
from worthwhile.live.stores import open_store

DEFAULT_NAME, MOST_NAMES = "default", 10  # of a scheduler that nobody named; names in a message


def opened(arguments: argparse.Namespace, create: bool = False) -> Scheduler:
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
