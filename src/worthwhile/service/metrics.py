"""What Prometheus asks for: requests and how long they took in this process, and how every scheduler stands."""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from worthwhile.live.summary import OptionSummary, Summary
from worthwhile.live.validation import Option, as_option, option_text

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds
MOST_SERIES = 1000  # of a scheduler under one name: every one is a time series


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
        lines = head("requests_total", "counter", "Requests to this process.")
        for (method, route, status), count in sorted(self.requests.items()):
            lines.append(sample("requests_total", {"method": method, "route": route, "status": str(status)}, count))
        lines += head("request_seconds", "histogram", "How long requests to this process took.")
        for route, histogram in sorted(self.histograms.items()):
            lines += histogram_lines(route, histogram)
        for name, type, help, series in FAMILIES:
            lines += head(name, type, help)
            for summary in summaries:
                for labels, value in series(summary):
                    if value is not None:
                        lines.append(sample(name, {"scheduler": summary.scheduler} | labels, value))
        return "\n".join(lines) + "\n"


Series = Iterator[tuple[dict[str, str], float | None]]  # labels beside the scheduler's name, and the value
Arm = tuple[str, OptionSummary]  # kind and option


class Family(NamedTuple):
    """What stands under one name: a help text, and a series for every scheduler, option, limit or feature."""

    name: str
    type: str
    help: str
    series: Callable[[Summary], Series]


def head(name: str, type: str, help: str) -> list[str]:
    return [f"# HELP worthwhile_{name} {help}", f"# TYPE worthwhile_{name} {type}"]


def sample(name: str, labels: dict[str, str], value: float) -> str:
    text = ",".join(f'{label}="{escaped(value)}"' for label, value in labels.items())
    return f"worthwhile_{name}{{{text}}} {int(value) if isinstance(value, bool) else value!r}"


def histogram_lines(route: str, histogram: Histogram) -> list[str]:
    lines, total = [], 0
    for limit, count in zip((*map(repr, BUCKETS), "+Inf"), histogram.counts, strict=True):
        total += count
        lines.append(sample("request_seconds_bucket", {"route": route, "le": limit}, total))
    lines.append(sample("request_seconds_sum", {"route": route}, histogram.seconds))
    lines.append(sample("request_seconds_count", {"route": route}, total))
    return lines


def of_scheduler(attribute: str, summary: Summary) -> Series:
    yield {}, getattr(summary, attribute)


def count_of(attribute: str, summary: Summary) -> Series:
    yield {}, len(getattr(summary, attribute))


def of_gain(attribute: str, summary: Summary) -> Series:
    """The gain, once enough tasks were held out to tell."""
    if summary.gain and summary.gain.gain:
        yield {}, getattr(summary.gain.gain, attribute)


def of_trial(attribute: str, summary: Summary) -> Series:
    if summary.gain:
        yield {}, getattr(summary.gain, attribute)


def of_features(attribute: str, summary: Summary) -> Series:
    if summary.features:
        yield {}, getattr(summary.features, attribute)


def of_feature_shares(summary: Summary) -> Series:
    """Features that matter: at most as many as a scheduler may have, 256."""
    for one in summary.features.shares if summary.features else ():
        yield {"feature": one.feature}, one.share


def of_limits(attribute: str, summary: Summary) -> Series:
    for kept in (summary.goal.kept if summary.goal else [])[:MOST_SERIES]:
        yield {"limit": kept.limit, "kind": kept.kind or ""}, getattr(kept, attribute)


def of_options(attribute: str, summary: Summary) -> Series:
    """Options with the most attempts first."""
    yield from series_of(arms(summary), attribute, lambda arm: arm[1].pulls)


def of_failing_options(attribute: str, summary: Summary) -> Series:
    """Options that have failed or were lost, those with the most failures first: others have nothing to say here."""
    failing = [arm for arm in arms(summary) if failures(arm)]
    yield from series_of(failing, attribute, failures)


def series_of(found: list[Arm], attribute: str, weight: Callable[[Arm], int]) -> Series:
    for kind, option in sorted(found, key=weight, reverse=True)[:MOST_SERIES]:
        yield {"kind": kind, "option": label_of(option.option)}, getattr(option, attribute)


def arms(summary: Summary) -> list[Arm]:
    return [(kind.kind, option) for kind in summary.kinds for option in kind.options]


def failures(arm: Arm) -> int:
    return arm[1].failed + arm[1].lost


SCHEDULER_METRICS = (
    ("decisions_total", "counter", "tasks", "Tasks decided."),
    ("reports_total", "counter", "reports", "Reports learned from, failures and history included."),
    ("history_total", "counter", "history", "Of the reports, those recorded elsewhere and imported."),
    ("failed_total", "counter", "failed", "Attempts that failed."),
    ("reward", "gauge", "reward", "Total reward."),
    ("cost", "gauge", "cost", "Total cost, overhead included."),
    ("history_reward", "gauge", "history_reward", "Of the total reward, what was imported."),
    ("history_cost", "gauge", "history_cost", "Of the total cost, what was imported."),
    ("running", "gauge", "running", "Tasks decided and neither reported nor expired."),
    ("expired", "gauge", "expired", "Tasks not reported by the end of their lease."),
    ("ratio", "gauge", "ratio", "Total reward / total cost."),
    ("completed_ratio", "gauge", "completed_ratio", "The ratio had every task been tried until it was done."),
    ("price", "gauge", "price", "What a unit of cost is worth."),
    ("settled_kinds", "gauge", "settled_kinds", "Kinds with a clear winner."),
    ("bad_entries", "gauge", "bad_entries", "Entries of the log that nothing can be learned from."),
)
GAIN_METRICS = (
    ("gain", "value", "Reward per cost beyond the baseline's: 0.1 is 10 % more."),
    ("gain_low", "low", "Lower end of the gain's 95 % interval now."),
    ("gain_high", "high", "Upper end of the gain's 95 % interval now."),
    ("gain_always_low", "always_low", "Lower end of the gain's 95 % interval whenever you look."),
    ("gain_always_high", "always_high", "Upper end of the gain's 95 % interval whenever you look."),
)
LIMIT_METRICS = (
    ("limit", "wanted", "A floor or a budget."),
    ("limit_mean", "mean", "The mean per task that a floor or a budget is about."),
    ("limit_recent", "recent", "The same mean lately."),
    ("limit_price", "price", "The price at which a floor or a budget is just kept."),
)
OPTION_METRICS = (
    ("option_attempts_total", "counter", "pulls", "Attempts with an option."),
    ("option_reward", "gauge", "mean_reward", "Mean reward of an option's results."),
    ("option_cost", "gauge", "completed_cost", "Mean cost of a completed task, failures paid by those that succeed."),
    ("option_score", "gauge", "score", "Mean reward less price times cost; the best is highest."),
    ("option_winning", "gauge", "winning", "1 for the best option of a kind."),
)
FAILING_METRICS = (
    ("option_failed_total", "counter", "failed", "Failed attempts with an option that has failed."),
    ("option_lost_total", "counter", "lost", "Attempts with it not reported by the end of their lease."),
    ("option_benched", "gauge", "benched", "1 if it keeps failing, and is tried now and then only."),
)
FEATURES_METRICS = (
    ("features_believed", "believed", "How much of what features foretell is believed, from 0 to 1."),
    ("features_expected_gain", "expected_gain", "Expected gain over the best option of every kind."),
)
FAMILIES = (
    *(Family(name, type, help, partial(of_scheduler, field)) for name, type, field, help in SCHEDULER_METRICS),
    Family("kinds", "gauge", "Kinds of tasks.", partial(count_of, "kinds")),
    Family("warnings", "gauge", "Warnings on the dashboard.", partial(count_of, "warnings")),
    *(Family(name, "gauge", help, partial(of_gain, field)) for name, field, help in GAIN_METRICS),
    Family("held_out_total", "counter", "Tasks held out with the baseline.", partial(of_trial, "held_out")),
    Family("holdout", "gauge", "Share of the tasks held out; 1 while paused.", partial(of_trial, "holdout")),
    *(Family(name, "gauge", help, partial(of_limits, field)) for name, field, help in LIMIT_METRICS),
    *(Family(name, type, help, partial(of_options, field)) for name, type, field, help in OPTION_METRICS),
    *(Family(name, type, help, partial(of_failing_options, field)) for name, type, field, help in FAILING_METRICS),
    *(Family(name, "gauge", help, partial(of_features, field)) for name, field, help in FEATURES_METRICS),
    Family("feature_share", "gauge", "Share of a feature in what tells tasks apart.", of_feature_shares),
)


def label_of(option: Option) -> str:
    """Text as it is, unless it would pass for another option: 5 and "5" are two."""
    return option if isinstance(option, str) and as_option(option) == option else option_text(option)


def escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
