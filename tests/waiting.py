"""Tests wait for what happens, not for a while: a busy machine may take as long as it likes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

NET = 300.0  # seconds: only so that a test ends that would wait for ever
LOOK_AGAIN = 0.005


def wait_until(condition: Callable[[], object], why: str) -> None:
    """Look again and again until it is so."""
    end = time.monotonic() + NET
    while not condition():
        assert time.monotonic() < end, f"waited {NET:g} s for {why}"
        time.sleep(LOOK_AGAIN)


def once(condition: Callable[[], object], action: Callable[[], object], why: str) -> threading.Thread:
    """A thread that acts as soon as it is so."""

    def work() -> None:
        wait_until(condition, why)
        action()

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def has_taken_signals(pid: int) -> bool:
    """Whether every signal that was sent to a process has reached it."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return all(int(line.split()[1], 16) == 0 for line in status if line.startswith(("SigPnd", "ShdPnd")))


def later_once(condition: Callable[[], object]) -> SimpleNamespace:
    """A clock for a module: an hour later as soon as something is so."""
    return SimpleNamespace(perf_counter=lambda: time.perf_counter() + (3600.0 if condition() else 0.0))
