"""Start a worker and end it, with whatever it has started: below a keeper where there is `fork`, else alone."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from contextlib import suppress
from multiprocessing import connection, context, get_context, parent_process, resource_tracker, spawn
from pathlib import Path

from worthwhile.execution.calls import make_calls

KEEPER = str(Path(__file__).with_name("keeper.py"))  # not imported: it is a program of its own
SPAWN = get_context("spawn")  # a fork would copy our threads' locks in whatever state they are, and hang


def start_worker(pipe: connection.Connection, theirs: connection.Connection) -> KeptProcess | context.SpawnProcess:
    """A process that makes the calls that come through a pipe."""
    if os.name == "posix" and not getattr(sys, "frozen", False):
        return KeptProcess(pipe, theirs)
    process = SPAWN.Process(target=make_calls_until_parent_ends, args=(theirs,))
    process.start()
    return process


class KeptProcess:
    """A worker below a keeper, with the interface of `multiprocessing.Process`."""

    def __init__(self, pipe: connection.Connection, theirs: connection.Connection) -> None:
        tracker = resource_tracker.getfd()
        assert tracker is not None  # this has started it
        until, ours = os.pipe()
        numbers = theirs.fileno(), until, tracker
        python = spawn.get_command_line()[:-3]  # with the flags of this one
        try:
            self.starter_pipe = open(ours, "wb", 0)  # noqa: SIM115 (closed by `kill`, or by the end of this process)
            self.keeper = subprocess.Popen(
                [*python, "-P", KEEPER, *map(str, numbers), str(os.getpid())],
                pass_fds=numbers,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        finally:
            os.close(until)
        data = spawn.get_preparation_data("worthwhile worker")
        data["authkey"] = bytes(data["authkey"])  # a plain one: `multiprocessing` refuses to send its own
        with suppress(OSError):  # killed at once; whoever waits for it to be ready will notice
            pipe.send_bytes(pickle.dumps(data))

    @property
    def exitcode(self) -> int | None:
        """How the worker ended, once all that it has started has ended too."""
        return self.keeper.poll()

    def kill(self) -> None:
        self.starter_pipe.close()

    def join(self, timeout: float | None = None) -> None:
        with suppress(subprocess.TimeoutExpired):
            self.keeper.wait(timeout)


def make_calls_until_parent_ends(pipe: connection.Connection) -> None:
    """A worker without a keeper ends with its parent by itself."""
    threading.Thread(target=end_with_parent, daemon=True).start()
    make_calls(pipe)


def end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)  # not sys.exit, which ends this thread only
