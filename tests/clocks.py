"""A clock that a test can set."""

from __future__ import annotations

import math
from typing import Any

from worthwhile import Scheduler


class Clock:
    """The clock of one scheduler's store."""

    def __init__(self, scheduler: Scheduler) -> None:
        store: Any = scheduler._transactor.store
        self.real, self.ahead, self.stopped = store.open, 0.0, math.nan
        store.open = self.open

    def open(self, name: str) -> Any:
        header = self.real(name)
        if header is not None:
            header.now = self.stopped if self.stopped == self.stopped else header.now + self.ahead
        return header
