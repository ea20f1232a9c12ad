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
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import NamedTuple

import httpx
import psutil

from table import Report, command_line
from worthwhile import Scheduler

PORT = 8137
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
FIRST_TASKS = 100_000  # after which memory should no longer grow
TURNS = 7  # quiet and crowded
ROUND = 5  # seconds of load, until there are enough tasks
UNITS = {"us": 1e-3, "ms": 1.0, "s": 1e3}


class Load(NamedTuple):
    """What wrk saw: requests per second, and percentiles in milliseconds."""

    rate: float
    median: float
    worst: float  # 99 of 100 are below


def on_core(core: int, command: list[str], folder: Path) -> subprocess.Popen[bytes]:
    """A process with a core of its own."""
    started = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    os.sched_setaffinity(started.pid, {core})
    return started


def wait_for(path: str) -> None:
    """Until there is an answer, other than that it takes a while."""
    until = time.monotonic() + 180
    while time.monotonic() < until:
        with suppress(httpx.TransportError):
            if httpx.get(f"http://127.0.0.1:{PORT}{path}", timeout=60).status_code != 503:
                return
        time.sleep(0.1)
    sys.exit(f"no answer from {path}")


def load(core: int, folder: Path, script: str, seconds: int, connections: int = CONNECTIONS) -> Load:
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
        f"http://127.0.0.1:{PORT}",
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
    rate = re.search(r"Requests/sec:\s+([\d.]+)", text)
    assert rate is not None
    return Load(float(rate[1]), found["50"], found["99"])


def load_among_strangers(core: int, folder: Path, seconds: int) -> Load:
    """One connection alone, while 500 others ask for schedulers that are not there."""
    (folder / "strangers.lua").write_text(STRANGERS, encoding="utf-8")
    command = ["wrk", "-t1", "-c500", f"-d{seconds + 2}s", "-s", "strangers.lua", f"http://127.0.0.1:{PORT}"]
    strangers = subprocess.Popen(["taskset", "-c", str(core), *command], cwd=folder, stdout=subprocess.DEVNULL)
    time.sleep(1.0)
    try:
        return load(core, folder, PAIRS, seconds, connections=1)
    finally:
        strangers.wait()


def quiet_and_crowded(core: int, folder: Path, seconds: int) -> tuple[list[Load], list[Load]]:
    """One connection alone, and among strangers, by turns: what else the machine does meets both."""
    quiet, crowded = [], []
    for _ in range(TURNS):
        quiet.append(load(core, folder, PAIRS, seconds, connections=1))
        crowded.append(load_among_strangers(core, folder, seconds))
    return quiet, crowded


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
    cores = sorted(os.sched_getaffinity(0))
    server_core, load_core = cores[0], cores[-1]
    report = Report()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "nothing.py").write_text(NOTHING_APP, encoding="utf-8")
        server = [sys.executable, "-m", "uvicorn", "nothing:app", "--port", str(PORT), "--log-level", "error"]

        def nothing() -> float:
            running = on_core(server_core, [*server, "--no-access-log"], folder)
            wait_for("/nothing")
            found = load(load_core, folder, NOTHING, arguments.seconds).rate / 2
            running.terminate()
            running.wait()
            return found

        before = nothing()
        Scheduler(f"sqlite:///{folder}/load.db", seed=arguments.seed).close()
        command = [sys.executable, "-m", "worthwhile", "serve", "--store", "load.db", "--port", str(PORT)]
        service = on_core(server_core, [*command, "--engine", arguments.engine, "--no-access-log"], folder)
        wait_for(ONE)  # a scheduler that is being opened, and compiled, is not what is measured
        load(load_core, folder, PAIRS, 2)
        single = load(load_core, folder, PAIRS, arguments.seconds)
        quiet, crowded = quiet_and_crowded(load_core, folder, max(1, arguments.seconds // 2))
        batches = load(load_core, folder, BATCHES, arguments.seconds)
        start, first = memory_after(min(FIRST_TASKS, arguments.tasks // 10), service, load_core, folder)
        end, last = memory_after(arguments.tasks, service, load_core, folder)
        service.terminate()
        service.wait()

        pairs_of_nothing = max(before, nothing())  # a noisy machine must not make us look good
        report.note("do-nothing requests, two at a time", f"{pairs_of_nothing:,.0f}/s")
        pairs = single.rate / 2
        report.note("durable decide + report", f"{pairs:,.0f}/s")
        report.at_least("  of the do-nothing pairs", pairs / pairs_of_nothing, 0.35, "×")
        report.note("  half of the answers within", f"{single.median:.2f} ms")
        report.at_most("  the slowest of 100, of the median", single.worst / single.median, 3.5, "×")
        report.note("  one connection alone", f"{median(turn.rate for turn in quiet) / 2:,.0f}/s")
        slowest = "  its slowest of 100 while 500 ask for what is not there"
        ratio = median(turn.worst for turn in crowded) / median(turn.worst for turn in quiet)
        report.at_most(slowest, ratio, 2, "×")
        report.note("batches of 100 decide + report", f"{50 * batches.rate:,.0f}/s")
        report.at_least("  of single pairs", 50 * batches.rate / pairs, 5, "×")
        report.note(f"memory after {first:,} tasks", f"{start / 2**20:.0f} MiB")
        report.at_most(f"  more of it after {last:,}", (end - start) / 2**20, 2, "MiB")
    return int(report.close() > 0)


if __name__ == "__main__":
    sys.exit(main())
