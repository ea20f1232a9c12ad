"""Tasks that really run, in processes of their own: they end, raise, hang and die. `python work_tasks.py` runs many."""

from __future__ import annotations

import multiprocessing
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from waiting import wait_until
from worthwhile import Arrival, LocalExecutor, Outcome, Scheduler, work

OPTIONS = [1, 2, 4]
JOULES = [0.0]  # burnt by this process
COPIES: list[int] = []  # of this process, by `fork_and_return`
UNTIL_TOLD = 30  # the first task of a stream that waits


def double(kind: str, option: Any, payload: Any) -> float:
    return 2.0 * option


def own_process(kind: str, option: Any, payload: Any) -> float:
    return float(os.getpid())


def misbehave(kind: str, option: Any, payload: Any) -> float | str:
    """Does what its payload says."""
    if payload == "raise":
        raise ValueError("not today")
    if payload == "hang":
        time.sleep(3600)
    if payload == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if payload == "nonsense":
        return "a reward"
    return 1.0


def hang_with_child(kind: str, option: Any, payload: Any) -> float:
    """Starts a process of its own and waits for it."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
    Path(payload).write_text(f"{os.getpid()} {child.pid}")
    return float(child.wait())


def fork_and_return(folder: str, number: int) -> int:
    """Leaves a copy of itself that returns as well, in the middle of the next call."""
    (Path(folder) / f"begun {number}").touch()
    wait_until(lambda: not any(map(alive, COPIES)), "the end of the copy before")
    copy = os.fork()
    if copy == 0:
        wait_until((Path(folder) / f"begun {number + 1}").exists, "the next call")
        return -1
    COPIES[:] = [copy]
    return number


def leave_thread(lasting: str) -> int:
    """Leaves something behind that never ends, and for which Python waits; its own number."""
    if lasting == "thread":
        threading.Thread(target=threading.Event().wait).start()
    else:
        multiprocessing.get_context("fork").Process(target=time.sleep, args=(3600,)).start()
    return os.getpid()


def start_daemons(note: str) -> list[int]:
    """Three processes that want to outlive this one: a session of its own, deaf to hang-ups, a daemon by two forks."""
    pids = [
        subprocess.Popen(["sleep", "3600"], start_new_session=True).pid,
        subprocess.Popen(["nohup", "sleep", "3600"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).pid,
    ]
    told, tell = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if (daemon := os.fork()) == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.execvp("sleep", ["sleep", "3600"])
        os.write(tell, str(daemon).encode())
        os._exit(0)
    pids += [int(os.read(told, 100)), os.getpid()]
    Path(f"{note}.new").write_text(" ".join(map(str, pids)))
    os.rename(f"{note}.new", note)
    return pids


def end_with_daemons(note: str, how: str) -> None:
    """Ends in a bad way."""
    start_daemons(note)
    if how == "exit":
        os._exit(3)
    if how == "segfault":
        os.kill(os.getpid(), signal.SIGSEGV)
    time.sleep(3600)


def together(kind: str, option: Any, payload: list[str]) -> float:
    """Leaves a line in a file, and waits until two processes have left one."""
    file, name = payload
    with open(file, "a", encoding="utf-8") as lines:
        lines.write(f"{name} {os.getpid()}\n")
    wait_until(lambda: len({line.split()[1] for line in Path(file).read_text().splitlines()}) >= 2, "the other process")
    return 1.0


def first_waits(kind: str, option: Any, payload: list[str]) -> float:
    """The first process that runs it, and notes its number, waits for ever; others do not."""
    folder, name = payload
    try:
        note = os.open(f"{folder}/{name}", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    except FileExistsError:
        return 2.0
    os.write(note, str(os.getpid()).encode())
    while True:
        time.sleep(3600)


def prefixes(kind: str, option: Any, payload: Any) -> Outcome:
    """A long run that also shows the shorter ones."""
    return Outcome(0.1 * option, 1.0 * option, {each: (0.1 * each, 1.0 * each) for each in OPTIONS if each < option})


def give_up(kind: str, option: Any, payload: Any) -> Outcome:
    return Outcome(cost=3.0, observed={1: (0.1, 1.0)}, failed=True, reason="out of luck")


def good_or_bad(kind: str, option: Any, payload: list[str]) -> Outcome:
    """Leaves a line in a file, and raises unless its option is good; `wait` waits before that for a file .go."""
    file, name = payload
    with open(file, "a", encoding="utf-8") as lines:
        lines.write(f"{name} {option}\n")
    if option == "wait":
        wait_until(Path(f"{file}.go").exists, "leave to go on")
    if option == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if option == "bad":
        raise KeyError(name)
    return Outcome(1.0, 2.0)


def written_down(kind: str, option: Any, payload: Any) -> float:
    """Leaves a line in a file for every time it runs to its end; after the first ones, when there is a file .go."""
    file, name = payload
    if name >= UNTIL_TOLD:
        wait_until(Path(f"{file}.go").exists, "leave to go on")
    with open(file, "a", encoding="utf-8") as lines:
        lines.write(f"{name}\n")
    return 1.0


def meet(folder: str, others: int) -> int:
    """Returns when so many processes are here; its own number."""
    (Path(folder) / str(os.getpid())).touch()
    wait_until(lambda: len(os.listdir(folder)) >= others, "the others")
    return os.getpid()


def warm(folder: str) -> None:
    """Burns a thousand joules, and leaves a file named by its process."""
    (Path(folder) / f"{os.getpid()} {secrets.token_hex(4)}").touch()
    JOULES[0] += 1000.0


def burn(kind: str, option: Any, payload: Any) -> Outcome:
    """Seven joules, in a process that has warmed up; which one, is its reward."""
    assert joules() >= 1000.0
    if payload == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if payload == "meet":
        meet(kind, 2)
    JOULES[0] += 7.0
    return Outcome(float(os.getpid()))


def joules() -> float:
    return JOULES[0]


def stay_cold(how: str) -> None:
    """A warm-up that fails."""
    if how == "die":
        os._exit(3)
    raise Unspeakable if how == "unspeakable" else KeyError(how)


class Unspeakable(Exception):
    """Does not even say what is wrong."""

    def __str__(self) -> str:
        raise ValueError("no words")


def raise_unspeakable(kind: str, option: Any, payload: Any) -> float:
    raise Unspeakable


class Unsendable(Unspeakable):
    """Can be written and not read."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(one)


def raise_unsendable() -> None:
    raise Unsendable("a", "b")


def wait_for(file: str) -> str:
    wait_until(Path(file).exists, file)
    return file


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended, with all its threads, and waits to be collected does not."""
    try:
        ended = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        return not ended or len(list(Path(f"/proc/{pid}/task").iterdir())) > 1
    except OSError:
        return False


def stream(file: str, count: int) -> list[Arrival]:
    return [Arrival(f"kind {number % 2}", OPTIONS, (file, number), f"job {number}") for number in range(count)]


def main() -> None:
    """url, file for lines, number of tasks."""
    url, file, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    with Scheduler(url) as scheduler, LocalExecutor(2) as executor:
        done = work(
            scheduler,
            stream(file, count),
            written_down,
            executor=executor,
            after=lambda finished: say(finished.task.id),
        )
    say(f"interrupted {done.interrupted} reported {done.reported} skipped {done.skipped}")


def say(words: object) -> None:
    os.write(1, f"{words}\n".encode())


if __name__ == "__main__":
    main()
