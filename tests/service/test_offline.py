"""Faults: a service that is away, late or killed under load costs no call, loses no task and counts none twice."""

from __future__ import annotations

import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from service_process import ServiceProcess, store_at
from waiting import NET, wait_until
from worthwhile import Client, Scheduler
from worthwhile.errors import BadFeedback, BadParameter, BadTask, ServiceError, StoreError
from worthwhile.service import offline

OPTIONS = [1, 5, 10]
AWAY = "http://127.0.0.1:1"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    with ServiceProcess(store_at(tmp_path_factory.mktemp("service"))) as running:
        yield running


def client_of(url: str, folder: Path, name: str = "default", **more: object) -> Client:
    """One that may lose its service, and looks for it often."""
    kept: dict[str, object] = {"offline": "last", "offline_file": folder / "kept.db", "refresh": 0.2} | more
    return Client(url, name=name, **kept)  # type: ignore[arg-type]


def teach(url: str, name: str, policy: str = "ratio-imed") -> None:
    """Make a scheduler that knows that 5 is best."""
    with Client(url, name=name, policy=policy) as client:
        for task in client.decide_many([("a", OPTIONS)] * 60):
            task.report(1.0 if task.option == 5 else 0.1, 1.0)


def empty(client: Client) -> bool:
    assert client._offline is not None
    return client._offline.outbox.waiting == 0


@pytest.mark.slow
def test_a_service_killed_under_load_costs_no_call_and_loses_nothing(tmp_path: Path) -> None:
    """Four threads decide and report all the time, while the service is killed and started again."""
    store = store_at(tmp_path)
    with ServiceProcess(store) as service:
        teach(service.url, "load")
        port, over, failed, done = service.port, threading.Event(), list[str](), Counter[str]()

        def work(client: Client) -> None:
            while not over.is_set():
                try:
                    with client.task("a", OPTIONS) as task:
                        task.reward, task.cost = 1.0 if task.option == 5 else 0.1, 1.0
                    done["local" if task.id.startswith("local-") else "central"] += 1
                except Exception as error:
                    failed.append(repr(error))
                time.sleep(0.002)

        with client_of(service.url, tmp_path, "load") as client:
            threads = [threading.Thread(target=work, args=[client]) for _ in range(4)]
            for thread in threads:
                thread.start()
            wait_until(lambda: done["central"] > 50, "decisions of the service")
            service.kill()
            wait_until(lambda: done["local"] > 200, "decisions from the copy")
            central = done["central"]
            with ServiceProcess(store, port=port):
                wait_until(lambda: done["central"] > central + 50, "decisions of the service that is back")
                over.set()
                for thread in threads:
                    thread.join(NET)
                wait_until(lambda: empty(client), "the service to have all")
                tasks = client.summary().tasks
                states = Counter(line.state for line in client.latest(1000)) if tasks <= 1000 else None
                summary = client.summary()
                assert client._offline is not None
                assert client._offline.outbox.count("refused") == 0
    assert failed == []
    assert summary.reports == 60 + sum(done.values())
    assert states is None or set(states) <= {"reported", "cancelled"}
    with Scheduler(store, "load") as scheduler:
        assert scheduler.rebuild()


def test_what_was_decided_from_a_copy_is_kept_as_it_was_made(service: ServiceProcess, tmp_path: Path) -> None:
    """Also of a policy that draws, though settings have changed meanwhile and an option was retired."""
    teach(service.url, "kept", "random-option")
    with client_of(service.url, tmp_path, "kept", decisions="local", refresh=1000.0) as client:
        tasks = [client.decide("a", OPTIONS, lease=50.0) for _ in range(20)]
        new = client.decide("new kind", ["x", None])
        with Client(service.url, name="kept") as other:
            other.retire(5)
            other.change(policy="ratio-imed", overhead=2.0)
        for task in [*tasks, new]:
            assert task.id.startswith("local-")
            task.report(0.5, 1.0)
        wait_until(lambda: empty(client), "the service to have all")
        lines = client.latest(21)[::-1]
        assert [(line.kind, line.option, line.key) for line in lines] == [
            (task.kind, task.option, task.id) for task in [*tasks, new]
        ]
        assert {line.state for line in lines} == {"reported"}
        why = [client.explain(line.task) for line in lines[:20]]
        assert {each.policy for each in why} == {"random-option"}
        assert all(each.repeated for each in why)
        assert [each.option for each in why] == [task.option for task in tasks]
        assert {each.seen for each in why} == {60}
        assert client.rebuild()


def test_retired_options_reach_a_copy_within_its_refresh(service: ServiceProcess, tmp_path: Path) -> None:
    teach(service.url, "retired")
    with client_of(service.url, tmp_path, "retired", decisions="local", refresh=0.1) as client:
        assert client.decide("a", OPTIONS).option == 5
        with Client(service.url, name="retired") as other:
            other.retire(5)
        wait_until(lambda: client.decide("a", OPTIONS).option != 5, "a copy in which 5 is retired")
        with pytest.raises(BadTask, match="retired"):
            client.decide("a", [5])
        age = client._offline.age if client._offline else None
        assert age is not None
        assert age < NET


def test_who_restarts_delivers_what_was_kept_and_only_once(service: ServiceProcess, tmp_path: Path) -> None:
    teach(service.url, "restart")
    with client_of(AWAY, tmp_path, "restart") as client:
        first = client.decide("a", OPTIONS, usual=10)
        assert first.option == 10
        with client.task("a", OPTIONS, usual=10) as second:
            second.reward = 1.0
        assert client.decide("a", OPTIONS, usual=10, key="job").id == client.decide("a", OPTIONS, key="job").id
        assert not empty(client)
    with client_of(service.url, tmp_path, "restart") as client:
        client.report(first.id, 0.7, 2.0)
        client.report(first.id, 0.7, 2.0)
        wait_until(lambda: empty(client), "the service to have all")
        found = client.summary()
        assert (found.tasks, found.reports) == (63, 62)
        assert [line.state for line in client.latest(3)] == ["running", "reported", "reported"]


def test_a_failed_task_is_tried_again_once_the_service_knows_it(service: ServiceProcess, tmp_path: Path) -> None:
    teach(service.url, "again")
    with client_of(service.url, tmp_path, "again", decisions="local") as client:
        task = client.decide("a", OPTIONS)
        task.fail(1.0, "broken")
        second = task.again()
        assert second.attempt == 1
        assert second.option != task.option
        second.report(1.0, 1.0)
        wait_until(lambda: empty(client), "the service to have all")
        assert client.latest(1)[0].state == "reported"


def test_what_is_wrong_is_said_at_once_and_what_is_refused_is_kept(service: ServiceProcess, tmp_path: Path) -> None:
    teach(service.url, "wrong")
    with client_of(service.url, tmp_path, "wrong") as client:
        task = client.decide("a", OPTIONS)
        with pytest.raises(BadFeedback, match="above 0"):
            task.report(1.0, -1.0)
        with pytest.raises(BadTask, match="offered twice"):
            client.decide("a", [1, 1])
        task.report(1.0, 1.0)
        task.report(0.5, 1.0)
        client.report("77777", 0.5, 1.0)
        wait_until(lambda: empty(client), "the service to have all")
        assert client._offline is not None
        assert client._offline.outbox.count("refused") == 2
        with pytest.raises(StoreError, match="offline_file of its own"):
            client_of(service.url, tmp_path, "wrong")
    for more in ({"offline": "always"}, {"decisions": "here"}, {"offline_file": None}, {"refresh": 0.0}):
        with pytest.raises(BadParameter):
            client_of(service.url, tmp_path, **more)


def test_without_copy_and_usual_there_is_an_error(tmp_path: Path) -> None:
    with client_of(AWAY, tmp_path) as client, pytest.raises(ServiceError, match="usual"):
        client.decide("a", OPTIONS)


def test_a_service_that_is_late_is_not_waited_for(service: ServiceProcess, tmp_path: Path) -> None:
    """It takes requests, and answers once it is let: meanwhile decisions come from the copy; what it has decided after
    all is cancelled."""
    teach(service.url, "late")
    with Stalling(service.port) as proxy, client_of(proxy.url, tmp_path, "late", decide_within=0.5) as client:
        proxy.open.clear()
        assert client.decide("a", OPTIONS).id.startswith("local-")
        assert client.decide("a", OPTIONS).id.startswith("local-")
        proxy.open.set()
        wait_until(lambda: empty(client), "the service to have all")
        states = Counter(line.state for line in client.latest(4))
        assert states["cancelled"] == 1
        assert states["running"] == 2


class Stalling:
    """A proxy that passes on what it gets while it is open, and otherwise when it is opened again."""

    def __init__(self, port: int) -> None:
        self.port, self.open = port, threading.Event()
        self.open.set()
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listening.getsockname()[1]}"
        threading.Thread(target=self.work, daemon=True).start()

    def work(self) -> None:
        while True:
            try:
                caller, _ = self.listening.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self.port))
            for source, sink in ((caller, server), (server, caller)):
                threading.Thread(target=self.pump, args=[source, sink], daemon=True).start()

    def pump(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while portion := source.recv(65536):
                self.open.wait(NET)
                sink.sendall(portion)
        except OSError:
            pass
        for end in (source, sink):
            end.close()

    def __enter__(self) -> Stalling:
        return self

    def __exit__(self, *reason: object) -> None:
        self.open.set()
        self.listening.close()


def test_a_file_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    """A store, or what is kept for another scheduler, to which it would be told otherwise."""
    store = tmp_path / "tasks.db"
    with Scheduler(store, "mine") as scheduler:
        scheduler.decide("a", OPTIONS)
    with pytest.raises(StoreError, match=r"tasks\.db: it has a table '\w+', so it is no offline_file; give every"):
        client_of(AWAY, tmp_path, offline_file=store)
    with Scheduler(store, "mine") as scheduler:
        assert scheduler.rebuild()
    with client_of(AWAY, tmp_path, "mine") as client:
        client.decide("a", OPTIONS, usual=1)
    with pytest.raises(StoreError, match="it is that of scheduler 'mine', not of 'theirs'; give every process"):
        client_of(AWAY, tmp_path, "theirs")
    with client_of(AWAY, tmp_path, "mine") as client:
        assert not empty(client)


def test_a_clock_that_is_set_by_decades_costs_no_report(
    service: ServiceProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that has no battery for its clock begins in 1970."""
    teach(service.url, "clock")
    with monkeypatch.context() as then, client_of(AWAY, tmp_path, "clock") as client:
        then.setattr(offline, "time", Clock(1000.0))
        client.decide("a", OPTIONS, usual=1).report(1.0, 1.0)
    with client_of(service.url, tmp_path, "clock") as client:
        wait_until(lambda: empty(client), "the service to have all")
        assert client._offline is not None
        assert client._offline.outbox.count("refused") == 0
        assert client.summary().reports == 61


class Clock:
    """That of the machine, but for the date."""

    def __init__(self, now: float) -> None:
        self.now = now

    def time(self) -> float:
        return self.now

    def __getattr__(self, name: str) -> object:
        return getattr(time, name)


def test_a_full_disk_is_named_and_what_was_kept_stays(tmp_path: Path) -> None:
    with client_of(AWAY, tmp_path) as client:
        assert client._offline is not None
        outbox, kept = client._offline.outbox, 0
        outbox.database.execute("pragma max_page_count = 12").fetchall()
        with pytest.raises(StoreError, match="full; nothing was kept"):  # noqa: PT012  # the first ones fit
            for _ in range(1000):
                client.decide("a", OPTIONS, features={"text": "x" * 150}, usual=1)
                kept += 1
        assert outbox.waiting == kept > 0


def test_a_key_is_of_one_kind_and_closing_twice_is_closing(tmp_path: Path) -> None:
    with client_of(AWAY, tmp_path) as client:
        task = client.decide("a", OPTIONS, key="k", usual=1)
        assert client.decide("a", OPTIONS, key="k", usual=1).id == task.id
        with pytest.raises(BadTask, match=r"key 'k' belongs to task .* of kind 'a', not 'b'; use another key"):
            client.decide("b", OPTIONS, key="k", usual=1)
        client.close()
