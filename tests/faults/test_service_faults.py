"""Nothing lost, nothing twice: the service really killed under load, its database really away."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from service_load import Load
from service_process import ServiceProcess, store_at
from waiting import NET, wait_until
from worthwhile import Client, Scheduler

ONE = "/v1/schedulers/default"
REFUSED = int(os.environ.get("DATABASE_AWAY", "3"))  # requests while it is away; `make soak`: 30
KILLS = int(os.environ.get("SERVICE_KILLS", "3"))  # `make soak`: 50


@pytest.mark.slow
def test_killed_under_load_with_clients_that_retry(tmp_path: Path) -> None:
    store, luck = store_at(tmp_path), random.Random(3)
    service = ServiceProcess(store, "--no-access-log")
    load = Load([service.url], 4)
    for _ in range(KILLS):
        load.await_more(luck.randint(1, 40))
        with service:
            service.kill()
        service = ServiceProcess(store, "--no-access-log", port=service.port)
    load.await_more(10)
    load.finish()
    with service:
        service.kill()
    load.check(store)


def test_told_to_stop_it_finishes_what_has_begun(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    with ServiceProcess(store, "--no-access-log") as service:
        answers: list[int] = []
        body = {"tasks": [{"kind": "a", "options": [1, 2]}] * 1000}

        def decide(http: httpx.Client) -> None:
            with http, suppress(httpx.TransportError):  # who comes too late finds nobody
                answers.append(http.post(f"{service.url}{ONE}/decide", json=body).status_code)

        callers = [threading.Thread(target=decide, args=(httpx.Client(timeout=NET),)) for _ in range(6)]
        for caller in callers:
            caller.start()
        wait_until(lambda: answers, "the first answer; the other requests have begun or will be refused")
        assert service.stop() in (0, -signal.SIGTERM)
        for caller in callers:
            caller.join(NET)
    assert "Traceback" not in "".join(service.lines)
    assert answers.count(200) >= 1
    with Scheduler(store) as scheduler:
        assert scheduler.summary().tasks == 1000 * answers.count(200)


@pytest.mark.slow
def test_two_services_on_one_postgresql_and_one_is_killed(postgres: str) -> None:
    with ServiceProcess(postgres, "--no-access-log") as first, ServiceProcess(postgres, "--no-access-log") as second:
        load = Load([first.url, second.url], 4)
        load.await_more(20)
        first.kill()
        with ServiceProcess(postgres, "--no-access-log", port=first.port):
            load.await_more(20)
            load.finish()
            ports = first.port, second.port
            counts = [httpx.get(f"http://127.0.0.1:{port}{ONE}/summary", timeout=NET).json() for port in ports]
    assert counts[0] == counts[1]
    load.check(postgres)


@pytest.mark.slow
def test_the_database_goes_away_and_comes_back(second_server: Any) -> None:
    server = second_server
    with ServiceProcess(server.get_uri(), "--no-access-log", "--patience", "1") as service:
        body = {"kind": "a", "options": [1, 2]}
        wait_until(lambda: service.post(f"{ONE}/tasks", body | {"key": "first"}).status_code == 200, "a decision")
        stop = [server.bin_path / "pg_ctl", "-w", "-D", server.pgdata, "-m", "immediate", "stop"]
        subprocess.run(stop, user=server.system_user, check=True, stdout=subprocess.DEVNULL)
        for _ in range(REFUSED):
            answer = service.post(f"{ONE}/tasks", body | {"key": "same"})
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
            assert "postgres" not in answer.text
        assert service.get("/v1/ready").status_code == 503
        assert 'worthwhile_requests_total{method="POST"' in service.get("/metrics").text
        assert service.get("/v1/health").status_code == 200
        page = service.get("/")
        assert page.status_code == 503
        assert "cannot be reached at the moment" in page.text or "no answer from the store" in page.text
        server.ensure_postgres_running()
        with Client(service.url, patience=NET) as client:
            task = client.decide("a", [1, 2], key="same")
            task.report(1.0, 2.0)
            assert client.summary().tasks == int(task.id) == 2
        subprocess.run(stop, user=server.system_user, check=True, stdout=subprocess.DEVNULL)
        assert service.stop() in (0, -signal.SIGTERM)
        assert "Traceback" not in "".join(service.lines)
