"""What OpenTelemetry's own exporters get to see, in memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from waiting import NET
from worthwhile import Scheduler

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "otel_spans.py"

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def told() -> tuple[Any, Any]:
    """Where spans and metrics end up; the providers are global, and can be set once."""
    from opentelemetry import metrics, trace
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    spans, reader = InMemorySpanExporter(), InMemoryMetricReader()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    trace.set_tracer_provider(provider)
    metrics.set_meter_provider(MeterProvider([reader]))
    return spans, reader


def test_the_example_prints_what_it_says_and_the_page_shows_it() -> None:
    done = subprocess.run([sys.executable, str(EXAMPLE)], capture_output=True, text=True, timeout=NET, check=True)
    assert done.stderr == ""
    page = (ROOT / "docs" / "integrations" / "opentelemetry.md").read_text(encoding="utf-8")
    assert f"```console\n$ python examples/otel_spans.py\n{done.stdout}```" in page
    part = page.partition("<!-- not run: a part of otel_spans.py -->\n```python\n")[2].partition("```")[0]
    assert part
    assert part in EXAMPLE.read_text(encoding="utf-8")


def attributes(spans: Any) -> list[dict[str, Any]]:
    """Of every span that has ended, without our name in front."""
    finished = spans.get_finished_spans()
    spans.clear()
    return [{name.removeprefix("worthwhile."): value for name, value in span.attributes.items()} for span in finished]


def test_a_span_goes_from_the_decision_to_both_parts_of_the_report(told: tuple[Any, Any]) -> None:
    from worthwhile.integrations.opentelemetry import Traced

    spans, _ = told
    with Traced(Scheduler()) as scheduler:
        task = scheduler.decide("weather", [5])
        task.report(reward=0.9)
        assert spans.get_finished_spans() == ()
        scheduler.report(task.id, cost=3.0)
        assert spans.get_finished_spans()[0].name == "weather"
        known = {"kind": "weather", "option": 5, "task": task.id, "attempt": 0}
        assert attributes(spans) == [known | {"reward": 0.9, "cost": 3.0, "outcome": "reported"}]
        assert scheduler.summary().reports == 1


def test_a_block_that_raises_is_an_error_and_another_attempt_another_span(told: tuple[Any, Any]) -> None:
    from worthwhile.integrations.opentelemetry import Traced

    spans, _ = told
    with Traced(Scheduler()) as scheduler:
        with pytest.raises(ZeroDivisionError), scheduler.task("weather", [1, 5]) as task:
            1 / 0  # noqa: B018
        [span] = spans.get_finished_spans()
        assert (span.status.status_code.name, span.status.description) == (
            "ERROR",
            "ZeroDivisionError: division by zero",
        )
        task.again().cancel()
        first, second = attributes(spans)
        assert (first["outcome"], second["outcome"], second["attempt"]) == ("failed", "cancelled", 1)
        assert first["task"] == second["task"]


def test_what_never_ended_here_ends_when_the_scheduler_is_closed(told: tuple[Any, Any]) -> None:
    from worthwhile.integrations.opentelemetry import Traced

    spans, _ = told
    with Traced(Scheduler()) as scheduler:
        scheduler.decide("weather", [None])
        scheduler.report("1", reward=1.0)
    [left] = attributes(spans)
    assert left["option"] == "null"
    assert "outcome" not in left


def test_a_report_that_is_refused_ends_nothing(told: tuple[Any, Any]) -> None:
    from worthwhile.errors import BadFeedback
    from worthwhile.integrations.opentelemetry import Traced

    spans, _ = told
    with Traced(Scheduler()) as scheduler:
        task = scheduler.decide("weather", [1])
        with pytest.raises(BadFeedback):
            task.report(1.0, -1.0)
        assert attributes(spans) == []


def test_metrics_count_what_has_ended(told: tuple[Any, Any]) -> None:
    from worthwhile.integrations.opentelemetry import Traced

    _, reader = told
    with Traced(Scheduler()) as scheduler:
        for _ in range(3):
            scheduler.decide("counted", [1]).report(1.0, 4.0)
        scheduler.decide("counted", [1]).fail(2.0)
        data = reader.get_metrics_data()
    [scope] = data.resource_metrics[0].scope_metrics
    points = {metric.name: list(metric.data.data_points) for metric in scope.metrics}

    def of_this(name: str) -> list[Any]:
        return [point for point in points[name] if point.attributes.get("kind") == "counted"]

    assert {point.attributes["outcome"]: point.value for point in of_this("worthwhile.tasks")} == {
        "reported": 3,
        "failed": 1,
    }
    assert [(point.count, point.sum) for point in of_this("worthwhile.cost")] == [(4, 14.0)]
    assert [(point.count, point.sum) for point in of_this("worthwhile.reward")] == [(3, 3.0)]
