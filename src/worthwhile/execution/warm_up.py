"""Warm up: what happens once in every process, before anything is measured there."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from worthwhile.errors import BadParameter, WarmUpFailed
from worthwhile.live.task import in_words

LOCK = threading.Lock()
DONE: dict[str, str] = {}  # in this process: why each warm-up failed, empty if it did not


class WarmUp(NamedTuple):
    """A function without arguments, and a mark by which a process knows that it has called it."""

    call: Callable[[], Any]
    mark: str


def warm_up_of(call: Callable[[], Any] | None) -> WarmUp | None:
    """For one call of `work`: the next one has another mark, so what failed may be mended."""
    if call is not None and not callable(call):
        raise BadParameter(f"warm_up = {call!r}; give a function without arguments")
    return None if call is None else WarmUp(call, secrets.token_hex(8))


def warm(warm_up: WarmUp) -> None:
    """Call it, unless this process has; threads that come meanwhile wait for its end."""
    with LOCK:
        if warm_up.mark not in DONE:
            DONE[warm_up.mark] = cause(warm_up.call)
    if DONE[warm_up.mark]:
        raise failed(warm_up, DONE[warm_up.mark])


def cause(call: Callable[[], Any]) -> str:
    """Why it failed; empty if it did not."""
    try:
        call()
    except Exception as error:
        return in_words(error)
    return ""


def failed(warm_up: WarmUp, why: str) -> WarmUpFailed:
    """What to do about it."""
    name = getattr(warm_up.call, "__qualname__", repr(warm_up.call))
    remedy = "no task runs without it: mend it or leave it out, then work through the same tasks again"
    return WarmUpFailed(f"warm_up = {name}: {why}; {remedy}")
