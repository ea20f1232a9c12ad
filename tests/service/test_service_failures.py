"""Failures over HTTP: told, tried again, shown in red, and no way to win."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_service import ONE, Served, decided

from service_process import ServiceProcess, store_at
from worthwhile import Client, Scheduler
from worthwhile.errors import AlreadyFailed, AlreadyReported, BadTask
from worthwhile.live.scheduler import Scheduler as LiveScheduler
from worthwhile.service.dispatcher import MOST_LOGGED

TASKS = 300
TRIES = max(3, TASKS // 20)


@pytest.fixture
def served(sqlite: str) -> Iterator[Served]:
    one = Served(sqlite)
    yield one
    one.close()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    with ServiceProcess(store_at(tmp_path_factory.mktemp("failures")), "--no-access-log") as running:
        yield running


def test_a_task_fails_once_and_says_why(served: Served) -> None:
    decided(served)
    for body in ({"cost": 2.5, "reason": "KeyError: 'x'"}, {"cost": 2.5}, {}):
        assert served.post(f"{ONE}/tasks/1/fail", body).json() == {"taken": 1}
    other = served.post(f"{ONE}/tasks/1/fail", {"cost": 3})
    late = served.post(f"{ONE}/tasks/1/report", {"reward": 1, "cost": 1})
    assert [(answer.status_code, answer.json()["title"]) for answer in (other, late)] == [(409, "AlreadyFailed")] * 2
    decided(served)
    served.post(f"{ONE}/tasks/2/report", {"reward": 1, "cost": 2})
    after = served.post(f"{ONE}/tasks/2/fail", {})
    assert (after.status_code, after.json()["title"]) == (409, "AlreadyReported")
    task = served.get(f"{ONE}/tasks/1").json()
    assert (task["state"], task["cost"], task["reward"], task["reason"]) == ("failed", 2.5, None, "KeyError: 'x'")
    assert served.get(f"{ONE}/tasks/1/explanation").json()["reason"] == "KeyError: 'x'"
    summary = served.get(f"{ONE}/summary").json()
    assert (summary["failed"], summary["reports"], summary["ratio"]) == (1, 1, 1 / 4.5)


def test_the_log_says_why_reports_were_refused_but_not_for_ever(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    decided(served)
    served.post(f"{ONE}/tasks/1/report", {"reward": 1, "cost": -1})
    served.post(f"{ONE}/tasks/1/fail", {"cost": -2})
    served.post(f"{ONE}/reports", {"reports": [{"task": "1", "reward": 1, "cost": 0}, {"task": "9\n9", "cost": 1}]})
    told = logged(caplog)
    assert [line.startswith("scheduler 'default' refused a report of task 1: cost = ") for line in told[:3]] == [
        True
    ] * 3
    assert "task 9\\n9: no task" in told[3]
    assert "Refused since this service started, its log says why: 4 reports." in summary_of(served)["warnings"]
    for _ in range(MOST_LOGGED):
        served.post(f"{ONE}/tasks/1/report", {"reward": 1, "cost": -1})
    told = logged(caplog)
    assert len(told) == MOST_LOGGED
    assert told[-1].endswith("more of them are not logged within this minute")


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "worthwhile.service.dispatcher"]


def summary_of(served: Served) -> Any:
    return served.get(f"{ONE}/summary").json()


def test_a_failed_task_is_tried_again_with_another_option(served: Served) -> None:
    first = decided(served)
    early = served.post(f"{ONE}/tasks/1/again", {})
    assert early.status_code == 422
    served.post(f"{ONE}/tasks/1/fail", {"cost": 1})
    second, same = (served.post(f"{ONE}/tasks/1/again", {"after": 0}).json() for _ in range(2))
    assert second == same
    assert (second["task"], second["attempt"], second["state"]) == ("1", 1, "running")
    assert second["option"] != first["option"]
    again = served.post(f"{ONE}/reports", {"reports": [{"task": "1", "failed": True, "cost": 1, "attempt": 0}]})
    assert again.json() == {"taken": 1, "refused": []}
    stale = served.post(f"{ONE}/tasks/1/report", {"reward": 1, "cost": 1, "attempt": 0})
    assert (stale.status_code, stale.json()["title"]) == (409, "AlreadyFailed")
    assert served.get(f"{ONE}/tasks/1").json()["state"] == "running"
    assert served.post(f"{ONE}/tasks/1/report", {"reward": 1, "cost": 1}).status_code == 200
    why = served.get(f"{ONE}/tasks/1/explanation").json()
    assert [(one["option"], one["state"]) for one in why["attempts"]] == [(first["option"], "failed")]
    assert served.post(f"{ONE}/tasks/1/again", {"after": -1}).status_code == 400


def test_failures_come_among_many_reports(served: Served) -> None:
    for _ in range(3):
        decided(served)
    reports = [
        {"task": "1", "failed": True, "reason": "no memory"},
        {"task": "2", "reward": 1, "cost": 1},
        {"task": "3", "failed": True, "reward": 1},
    ]
    found = served.post(f"{ONE}/reports", {"reports": reports}).json()
    assert (found["taken"], found["refused"][0]["problem"]["title"]) == (2, "BadFeedback")
    assert "has no reward; leave it out" in found["refused"][0]["problem"]["detail"]
    assert [line["state"] for line in served.get(f"{ONE}/tasks").json()] == ["running", "reported", "failed"]


def test_failures_can_be_results_worth_a_number(served: Served) -> None:
    path = "/v1/schedulers/worth"
    assert served.ask("PUT", path, json={"failed_reward": -1}).json()["failed_reward"] == -1
    assert served.ask("PUT", path, json={"failed_reward": 0}).status_code == 422
    assert served.ask("PATCH", path, json={"failed_reward": 0.5}).json()["failed_reward"] == 0.5
    served.post(f"{path}/tasks", {"kind": "a", "options": [1]})
    served.post(f"{path}/tasks/1/fail", {"cost": 1})
    assert served.get(f"{path}/summary").json()["reward"] == 0.5
    assert served.get(f"{path}/tasks/1").json()["state"] == "failed"
    assert served.ask("PATCH", path, json={"failed_reward": "none"}).json()["failed_reward"] is None
    assert served.ask("PATCH", path, json={"failed_reward": "nothing"}).status_code == 400


def test_metrics_tell_which_options_fail(served: Served) -> None:
    for _ in range(TASKS // 10):
        task = served.post(f"{ONE}/tasks", {"kind": 'a "b"', "options": ["5", 5]}).json()
        body = {"reward": 1, "cost": 1} if task["option"] == 5 else None
        path = f"{ONE}/tasks/{task['task']}"
        served.post(f"{path}/fail", {"cost": 1}) if body is None else served.post(f"{path}/report", body)
    lines = dict(line.rsplit(" ", 1) for line in served.get("/metrics").text.splitlines() if "option_" in line)
    labels = r'{scheduler="default",kind="a \"b\"",option="\"5\""}'
    assert int(lines[f"worthwhile_option_failed_total{labels}"]) >= 1
    assert lines[f"worthwhile_option_lost_total{labels}"] == "0"
    assert lines[f"worthwhile_option_benched{labels}"] == "1"
    assert not [line for line in lines if 'option="5"' in line and ("failed" in line or "lost" in line)]  # it works
    works = '{scheduler="default",kind="a \\"b\\"",option="5"}'
    assert (lines[f"worthwhile_option_winning{works}"], lines[f"worthwhile_option_reward{works}"]) == ("1", "1.0")


def fails(task: Any) -> None:
    task.fail(cost=0.01, reason="broken")


def raises(task: Any) -> None:
    raise KeyError("broken")


@pytest.mark.parametrize("goes_wrong", [fails, raises])
def test_an_option_that_always_fails_is_hardly_ever_taken(service: ServiceProcess, goes_wrong: Any) -> None:
    taken = []
    with Client(service.url, name=goes_wrong.__name__, policy="ratio-imed", seed=0) as client:
        for _ in range(TASKS):
            try:
                with client.task("a", ["good", "broken"]) as task:
                    taken.append(task.option)
                    if task.option == "broken":
                        goes_wrong(task)
                    task.reward, task.cost = 1.0, 1.0
            except KeyError:
                assert task.option == "broken"
        summary = client.summary()
    assert 1 <= taken.count("broken") <= TRIES
    good, broken = summary.kinds[0].options
    assert (good.option, good.winning, broken.winning, broken.benched) == ("good", True, False, True)
    assert "broken" in str(broken.reason)
    assert summary.failed == taken.count("broken")


def test_a_client_and_a_scheduler_fail_alike(service: ServiceProcess, tmp_path: Path) -> None:
    with Scheduler(name="alike", seed=1) as here, Client(service.url, name="alike", seed=1) as there:
        assert failing(here) == failing(there)


def failing(scheduler: LiveScheduler | Client) -> list[Any]:
    first, second = scheduler.decide("a", [1, 2]), scheduler.decide("a", [1, 2])
    first.fail(2.0, "because")
    second.report(1.0, 1.0)
    retry = first.again()
    first.fail(2.0, "because")
    for tell, values in ((first.report, (1.0, 1.0)), (first.fail, (3.0,)), (first.cancel, ())):
        with pytest.raises(AlreadyFailed):
            tell(*values)
    with pytest.raises(AlreadyReported):
        scheduler.fail(second.id)
    retry.fail()
    with pytest.raises(AlreadyFailed):
        retry.report(1.0, 1.0)
    with pytest.raises(BadTask):
        retry.again()
    scheduler.change(failed_reward=0.0)
    third = scheduler.decide("a", [1, 2])
    scheduler.fail(third.id, 1.0)
    lines = [(line.task, line.option, line.state, line.cost, line.reason, line.attempts) for line in scheduler.latest()]
    return [retry.attempt, retry.option, lines, scheduler.summary().kinds, scheduler.rebuild()]


def test_pages_show_failures_with_their_reasons(served: Served) -> None:
    decided(served)
    served.post(f"{ONE}/tasks/1/fail", {"cost": 1, "reason": "<b>no memory</b>"})
    page = served.get("/schedulers/default").text
    assert '<span class="state failed">failed</span><span class="reason small">&lt;b&gt;no memory' in page
    assert "NOTHING HAS SUCCEEDED YET for weather" in page
    assert 'aria-label="winning"' not in page
    assert "&lt;b&gt;no memory" in served.get("/schedulers/default/tasks/1").text
