"""A small process above each worker, which ends everything that the worker has started, whatever becomes of either.

It runs this file as a script and then forks the worker, before anything of the user's is loaded: a fork later on would
copy the locks of libraries in whatever state they are, and a second start would load them twice. On Linux, the kernel
hands it every process below it whose parent has ended (PR_SET_CHILD_SUBREAPER). So it can kill all there are, also
those with a session of their own, and knows that none is left when it has no more children.
"""

from __future__ import annotations

import os
import pickle
import resource
import select
import signal
import sys
import time
from contextlib import suppress
from multiprocessing import connection, process, resource_tracker, spawn
from typing import Any, cast

LINUX = sys.platform == "linux"
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
LOOK_AGAIN = 1000  # milliseconds: another child of whoever started us may hold the pipe that tells of the end
BREATH = 0.001  # seconds between two looks at who is left


def main() -> None:
    """Numbers of: the worker's pipe, the pipe that ends with our starter, the resource tracker's, the starter."""
    pipe, starter_pipe, tracker, starter = map(int, sys.argv[1:])
    keeper = os.getpid()
    set_process(PR_SET_CHILD_SUBREAPER, 1)
    worker = os.fork()
    if worker == 0:
        os.close(starter_pipe)
        set_process(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == keeper:  # else it was killed before that line
            be_worker(pipe, tracker)
        return
    os.close(pipe)  # so that it has an end of file when the worker dies
    statuses: dict[int, int] = {}
    keep(worker, starter_pipe, starter, statuses)
    end_all(worker, statuses)
    end_like(statuses[worker])


def set_process(what: int, value: int) -> None:
    """Ask the kernel for something, where it is Linux."""
    if LINUX:
        with suppress(ImportError):  # some Pythons are built without it: then only the worker's group is reached
            import ctypes

            ctypes.CDLL(None).prctl(what, value, 0, 0, 0)


def be_worker(number: int, tracker_pipe: int) -> None:
    """What `multiprocessing` does in a process that it has spawned, then one call after the other."""
    os.setsid()  # Ctrl-C at the terminal does not reach it
    tracker: Any = resource_tracker
    tracker._resource_tracker._fd = tracker_pipe  # that of the starter, which outlives a worker that is killed
    pipe, current = connection.Connection(number), cast(Any, process.current_process())
    current._inheriting = True  # programs that start processes when they are imported are refused
    spawn.prepare(pickle.loads(pipe.recv_bytes()))
    del current._inheriting
    from worthwhile.execution.calls import make_calls

    make_calls(pipe)


def keep(worker: int, starter_pipe: int, starter: int, statuses: dict[int, int]) -> None:
    """Until the worker has ended, or has to."""
    wakeups, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    watcher = select.poll()
    watcher.register(wakeups, select.POLLIN)
    watcher.register(starter_pipe, select.POLLIN)
    while collect(statuses) and worker not in statuses and os.getppid() == starter:
        statuses.clear()  # of orphans
        events = dict(watcher.poll(LOOK_AGAIN))
        if starter_pipe in events or (wakeups in events and set(os.read(wakeups, 4096)) - {signal.SIGCHLD}):
            return


def collect(statuses: dict[int, int]) -> bool:
    """Note how children have ended; whether there are others."""
    try:
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            statuses[ended[0]] = ended[1]
    except ChildProcessError:
        return False
    return True


def end_all(worker: int, statuses: dict[int, int]) -> None:
    """Kill whoever is left, until nobody is."""
    with suppress(OSError):  # its group: all that can be reached where orphans are not handed to us
        os.killpg(worker, signal.SIGKILL)
    kill_children()
    while collect(statuses):
        time.sleep(BREATH)
        kill_children()


def kill_children() -> None:
    """Children of a process that is killed are ours next time."""
    for child in children():
        with suppress(OSError):  # it has ended, or it is somebody else's (sudo)
            os.kill(child, signal.SIGKILL)


def children() -> list[int]:
    """Processes whose parent is this one; known on Linux only."""
    own = str(os.getpid())
    numbers: list[int] = []
    if not LINUX:
        return numbers
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError), open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
            if file.read().rpartition(")")[2].split()[1] == own:  # pid (name) state parent …
                numbers.append(int(name))
    return numbers


def end_like(status: int) -> None:
    """So that whoever started us sees how the worker ended."""
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # one of the worker is enough
        with suppress(OSError):  # SIGKILL has no handler to be set
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(abs(code))


if __name__ == "__main__":
    main()
