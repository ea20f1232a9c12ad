"""Which compressor, at which level? Files of four sorts, all really compressed; the reward is what is saved, in MB.

The cost is the processor time, with what handling a file takes anyway. Until now every file went to zlib-9: that is the
baseline, and two files in five still do. In the end all options are run on all files, to see whether anything that the
scheduler said of them is wrong.

Prints:

    250 files, 5.69 MB saved per second; always zlib-9 saves 5.78
    the scheduler saves 0.81 to 1.11 times as much per second
    4 statements about options, 0 contradicted by the truth
"""

from __future__ import annotations

import bz2
import lzma
import random
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from itertools import count

from worthwhile import Scheduler

OPTIONS: dict[str, Callable[[bytes], bytes]] = {
    "zlib-1": lambda data: zlib.compress(data, 1),
    "zlib-6": lambda data: zlib.compress(data, 6),
    "zlib-9": lambda data: zlib.compress(data, 9),
    "bz2-1": lambda data: bz2.compress(data, 1),
    "bz2-9": lambda data: bz2.compress(data, 9),
    "lzma-0": lambda data: lzma.compress(data, preset=0),
    "lzma-3": lambda data: lzma.compress(data, preset=3),
}
USUAL, HANDLING = "zlib-9", 0.001  # seconds for every file: opening it, storing it
WORDS = [
    bytes(random.Random(number).choices(b"abcdefghijklmnopqrstuvwxyz", k=3 + number % 8)) for number in range(3000)
]
Run = Callable[[str, bytes], tuple[float, float]]
Truth = dict[tuple[str, str], tuple[float, float]]  # by kind and option: what is saved, and what it costs, per file


def file_of(kind: str, luck: random.Random) -> bytes:
    """A log, a table, a text or a picture of 10 to 30 KB."""
    size = luck.randint(10_000, 30_000)
    if kind == "log":
        lines = (b"2026-01-%02d GET /item/%d 200 %d ms\n" % (n % 28, n * 7 % 999, luck.randint(1, 99)) for n in count())
    elif kind == "table":
        lines = (b"%d;%d;%.4f\n" % (n, luck.randint(0, 9), luck.random()) for n in count())
    elif kind == "text":
        lines = (luck.choice(WORDS) + b" " for _ in count())
    else:
        lines = (luck.randbytes(64) for _ in count())
    data = b""
    while len(data) < size:
        data += b"".join(next(lines) for _ in range(200))
    return data[:size]


def timed(option: str, data: bytes) -> tuple[float, float]:
    """MB saved, and seconds of the processor."""
    began = time.process_time()
    saved = (len(data) - len(OPTIONS[option](data))) / 1e6
    return saved, max(time.process_time() - began, 1e-6)


def measured(stream: Sequence[tuple[str, bytes]], run: Run) -> Truth:
    """All options on all files: saved and cost per file, by kind and option."""
    truth: Truth = {}
    for kind, data in stream:
        for option in OPTIONS:
            saved, seconds = run(option, data)
            before = truth.get((kind, option), (0.0, 0.0))
            truth[kind, option] = before[0] + saved, before[1] + seconds + HANDLING
    return truth


def ratio_of(truth: Truth, choice: Callable[[str], str]) -> float:
    """MB saved per second, if every file of a kind goes to the same option."""
    taken = [truth[kind, choice(kind)] for kind in {kind for kind, _ in truth}]
    return sum(saved for saved, _ in taken) / sum(seconds for _, seconds in taken)


def statements(scheduler: Scheduler, truth: Truth) -> Iterator[tuple[str, bool]]:
    """What the scheduler says of options, and whether that is true."""
    summary = scheduler.summary()
    for option in OPTIONS:
        told = scheduler.evaluate(f"always:{option}")
        if told.low is not None and told.high is not None:
            yield told.says, told.low <= ratio_of(truth, lambda _, option=option: option) <= told.high
    for rule in summary.comparisons:
        single = rule.says.removeprefix("always ").split(";")[0].split(",")[0]
        if rule.low is not None and rule.high is not None and single in OPTIONS:
            yield f"{rule.rule}: {rule.says}", rule.low <= ratio_of(truth, lambda _, single=single: single) <= rule.high
    for kind in summary.kinds:
        if kind.settled:
            worth = {
                option: truth[kind.kind, option][0] - summary.price * truth[kind.kind, option][1] for option in OPTIONS
            }
            yield f"{kind.kind}: {kind.verdict}", worth[str(kind.winner)] == max(worth.values())


def main(files: int = 250, run: Run = timed, seed: int = 0) -> list[str]:
    """What of all that was said is contradicted by the truth."""
    luck = random.Random(seed)
    stream = [(kind := luck.choice(["log", "table", "text", "picture"]), file_of(kind, luck)) for _ in range(files)]
    with Scheduler(seed=seed, overhead=HANDLING, baseline=USUAL, holdout=0.4) as scheduler:
        for kind, data in stream:
            task = scheduler.decide(kind, list(OPTIONS))
            task.report(*run(str(task.option), data))
        summary, truth = scheduler.summary(), measured(stream, run)
        said = list(statements(scheduler, truth))
    wrong = [statement for statement, right in said if not right]
    usual = ratio_of(truth, lambda _: USUAL)
    print(f"{files} files, {summary.ratio:.2f} MB saved per second; always {USUAL} saves {usual:.2f}")
    if shown := summary.gain.gain:
        print(f"the scheduler saves {1 + shown.low:.2f} to {1 + shown.high:.2f} times as much per second")
    print(f"{len(said)} statements about options, {len(wrong)} contradicted by the truth")
    return wrong


if __name__ == "__main__":
    for statement in main():
        print(f"wrong: {statement}")
