"""Faces: a baseline and held-out tasks over HTTP, through a client and from the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_service import Served

from service_process import ServiceProcess, store_at
from worthwhile import Client, Scheduler
from worthwhile.cli.main import main
from worthwhile.errors import BadParameter
from worthwhile.live.log_statistics import Point
from worthwhile.service.dashboard.drawing import chart

ONE = "/v1/schedulers/trial"
OPTIONS = ["small", "medium", "large"]


@pytest.fixture
def served(sqlite: str) -> Iterator[Served]:
    one = Served(sqlite)
    yield one
    one.close()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    with ServiceProcess(store_at(tmp_path_factory.mktemp("trials"))) as running:
        yield running


def test_a_trial_is_made_changed_and_shown_over_http(served: Served) -> None:
    made = served.ask("PUT", ONE, json={"baseline": "medium", "holdout": 1.0, "explore": 0.25}).json()
    assert (made["baseline"], made["holdout"], made["explore"]) == ({"": "medium"}, 1.0, 0.25)
    task = served.post(f"{ONE}/tasks", {"kind": "k", "options": OPTIONS}).json()
    assert task["option"] == "medium"
    other = served.post(f"{ONE}/tasks", {"kind": "k", "options": OPTIONS, "usual": "large"}).json()
    assert other["option"] == "large"
    many = served.post(f"{ONE}/decide", {"tasks": [{"kind": "k", "options": OPTIONS, "usual": "small"}]}).json()
    assert many["tasks"][0]["option"] == "small"
    why = served.get(f"{ONE}/tasks/{task['task']}/explanation").json()
    assert (why["mode"], why["own"]) in (("held out", "small"), ("held out", "large"), ("agreed", "small"))
    changed = served.ask("PATCH", ONE, json={"baseline": {"k": "large"}, "holdout": 0.5}).json()
    assert (changed["baseline"], changed["holdout"], changed["explore"]) == ({"k": "large"}, 0.5, 0.25)
    assert served.get(f"{ONE}/summary").json()["gain"]["baseline"] == "the usual option of every kind"


def test_paused_every_task_takes_its_baseline_and_resumed_as_many_are_held_out_as_before(served: Served) -> None:
    def chosen() -> set[str]:
        asked = [{"kind": "k", "options": OPTIONS} for _ in range(20)]
        return {task["option"] for task in served.post(f"{ONE}/decide", {"tasks": asked}).json()["tasks"]}

    served.ask("PUT", ONE, json={"seed": 1, "policy": "random-option"})
    refused = served.post(f"{ONE}/pause", {})
    assert (refused.status_code, "none is named; set one with baseline" in refused.text) == (422, True)
    served.ask("PATCH", ONE, json={"baseline": "medium", "holdout": 0.125})
    assert len(chosen()) > 1
    assert served.post(f"{ONE}/pause", {}).json()["paused"] is True
    assert served.post(f"{ONE}/pause", {}).status_code == 200
    assert chosen() == {"medium"}
    resumed = served.post(f"{ONE}/resume", {}).json()
    assert (resumed["paused"], resumed["holdout"]) == (False, 0.125)
    assert len(chosen()) > 1
    actions = [entry["action"] for entry in served.get("/v1/audit").json()]
    assert actions[:3] == ["resumed", "paused", "paused"]


def test_a_shadow_is_not_resumed_but_promoted(served: Served) -> None:
    served.ask("PUT", ONE, json={"baseline": "medium", "holdout": 1.0})
    refused = served.post(f"{ONE}/resume", {})
    assert (refused.status_code, "promote says with what share" in refused.text) == (422, True)
    assert "Let it decide 5 %" in served.get("/schedulers/trial").text
    assert served.post(f"{ONE}/promote", {"share": 0.05}).json()["share"] == 0.05
    assert served.post(f"{ONE}/resume", {}).json()["holdout"] == 0.95  # it was not paused: nothing changes


@pytest.mark.parametrize("body", [{"holdout": 2}, {"explore": -1}, {"baseline": ["a"]}, {"holdout": "half"}])
def test_bad_settings_are_refused_over_http(served: Served, body: dict[str, object]) -> None:
    assert served.ask("PUT", ONE, json=body).status_code == 400


def test_a_client_holds_out_what_a_scheduler_does(service: ServiceProcess) -> None:
    given = {"seed": 4, "baseline": "medium", "holdout": 0.4, "explore": 0.1}
    with Scheduler(**given) as scheduler, Client(service.url, name="same", **given) as client:
        options = [[], []]
        for taken, decider in zip(options, (scheduler, client), strict=True):
            for number in range(60):
                task = decider.decide("k", OPTIONS, usual="large" if number % 5 == 0 else None)
                task.report(1.0 + number % 3, 1.0)
                taken.append(task.option)
        assert options[0] == options[1]
        assert client.summary().gain == scheduler.summary().gain
        client.change(holdout=1)
        assert {client.decide("k", OPTIONS).option for _ in range(5)} == {"medium"}
        with pytest.raises(BadParameter, match="holdout = 3"):
            client.change(holdout=3)
        with pytest.raises(BadParameter, match="has baseline medium, holdout 1"):
            Client(service.url, name="same", holdout=0.5)


def test_metrics_have_the_gain_with_its_interval(served: Served) -> None:
    served.ask("PUT", ONE, json={"baseline": "medium", "holdout": 0.5, "seed": 1})
    for number in range(150):
        task = served.post(f"{ONE}/tasks", {"kind": "k", "options": OPTIONS}).json()
        worth = {"small": 2.0, "medium": 1.0, "large": 0.5}[task["option"]] + number % 5 / 10
        served.post(f"{ONE}/tasks/{task['task']}/report", {"reward": worth, "cost": 1.0})
    gain = served.get(f"{ONE}/summary").json()["gain"]
    metrics = dict(
        line.rsplit(" ", 1) for line in served.get("/metrics").text.splitlines() if line.startswith("worthwhile_gain")
    )
    for name in ("value", "low", "high", "always_low", "always_high"):
        suffix = "" if name == "value" else f"_{name}"
        assert float(metrics[f'worthwhile_gain{suffix}{{scheduler="trial"}}']) == gain["gain"][name]
    held_out = [line for line in served.get("/metrics").text.splitlines() if line.startswith("worthwhile_held_out")]
    assert held_out[-1:] == [f'worthwhile_held_out_total{{scheduler="trial"}} {gain["held_out"]}']


def test_the_command_line_changes_a_trial_and_shows_the_gain(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = str(tmp_path / "tasks.db")
    Scheduler(store, seed=1).close()
    assert main(["change", store, "--baseline", "medium", "--holdout", "1", "--explore", "0.1"]) == 0
    assert capsys.readouterr().out == "default: baseline = medium, holdout = 1.0, explore = 0.1 from now on\n"
    assert main(["decide", store, "k", *OPTIONS]) == 0
    assert capsys.readouterr().out == "1\tmedium\n"
    assert main(["decide", store, "k", *OPTIONS, "--usual", "large"]) == 0
    assert capsys.readouterr().out == "2\tlarge\n"
    assert main(["change", store, "--baseline-of", "k=small", "--baseline-of", "a=b=5", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"baseline": {"k": "small", "a=b": 5}}
    assert main(["status", store]) == 0
    assert "gain: not known against the usual option of every kind: all tasks take" in capsys.readouterr().out
    for wrong in (["--baseline", "a", "--baseline-of", "k=b"], ["--baseline-of", "k"], ["--holdout", "2"]):
        assert main(["change", store, *wrong]) == 2
        capsys.readouterr()


def test_a_service_evaluates_and_promotes(service: ServiceProcess) -> None:
    given = {"seed": 4, "baseline": "medium", "holdout": 0.4, "explore": 0.1}
    with Scheduler(**given) as scheduler, Client(service.url, name="evaluated", **given) as client:
        for decider in (scheduler, client):
            for number in range(80):
                decider.decide("k", OPTIONS).report(1.0 + number % 3, 1.0)
        for rule in ("always:small", "baseline", "greedy", "random"):
            assert client.evaluate(rule) == scheduler.evaluate(rule)
        assert client.evaluate(policy="kind-greedy") == scheduler.evaluate(policy="kind-greedy")
        assert client.promote() == scheduler.promote()
        assert client.promote(0.5) == scheduler.promote(0.5)
        with pytest.raises(BadParameter, match="give a rule or a policy"):
            client.evaluate()


def test_a_price_as_good_as_infinite_is_not_drawn() -> None:
    far = [Point(number, 2.0, price, None) for number, price in enumerate((1.0, 3.0, 4e6, 4e6), 1)]
    assert [line.style for line in chart(far, 600, 300).lines] == ["ratio"]
    drawn = chart([*far, Point(5, 2.0, 3.0, None)], 600, 300)
    [price] = [line for line in drawn.lines if line.style == "price"]
    assert 0.0 <= price.end_y <= drawn.bottom
    assert [tick.text for tick in drawn.up][-1] == "3"


def test_a_page_shows_what_is_saved_under_a_goal_and_draws_no_infinite_price(served: Served) -> None:
    made = {"baseline": "large", "holdout": 0.5, "floor": 0.1}
    served.ask("PUT", ONE, json=made)
    for _ in range(150):
        task = served.post(f"{ONE}/tasks", {"kind": "k", "options": OPTIONS}).json()
        cost = {"small": 1.0, "medium": 2.0, "large": 4.0}[task["option"]]
        served.post(f"{ONE}/tasks/{task['task']}/report", {"reward": 0.5 + cost / 10, "cost": cost})
    page = served.ask("GET", "/schedulers/trial").text
    assert "of the cost per task saved against always large, from" in page
    assert "Cost alone decides here" in page
    assert "e+06" not in page
