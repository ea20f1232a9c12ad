"""Questions to the store that anybody may cause, as often as they like: asked once for all who wait."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from worthwhile.errors import Overloaded

APART = 0.02  # seconds from one answer to the next question
BETWEEN = 0.005  # seconds between two who are turned away
MOST_TURNED_AWAY = 1000  # waiting for that

Answer = TypeVar("Answer")


class LookUp(Generic[Answer]):
    """One question at a time. An answer is never older than who gets it: who comes too late for one gets the next."""

    def __init__(self, ask: Callable[[], Awaitable[Answer]]) -> None:
        self.ask, self.asking, self.not_before = ask, asyncio.Lock(), 0.0
        self.following: asyncio.Task[Answer] | None = None

    async def __call__(self) -> Answer:
        if self.following is None:
            self.following = asyncio.create_task(self.answer())
            self.following.add_done_callback(lambda task: task.cancelled() or task.exception())  # all may have left
        return await asyncio.shield(self.following)

    async def answer(self) -> Answer:
        loop = asyncio.get_running_loop()
        async with self.asking:
            await asyncio.sleep(self.not_before - loop.time())
            self.following = None
            try:
                return await self.ask()
            finally:
                self.not_before = loop.time() + APART


class Turnstile:
    """Lets those who are turned away go one by one, so that a crowd of them keeps nobody else waiting."""

    def __init__(self) -> None:
        self.turn, self.waiting = asyncio.Lock(), 0

    async def pass_through(self) -> None:
        if self.waiting >= MOST_TURNED_AWAY:
            raise Overloaded(f"{self.waiting} others ask for what is not there; try again")
        self.waiting += 1
        try:
            async with self.turn:
                await asyncio.sleep(BETWEEN)
        finally:
            self.waiting -= 1
