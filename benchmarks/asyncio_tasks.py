"""A thousand tasks at once: on one event loop and in threads, on the same store; and how long the loop is kept busy."""

from __future__ import annotations

import asyncio
import itertools
import sys
import tempfile
import threading
import time
from collections.abc import Callable

from table import Report, command_line
from worthwhile import AsyncScheduler, Scheduler

TASKS, OPTIONS = 1000, [1, 5, 10]
EACH = {"memory": 10, "sqlite": 3}  # tasks one after the other, in each coroutine or thread
LEAST, LONGEST = 0.8, 50.0  # of the speed of threads; ms


async def watch(late: list[float], over: asyncio.Event) -> None:
    """How late the loop lets somebody go on who only wants to wait for a moment."""
    while not over.is_set():
        began = time.perf_counter()
        await asyncio.sleep(0.001)
        late.append(time.perf_counter() - began - 0.001)


async def on_loop(url: str, each: int) -> tuple[float, float]:
    """Seconds for all, and the longest time for which the loop did not come round."""
    late: list[float] = []
    over = asyncio.Event()
    async with AsyncScheduler(url) as scheduler:

        async def one(number: int) -> None:
            for _ in range(each):
                async with scheduler.task(f"kind {number % 3}", OPTIONS) as task:
                    task.reward, task.cost = 0.5, 1.0 + task.option

        watching = asyncio.create_task(watch(late, over))
        began = time.perf_counter()
        await asyncio.gather(*map(one, range(TASKS)))
        took = time.perf_counter() - began
        over.set()
        await watching
        if (await scheduler.summary()).reports != TASKS * each:
            raise SystemExit("some tasks were not stored")
    return took, max(late)


def in_threads(url: str, each: int, threads: int) -> float:
    """Seconds for all."""
    with Scheduler(url) as scheduler:

        def one(number: int) -> None:
            for _ in range(each * TASKS // threads):
                with scheduler.task(f"kind {number % 3}", OPTIONS) as task:
                    task.reward, task.cost = 0.5, 1.0 + task.option

        running = [threading.Thread(target=one, args=[number]) for number in range(threads)]
        began = time.perf_counter()
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
        return time.perf_counter() - began


def compare(report: Report, name: str, address: Callable[[], str], rounds: int) -> None:
    """The best of some rounds, in turns: the machine may be busy with something else."""
    each, took, late = EACH[name], [], []
    threads: dict[int, list[float]] = {32: [], TASKS: []}
    for _ in range(rounds):
        for count, times in threads.items():
            times.append(in_threads(address(), each, count))
        seconds, longest = asyncio.run(on_loop(address(), each))
        took.append(seconds)
        late.append(longest)
    pairs = TASKS * each
    for count, times in threads.items():
        report.note(f"{name}: {count} threads", f"{pairs / min(times):,.0f} tasks/s")
    report.note(f"{name}: {TASKS} coroutines on a loop", f"{pairs / min(took):,.0f} tasks/s")
    report.at_least(f"{name}: as a share of {TASKS} threads", min(threads[TASKS]) / min(took), LEAST, "")
    report.at_most(f"{name}: the loop was kept busy for at most", 1e3 * min(late), LONGEST, "ms")


def main() -> int:
    parser = command_line(__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="of which the best counts (5)")
    rounds, report = parser.parse_args().rounds, Report()
    with tempfile.TemporaryDirectory() as folder:
        numbers = itertools.count()
        compare(report, "memory", lambda: "memory://", rounds)
        compare(report, "sqlite", lambda: f"sqlite:///{folder}/{next(numbers)}.db", rounds)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
