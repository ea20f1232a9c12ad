"""How much large messages may take of the memory, in all: readers that do not read must not fill it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from worthwhile.errors import Overloaded

PIECE = 1 << 16  # bytes handed to a connection at once: about so much waits in it for a reader that does not read


class Room:
    """So much and no more; whoever finds it full is told to come back."""

    def __init__(self, most: int, of: str) -> None:
        self.most, self.of, self.taken = most, of, 0

    @contextmanager
    def take(self, size: int = 1) -> Iterator[None]:
        if self.taken + size > self.most:
            raise Overloaded(f"others are taking all the room there is for {self.of}; try again")
        self.taken += size
        try:
            yield
        finally:
            self.taken -= size
