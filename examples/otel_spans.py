"""What OpenTelemetry sees of tasks: a span from each decision to its result, printed here instead of sent.

Needs `pip install 'worthwhile[otel]' opentelemetry-sdk`.

Prints:

    weather, option 5: reported, reward 0.9, cost 3.0
    weather, option 5: failed, cost 1.5, out of memory
"""

from __future__ import annotations

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from worthwhile import Scheduler
from worthwhile.integrations.opentelemetry import Traced


def main() -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()  # yours is set up by your own code, or by an agent
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    with Traced(Scheduler("memory://")) as scheduler:
        scheduler.decide("weather", options=[5]).report(reward=0.9, cost=3.0)
        scheduler.decide("weather", options=[5]).fail(cost=1.5, reason="out of memory")
    for span in exporter.get_finished_spans():
        seen = {name.removeprefix("worthwhile."): value for name, value in (span.attributes or {}).items()}
        reward = f"reward {seen['reward']}, " if "reward" in seen else ""
        reason = f", {seen['reason']}" if "reason" in seen else ""
        print(f"{span.name}, option {seen['option']}: {seen['outcome']}, {reward}cost {seen['cost']}{reason}")


if __name__ == "__main__":
    main()
