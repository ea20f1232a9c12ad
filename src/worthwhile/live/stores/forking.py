"""No connection lives through a fork: SQLite's locks and PostgreSQL's conversations belong to one process.

Before a fork every store ends its transaction and hangs up; parent and child connect again when they need to.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from weakref import WeakSet

PATIENCE = 10.0  # seconds for transactions of other threads to end


class Forkable:
    """A store; whoever uses it holds `in_use`, and the thread that forks may be the one who does."""

    def __init__(self) -> None:
        self.in_use = threading.RLock()
        STORES.add(self)

    def hang_up(self) -> None:
        """Close the connection, if there is one."""

    def begin_anew(self) -> None:
        """In the child: whoever held the lock may not be there any more."""
        self.in_use = threading.RLock()


STORES: WeakSet[Forkable] = WeakSet()
held: list[Forkable] = []  # since the fork began


def hang_up_all() -> None:
    for store in list(STORES):
        if store.in_use.acquire(timeout=PATIENCE):
            held.append(store)
            with suppress(Exception):
                store.hang_up()


def go_on_in_parent() -> None:
    while held:
        held.pop().in_use.release()


def begin_anew_in_child() -> None:
    held.clear()
    for store in list(STORES):
        store.begin_anew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=hang_up_all, after_in_parent=go_on_in_parent, after_in_child=begin_anew_in_child)
