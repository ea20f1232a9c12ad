"""What Prometheus asks for: requests and how long they took in this process, and how every scheduler stands."""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Sequence

from worthwhile.live.summary import Summary
from worthwhile.live.validation import Option, as_option, option_text

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds


class Histogram:
    """How long the requests of one route took."""

    def __init__(self) -> None:
        self.counts, self.seconds = [0] * (len(BUCKETS) + 1), 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect.bisect_left(BUCKETS, seconds)] += 1
        self.seconds += seconds


class Metrics:
    """Counts of this process."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, int]] = Counter()
        self.histograms: dict[str, Histogram] = {}

    def add(self, method: str, route: str, status: int, seconds: float) -> None:
        self.requests[method, route, status] += 1
        if route not in self.histograms:
            self.histograms[route] = Histogram()
        self.histograms[route].add(seconds)

    def text(self, summaries: Sequence[Summary]) -> str:
        """Everything in Prometheus's text format."""
        lines = ["# TYPE worthwhile_requests_total counter"]
        for (method, route, status), count in sorted(self.requests.items()):
            labels = f'method="{method}",route="{route}",status="{status}"'
            lines.append(f"worthwhile_requests_total{{{labels}}} {count}")
        lines.append("# TYPE worthwhile_request_seconds histogram")
        for route, histogram in sorted(self.histograms.items()):
            lines += histogram_lines(route, histogram)
        for name, type, attribute in SCHEDULER_METRICS:
            lines.append(f"# TYPE worthwhile_{name} {type}")
            for summary in summaries:
                value = getattr(summary, attribute)
                if value is not None:
                    lines.append(f'worthwhile_{name}{{scheduler="{escaped(summary.scheduler)}"}} {value!r}')
        for name, type, attribute in OPTION_METRICS:
            lines.append(f"# TYPE worthwhile_{name} {type}")
            for summary in summaries:
                lines += option_lines(name, attribute, summary)
        for name, attribute in FEATURES_METRICS:
            lines.append(f"# TYPE worthwhile_{name} gauge")
            lines += [line for summary in summaries for line in features_lines(name, attribute, summary)]
        for name, attribute in LIMIT_METRICS:
            lines.append(f"# TYPE worthwhile_{name} gauge")
            lines += [line for summary in summaries for line in limit_lines(name, attribute, summary)]
        for name, attribute in GAIN_METRICS:
            lines.append(f"# TYPE worthwhile_{name} gauge")
            lines += [line for summary in summaries for line in gain_lines(name, attribute, summary)]
        lines.append("# TYPE worthwhile_held_out_total counter")
        lines += [
            f'worthwhile_held_out_total{{scheduler="{escaped(summary.scheduler)}"}} {summary.gain.held_out}'
            for summary in summaries
            if summary.gain
        ]
        lines.append("# TYPE worthwhile_feature_share gauge")
        lines += [line for summary in summaries for line in share_lines(summary)]
        return "\n".join(lines) + "\n"


OPTION_METRICS = (  # of options that have failed or were lost: others have nothing to say here
    ("option_failed_total", "counter", "failed"),
    ("option_lost_total", "counter", "lost"),
    ("option_benched", "gauge", "benched"),
)
MOST_OPTIONS = 1000  # of a scheduler, those with the most failures first: every one is a time series

FEATURES_METRICS = (  # of schedulers whose tasks have features
    ("features_believed", "believed"),
    ("features_expected_gain", "expected_gain"),
)

LIMIT_METRICS = (  # of schedulers with a floor or a budget: each of these limits, and the mean that it is about
    ("limit", "wanted"),
    ("limit_mean", "mean"),
    ("limit_recent", "recent"),
    ("limit_price", "price"),
)

GAIN_METRICS = (  # of schedulers that have held out enough tasks to tell
    ("gain", "value"),
    ("gain_low", "low"),
    ("gain_high", "high"),
    ("gain_always_low", "always_low"),
    ("gain_always_high", "always_high"),
)

SCHEDULER_METRICS = (
    ("decisions_total", "counter", "tasks"),
    ("reports_total", "counter", "reports"),
    ("history_total", "counter", "history"),
    ("failed_total", "counter", "failed"),
    ("reward", "gauge", "reward"),
    ("cost", "gauge", "cost"),
    ("history_reward", "gauge", "history_reward"),
    ("history_cost", "gauge", "history_cost"),
    ("running", "gauge", "running"),
    ("expired", "gauge", "expired"),
    ("ratio", "gauge", "ratio"),
    ("completed_ratio", "gauge", "completed_ratio"),
    ("price", "gauge", "price"),
    ("settled_kinds", "gauge", "settled_kinds"),
    ("bad_entries", "gauge", "bad_entries"),
)


def histogram_lines(route: str, histogram: Histogram) -> list[str]:
    lines, total = [], 0
    for limit, count in zip((*map(repr, BUCKETS), "+Inf"), histogram.counts, strict=True):
        total += count
        lines.append(f'worthwhile_request_seconds_bucket{{route="{route}",le="{limit}"}} {total}')
    lines.append(f'worthwhile_request_seconds_sum{{route="{route}"}} {histogram.seconds!r}')
    lines.append(f'worthwhile_request_seconds_count{{route="{route}"}} {total}')
    return lines


def option_lines(name: str, attribute: str, summary: Summary) -> list[str]:
    found = [(kind.kind, option) for kind in summary.kinds for option in kind.options if option.failed or option.lost]
    found.sort(key=lambda each: each[1].failed + each[1].lost, reverse=True)
    lines = []
    for kind, option in found[:MOST_OPTIONS]:
        labels = {"scheduler": summary.scheduler, "kind": kind, "option": label_of(option.option)}
        text = ",".join(f'{label}="{escaped(value)}"' for label, value in labels.items())
        lines.append(f"worthwhile_{name}{{{text}}} {int(getattr(option, attribute))}")
    return lines


def features_lines(name: str, attribute: str, summary: Summary) -> list[str]:
    value = getattr(summary.features, attribute, None)
    return [] if value is None else [f'worthwhile_{name}{{scheduler="{escaped(summary.scheduler)}"}} {value!r}']


def limit_lines(name: str, attribute: str, summary: Summary) -> list[str]:
    lines = []
    for kept in (summary.goal.kept if summary.goal else [])[:MOST_OPTIONS]:
        labels = {"scheduler": summary.scheduler, "limit": kept.limit, "kind": kept.kind or ""}
        text = ",".join(f'{label}="{escaped(value)}"' for label, value in labels.items())
        if (value := getattr(kept, attribute)) is not None:
            lines.append(f"worthwhile_{name}{{{text}}} {value!r}")
    return lines


def gain_lines(name: str, attribute: str, summary: Summary) -> list[str]:
    shown = summary.gain and summary.gain.gain
    if not shown:
        return []
    return [f'worthwhile_{name}{{scheduler="{escaped(summary.scheduler)}"}} {getattr(shown, attribute)!r}']


def share_lines(summary: Summary) -> list[str]:
    """Features that matter: at most as many as a scheduler may have, 256."""
    scheduler, features = escaped(summary.scheduler), summary.features
    return [
        f'worthwhile_feature_share{{scheduler="{scheduler}",feature="{escaped(one.feature)}"}} {one.share!r}'
        for one in (features.shares if features else ())
    ]


def label_of(option: Option) -> str:
    """Text as it is, unless it would pass for another option: 5 and "5" are two."""
    return option if isinstance(option, str) and as_option(option) == option else option_text(option)


def escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
