"""Load on the service, as ratios within one run: against requests that do nothing, of the same framework and server.

It needs wrk (Debian: apt-get install wrk). The server has one core, wrk another.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

import httpx
import psutil

from table import Report, command_line
from worthwhile import Scheduler

PORT = 8137
NOTHING_PORT = 8138
CONNECTIONS = 64
HEADERS = 'wrk.method = "POST"; wrk.headers["content-type"] = "application/json"\n'
ONE = "/v1/schedulers/default"

NOTHING_APP = """
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

async def nothing(request):
    await request.body()
    return Response(b"{}", media_type="application/json")

app = Starlette(routes=[Route("/nothing", nothing, methods=["POST"])])
"""
NOTHING = (
    HEADERS
    + """
function request() return wrk.format("POST", "/nothing", nil, '{"kind": "kind 1", "options": [1, 5, 10, 15, 20]}') end
"""
)
PAIRS = (
    HEADERS
    + f"""
local waiting = {{}}
local count = 0
function request()
  local id = table.remove(waiting, 1)
  if id then return wrk.format("POST", "{ONE}/tasks/" .. id .. "/report", nil, '{{"reward": 0.5, "cost": 2.5}}') end
  count = count + 1
  return wrk.format("POST", "{ONE}/tasks", nil, '{{"kind": "kind ' .. count % 3 .. '", "options": [1, 5, 10, 15, 20]}}')
end
function response(status, headers, body)
  local id = string.match(body, '"task":"(%d+)"')
  if id then waiting[#waiting + 1] = id end
end
"""
)
BATCHES = (
    HEADERS
    + f"""
local one = '{{"kind": "kind 1", "options": [1, 5, 10, 15, 20]}}'
local tasks = '{{"tasks": [' .. string.rep(one .. ",", 99) .. one .. "]}}"
local waiting = {{}}
function request()
  local reports = table.remove(waiting, 1)
  if reports then return wrk.format("POST", "{ONE}/reports", nil, '{{"reports": [' .. reports .. "]}}") end
  return wrk.format("POST", "{ONE}/decide", nil, tasks)
end
function response(status, headers, body)
  local reports = {{}}
  for id in string.gmatch(body, '"task":"(%d+)"') do
    reports[#reports + 1] = '{{"task": "' .. id .. '", "reward": 0.5, "cost": 2.5}}'
  end
  if #reports > 0 then waiting[#waiting + 1] = table.concat(reports, ",") end
end
"""
)
STRANGERS = """
local count = 0
function request()
  count = count + 1
  return wrk.format("GET", "/v1/schedulers/nobody" .. count)
end
"""
WAIT = 2500  # milliseconds, on average, that each of 500 strangers waits for its answer
NEIGHBOURS = f"""
function delay() return math.random(0, {2 * WAIT}) end
function request() return wrk.format("GET", "/v1/health") end
"""  # as many requests, of the cheapest sort
FIRST_TASKS = 100_000  # after which memory should no longer grow
TURNS = 7  # of what is compared
ROUND = 5  # seconds of load, until there are enough tasks
UNITS = {"us": 1e-3, "ms": 1.0, "s": 1e3}


class Load(NamedTuple):
    """What wrk saw: requests per second, and percentiles in milliseconds."""

    rate: float
    median: float
    worst: float  # 99 of 100 are below
    requests: int = 0


class Pairs(NamedTuple):
    """Two requests at a time: how many per second, and what each takes of the server's processor, in microseconds."""

    rate: float
    processor: float


def on_core(core: int, command: list[str], folder: Path) -> subprocess.Popen[bytes]:
    """A process with a core of its own."""
    started = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    os.sched_setaffinity(started.pid, {core})
    return started


def wait_for(path: str, port: int = PORT) -> None:
    """Until there is an answer, other than that it takes a while."""
    until = time.monotonic() + 180
    while time.monotonic() < until:
        with suppress(httpx.TransportError):
            if httpx.get(f"http://127.0.0.1:{port}{path}", timeout=60).status_code != 503:
                return
        time.sleep(0.1)
    sys.exit(f"no answer from {path}")


def load(core: int, folder: Path, script: str, seconds: int, connections: int = CONNECTIONS, port: int = PORT) -> Load:
    """wrk with a script."""
    (folder / "load.lua").write_text(script, encoding="utf-8")
    command = [
        "wrk",
        "-t1",
        f"-c{connections}",
        f"-d{seconds}s",
        "--latency",
        "-s",
        "load.lua",
        f"http://127.0.0.1:{port}",
    ]
    text = subprocess.run(
        ["taskset", "-c", str(core), *command], cwd=folder, check=True, capture_output=True, text=True
    ).stdout
    refused = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
    if refused:
        sys.exit(f"{refused[1]} requests were refused:\n{text}")
    found = {
        share: float(value) * UNITS[unit] for share, value, unit in re.findall(r"(50|99)%\s+([\d.]+)(us|ms|s)", text)
    }
    rate, requests = re.search(r"Requests/sec:\s+([\d.]+)", text), re.search(r"(\d+) requests in", text)
    assert rate is not None
    assert requests is not None
    return Load(float(rate[1]), found["50"], found["99"], int(requests[1]))


def pairs_of(server: subprocess.Popen[bytes], run: Callable[[], Load]) -> tuple[Load, Pairs]:
    """A load, as pairs."""
    process = psutil.Process(server.pid)
    before = sum(process.cpu_times()[:2])
    found = run()
    return found, Pairs(found.rate / 2, (sum(process.cpu_times()[:2]) - before) / found.requests * 2e6)


def by_turns(
    nothing: subprocess.Popen[bytes], service: subprocess.Popen[bytes], core: int, folder: Path, seconds: int
) -> tuple[list[Pairs], list[tuple[Load, Pairs]]]:
    """Requests that do nothing, and decide + report: what else the machine does meets both."""
    least, singles = [], []
    for _ in range(TURNS):
        least.append(pairs_of(nothing, partial(load, core, folder, NOTHING, seconds, port=NOTHING_PORT))[1])
        singles.append(pairs_of(service, partial(load, core, folder, PAIRS, seconds)))
    return least, singles


def tell_of_pairs(report: Report, least: list[Pairs], singles: list[tuple[Load, Pairs]]) -> float:
    """Compare them; pairs per second."""
    pairs = median(found.rate for _, found in singles)
    report.note("do-nothing requests, two at a time", f"{median(each.rate for each in least):,.0f}/s")
    report.note("durable decide + report", f"{pairs:,.0f}/s")
    shares = [found.rate / each.rate for each, (_, found) in zip(least, singles, strict=True)]
    report.at_least("  of the do-nothing pairs", median(shares), 0.35, "×")
    of_nothing, of_pair = (min(each.processor for each in of) for of in (least, [found for _, found in singles]))
    report.note("  the server's processor, for do-nothing requests", f"{of_nothing:.0f} µs")
    report.note("  for decide + report", f"{of_pair:.0f} µs")
    report.at_most("  of the do-nothing pairs", of_pair / of_nothing, 3, "×")
    report.note("  half of the answers within", f"{median(seen.median for seen, _ in singles):.2f} ms")
    slowest = median(seen.worst / seen.median for seen, _ in singles)
    report.at_most("  the slowest of 100, of the median", slowest, 3.5, "×")
    return pairs


def load_among(script: str, core: int, folder: Path, seconds: int) -> Load:
    """One connection alone, while 500 others ask for something."""
    (folder / "others.lua").write_text(script, encoding="utf-8")
    command = ["wrk", "-t1", "-c500", f"-d{seconds + 2}s", "-s", "others.lua", f"http://127.0.0.1:{PORT}"]
    others = subprocess.Popen(["taskset", "-c", str(core), *command], cwd=folder, stdout=subprocess.DEVNULL)
    time.sleep(1.0)
    try:
        return load(core, folder, PAIRS, seconds, connections=1)
    finally:
        others.wait()


def alone_and_among_others(core: int, folder: Path, seconds: int) -> list[tuple[Load, Load, Load]]:
    """One connection alone, beside cheap requests, and beside strangers: what else the machine does meets all three."""
    return [
        (
            load(core, folder, PAIRS, seconds, connections=1),
            load_among(NEIGHBOURS, core, folder, seconds),
            load_among(STRANGERS, core, folder, seconds),
        )
        for _ in range(TURNS)
    ]


def memory_after(tasks: int, service: subprocess.Popen[bytes], core: int, folder: Path) -> tuple[int, int]:
    """Resident bytes once there are so many tasks and the dashboard has been looked at; how many tasks there are."""
    address = f"http://127.0.0.1:{PORT}"
    while (found := httpx.get(f"{address}{ONE}").json()["tasks"]) < tasks:
        load(core, folder, BATCHES, ROUND)
    while httpx.get(f"{address}/", timeout=60).status_code != 200:
        time.sleep(1.0)
    return psutil.Process(service.pid).memory_info().rss, found


def main() -> int:
    parser = command_line(__doc__)
    parser.add_argument("--seconds", type=int, default=10, help="of every load (10)")
    parser.add_argument("--tasks", type=int, default=1_000_000, help="over which memory is watched (1000000)")
    parser.add_argument("--engine", default="compiled")
    arguments = parser.parse_args()
    if shutil.which("wrk") is None:
        sys.exit("no wrk; install it: apt-get install wrk")
    seconds = max(1, arguments.seconds // 2)  # of each turn
    cores = sorted(os.sched_getaffinity(0))
    server_core, load_core = cores[0], cores[-1]
    report = Report()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "nothing.py").write_text(NOTHING_APP, encoding="utf-8")
        server = [sys.executable, "-m", "uvicorn", "nothing:app", "--port", str(NOTHING_PORT), "--log-level", "error"]
        nothing = on_core(server_core, [*server, "--no-access-log"], folder)
        wait_for("/nothing", NOTHING_PORT)
        Scheduler(f"sqlite:///{folder}/load.db", seed=arguments.seed).close()
        command = [sys.executable, "-m", "worthwhile", "serve", "--store", "load.db", "--port", str(PORT)]
        service = on_core(server_core, [*command, "--engine", arguments.engine, "--no-access-log"], folder)
        wait_for(ONE)  # a scheduler that is being opened, and compiled, is not what is measured
        load(load_core, folder, PAIRS, 2)
        least, singles = by_turns(nothing, service, load_core, folder, seconds)
        nothing.terminate()
        nothing.wait()
        turns = alone_and_among_others(load_core, folder, seconds)
        batches = load(load_core, folder, BATCHES, arguments.seconds)
        start, first = memory_after(min(FIRST_TASKS, arguments.tasks // 10), service, load_core, folder)
        end, last = memory_after(arguments.tasks, service, load_core, folder)
        service.terminate()
        service.wait()

        pairs = tell_of_pairs(report, least, singles)
        report.note("  one connection alone", f"{median(alone.rate for alone, _, _ in turns) / 2:,.0f}/s")
        beside_cheap = median(cheap.worst / alone.worst for alone, cheap, _ in turns)
        report.note("  its slowest of 100 beside as many requests that cost least", f"{beside_cheap:.3g} ×")
        slowest = "  its slowest of 100 while 500 ask for what is not there"
        report.at_most(slowest, median(crowd.worst / alone.worst for alone, _, crowd in turns), 2, "×")
        report.note("batches of 100 decide + report", f"{50 * batches.rate:,.0f}/s")
        report.at_least("  of single pairs", 50 * batches.rate / pairs, 5, "×")
        report.note(f"memory after {first:,} tasks", f"{start / 2**20:.0f} MiB")
        report.at_most(f"  more of it after {last:,}", (end - start) / 2**20, 2, "MiB")
    return int(report.close() > 0)


if __name__ == "__main__":
    sys.exit(main())
