"""Tasks of the stream that others run: asked for again, until they have reported or can be taken over."""

from __future__ import annotations

import time
from collections import deque
from typing import NamedTuple

from worthwhile.execution.arrivals import Arrival

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0  # seconds
MOST = 1000  # that are kept in mind; no more are taken from the stream until some have reported


class Wanted(NamedTuple):
    """A task to be claimed."""

    arrival: Arrival
    instead_of: str | None = None  # a holder that has ended
    seen_elsewhere: bool = False


class Elsewhere:
    """First come, first asked for; with pauses that grow as long as nothing changes."""

    def __init__(self) -> None:
        self.tasks: deque[Wanted] = deque()
        self.pause, self.next_look = 0.0, 0.0

    def add(self, arrival: Arrival, gone: str | None) -> None:
        """Another holder has it; if that one has ended, it can be taken over at once."""
        self.tasks.append(Wanted(arrival, gone, seen_elsewhere=True))
        if gone is not None:
            self.changed()

    def take(self, room: int) -> list[Wanted]:
        """Those to ask for now."""
        if room < 1 or not self.tasks or self.left() > 0.0:
            return []
        self.pause = min(max(FIRST_PAUSE, 2.0 * self.pause), LONGEST_PAUSE)
        self.next_look = time.monotonic() + self.pause
        return [self.tasks.popleft() for _ in range(min(room, len(self.tasks)))]

    def changed(self) -> None:
        """One has reported or could be taken over: others may have, too."""
        self.pause = self.next_look = 0.0

    def left(self) -> float:
        """Seconds until the next look."""
        return max(0.0, self.next_look - time.monotonic())

    def full(self) -> bool:
        return len(self.tasks) >= MOST
