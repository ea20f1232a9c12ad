"""The dashboard while tasks run: the service in a process of its own, which ends with this one."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

HOST = "127.0.0.1"
PORTS = range(8080, 8100)  # to try, unless one is asked for
PATIENCE = 30.0  # seconds for it to start
LATER = 10  # added to its niceness


@contextmanager
def dashboard(store: Path, port: int | None, out: TextIO, policy: str | None = None) -> Iterator[None]:
    """Say where it is, or why there is none: tasks run either way."""
    log = store.with_name("dashboard.log")
    process, address = launch(store, port, log, policy)
    try:
        out.write(f"dashboard: {address} (while this runs)\n" if address else f"no dashboard: {why_not(log)}\n")
        out.flush()
        yield
    finally:
        stop(process)


def launch(store: Path, port: int | None, log: Path, policy: str | None) -> tuple[subprocess.Popen[bytes], str | None]:
    """Its process and address; tried again where somebody was faster to take the free port."""
    while True:
        wanted = free_port() if port is None else port
        with open(log, "wb") as file:
            process = subprocess.Popen(
                command(store, wanted, policy),
                stdin=subprocess.PIPE,  # it ends when this does, also after kill −9
                stdout=file,
                stderr=file,
                start_new_session=True,  # Ctrl-C is for us
            )
        if address := started(process, log):
            step_back(process)
            return process, address
        stop(process)
        if port is not None or wanted == free_port():
            return process, None


def command(store: Path, port: int, policy: str | None) -> list[str]:
    serve = [sys.executable, "-m", "worthwhile", "serve", "--store", str(store), "--host", HOST, "--port", str(port)]
    own = (policy or "").partition(",")[0]
    return [*serve, "--no-access-log", "--until-input-ends", *(["--allow-policy", own] if ":" in own else [])]


def free_port(ports: Sequence[int] = PORTS) -> int:
    """8080 or the next one that nobody uses; 0, any, if all are in use."""
    for port in ports:
        with suppress(OSError), socket.create_server((HOST, port)):
            return port
    return 0


def started(process: subprocess.Popen[bytes], log: Path) -> str | None:
    """Its address once it listens, None if it ends or takes too long; trainings, which are timed, begin afterwards."""
    end = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < end:
        if address := re.search(r"http://\S+", log.read_text(encoding="utf-8", errors="replace")):
            return address[0]
        time.sleep(0.05)
    return None


def step_back(process: subprocess.Popen[bytes]) -> None:
    """Let the trainings have the processor first."""
    with suppress(OSError, AttributeError):  # it has ended; no Unix
        os.setpriority(os.PRIO_PROCESS, process.pid, LATER)


def why_not(log: Path) -> str:
    """The last line of its log."""
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    last = next((line for line in reversed(lines) if line.strip()), f"it did not start within {PATIENCE:.0f} s")
    return last.removeprefix("worthwhile: ")


def stop(process: subprocess.Popen[bytes]) -> None:
    """Ask it, then make it."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
