"""What Prometheus reads, and the dashboard and alerts for it in deploy/."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from worthwhile import Scheduler
from worthwhile.service.metrics import FAMILIES, MOST_SERIES, Metrics

DEPLOY = Path(__file__).parents[2] / "deploy"


def names() -> set[str]:
    """Every name of a metric."""
    counts = Metrics()
    counts.add("GET", "/", 200, 0.1)
    text = counts.text([])
    return {*re.findall(r"^# TYPE (\w+)", text, re.M), *re.findall(r"^(worthwhile_\w+)\{", text, re.M)}


def used(text: str) -> set[str]:
    return set(re.findall(r"\bworthwhile_\w+", text))


def expressions(content: Any) -> list[str]:
    """Those in a dashboard, wherever they are."""
    if isinstance(content, dict):
        own = [content["expr"]] if "expr" in content else []
        return own + [each for part in content.values() for each in expressions(part)]
    return [each for part in content for each in expressions(part)] if isinstance(content, list) else []


def test_every_metric_has_a_help_text_and_a_type() -> None:
    lines = Metrics().text([]).splitlines()
    helps, types = lines[::2], lines[1::2]
    assert all(re.fullmatch(r"# HELP worthwhile_\w+ [A-Z0-9].+\.", line) for line in helps)
    assert [line.split()[2] for line in helps] == [line.split()[2] for line in types]
    assert len(set(helps)) == len(helps) == len(FAMILIES) + 2


def test_the_dashboard_and_the_alerts_ask_for_metrics_that_there_are() -> None:
    dashboard = json.loads((DEPLOY / "grafana.json").read_text(encoding="utf-8"))
    alerts = re.findall(r"^ +expr: (.+)$", (DEPLOY / "alerts.yml").read_text(encoding="utf-8"), re.M)
    asked = expressions(dashboard["panels"])
    assert len(asked) > 10
    assert len(alerts) > 5
    for expression in [*asked, *alerts]:
        assert used(expression) <= names(), expression
        assert expression.count("(") == expression.count(")")
        assert expression.count("{") == expression.count("}")
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(ids)) == len(ids)


def test_options_are_series_and_not_too_many() -> None:
    with Scheduler(seed=0) as scheduler:
        for kind in range(MOST_SERIES // 20 + 5):
            for option in range(20):
                scheduler.decide(f"kind {kind}", [option]).report(1.0 + option, 2.0)
        scheduler.decide("kind 0", [7]).report(8.0, 2.0)
        lines = Metrics().text([scheduler.summary()]).splitlines()
    attempts = [line for line in lines if line.startswith("worthwhile_option_attempts_total")]
    assert len(attempts) == MOST_SERIES
    assert attempts[0] == 'worthwhile_option_attempts_total{scheduler="default",kind="kind 0",option="7"} 2'
    assert 'worthwhile_option_reward{scheduler="default",kind="kind 0",option="7"} 8.0' in lines
