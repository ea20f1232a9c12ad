"""Is the default policy best? Losses of several policies in several settings, compared sample by sample."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from worthwhile.experiments.base import OURS, Claim, Columns, Scale, by_column, plus_minus
from worthwhile.experiments.figures import add_legend, curve, panels
from worthwhile.plots import look_of
from worthwhile.policies.registry import DEFAULT
from worthwhile.problem import Problem
from worthwhile.simulation.environments.base import Drift, Environment
from worthwhile.simulation.progress import Progress
from worthwhile.simulation.results import Results
from worthwhile.state import Floats

World = Environment | Drift | Problem
Asked = Sequence[str] | Mapping[str, str]

TIE_ERRORS = 2.0  # a smaller difference, in its own standard errors, is a tie
TIE_LOSS = 0.1  # … and so is one of less, in % of the optimum
KNOWING = ("oracle", "optimum")  # they know what others must learn: shown, but no rivals
LOST = "lost, % of the optimum"
MOST_NAMED = 6  # settings in a sentence
TICKS_BETWEEN = (  # the powers of ten, if the ends of the axis are closer than this factor
    (4.0, (1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0)),
    (16.0, (2.0, 5.0)),
    (300.0, (3.0,)),
    (np.inf, ()),
)


class Setting(NamedTuple):
    """What policies lost in one setting, in % of the optimum."""

    names: Mapping[str, Any]  # which setting it is: columns of the table
    policies: Sequence[str]
    losses: Floats  # (samples, policies): a sample is a run or a random problem, the same for all policies

    @property
    def label(self) -> str:
        """The setting in words; a number says what it counts."""
        words = (value if isinstance(value, str) else f"{name} {value:,g}" for name, value in self.names.items())
        return ", ".join(words)

    def mean(self, policy: str) -> tuple[float, float]:
        """Mean loss of a policy and its standard error."""
        return mean_and_error(self.losses[:, self.policies.index(policy)])

    def ahead(self, policy: str) -> tuple[float, float]:
        """How much less than the default a policy loses, and the standard error of the difference."""
        default = self.losses[:, self.policies.index(DEFAULT)]
        return mean_and_error(default - self.losses[:, self.policies.index(policy)])

    def standing(self, policy: str) -> str:
        """Better or worse than the default, or a tie."""
        by, error = self.ahead(policy)
        if policy == DEFAULT or abs(by) < max(TIE_LOSS, TIE_ERRORS * error):
            return "tie"
        return "better" if by > 0.0 else "worse"


def mean_and_error(values: Floats) -> tuple[float, float]:
    """The mean of some samples and its standard error, 0 if there is one sample."""
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    return float(values.mean()), float(error)


def settings_table(settings: Sequence[Setting]) -> Columns:
    """One row per setting and policy: its loss, and how it stands beside the default."""
    rows = [
        {
            **setting.names,
            "policy": policy,
            "samples": len(setting.losses),
            **dict(zip(("loss_percent", "loss_error"), setting.mean(policy), strict=True)),
            **dict(zip(("ahead_of_default", "ahead_error"), setting.ahead(policy), strict=True)),
            "beside_default": setting.standing(policy),
        }
        for setting in settings
        for policy in setting.policies
    ]
    return by_column(rows[0], (row.values() for row in rows))


def chosen(settings: Sequence[Setting], **names: Any) -> list[Setting]:
    """The settings with these names."""
    return [setting for setting in settings if names.items() <= setting.names.items()]


def default_claim(settings: Sequence[Setting], where: str) -> Claim:
    """The default is best or tied; the settings where it is not, with the best rival and by how much."""
    behind = []
    for setting in settings:
        rivals = [policy for policy in setting.policies if policy not in KNOWING]
        if better := [policy for policy in rivals if setting.standing(policy) == "better"]:
            behind.append((setting, max(better, key=lambda policy: setting.ahead(policy)[0])))
    behind.sort(key=lambda pair: -pair[0].ahead(pair[1])[0])
    words = [
        f"{setting.label}: {best} loses {plus_minus(*setting.ahead(best))} % less "
        f"({setting.mean(best)[0]:.3g} beside {setting.mean(DEFAULT)[0]:.3g} %)"
        for setting, best in behind[:MOST_NAMED]
    ]
    if len(behind) > MOST_NAMED:
        words.append(f"{len(behind) - MOST_NAMED} more in the table")
    count = f"not best in {len(behind)} of {len(settings)} settings"
    return Claim(f"{where}: the default loses least, or ties", OURS, f"{count}: {'; '.join(words)}" if words else count)


def simulate_each(
    scale: Scale, worlds: Sequence[World], policies: Asked | Callable[[Any], Asked], tasks: int, **settings: Any
) -> list[Results]:
    """One run on each world, worlds side by side in threads; world n has seed + n. Policies may depend on the world."""
    with Progress(len(worlds), scale.progress, " worlds") as bar, ThreadPoolExecutor(os.cpu_count()) as pool:

        def run(number: int) -> Results:
            given = {"seed": scale.seed + number, "threads": 1, "progress": False, **settings}
            asked = policies(worlds[number]) if callable(policies) else policies
            results = scale.simulate(worlds[number], asked, tasks, 1, **given)
            bar.add(1)
            return results

        futures = [pool.submit(run, number) for number in range(len(worlds))]
        try:
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def losses_of(simulations: Sequence[Results]) -> Floats:
    """(samples, policies, marks): loss in %, the runs of all simulations below each other."""
    return 100.0 * np.concatenate([results.measure("loss") for results in simulations])


def last_losses(simulations: Sequence[Results]) -> Floats:
    """(samples, policies): loss at the end in %."""
    return losses_of(simulations)[:, :, -1]


def points(panel: Any, x: Sequence[float], settings: Sequence[Setting], policy: str) -> None:
    """A policy's mean loss over settings with its standard errors, in its own colour."""
    mean, error = np.array([setting.mean(policy) for setting in settings]).T
    look = look_of(policy)
    line = {"color": look.colour, "linestyle": look.dashes, "linewidth": 1.5, "marker": "o", "markersize": 3.5}
    panel.errorbar(x, mean, error, capsize=2, label=policy, **line)


def plain_log(panel: Any, which: str = "xy") -> None:
    """Make the axes logarithmic, with plain numbers, also between the powers of ten if there are few."""
    from matplotlib.ticker import LogLocator, NullLocator

    for name in which:
        panel.set(**{f"{name}scale": "log"})
        axis = getattr(panel, f"{name}axis")
        low, high = axis.get_view_interval()
        between = next(more for most, more in TICKS_BETWEEN if high < most * low)
        axis.set_major_locator(LogLocator(subs=(1.0, *between)))
        axis.set_major_formatter("{x:,g}")
        axis.set_minor_locator(NullLocator())


def losses_on(
    scale: Scale,
    worlds: Sequence[World],
    policies: Asked | Callable[[Any], Asked],
    tasks: int,
    runs: int,
    delay: int | tuple[int, int] = 0,
) -> Floats:
    """(samples, policies): loss at the end in %, in one run on each of several worlds, or in several runs on one."""
    if len(worlds) > 1:
        return last_losses(simulate_each(scale, worlds, policies, tasks, marks=[], delay=delay))
    asked = policies(worlds[0]) if callable(policies) else policies
    return last_losses([scale.simulate(worlds[0], asked, tasks, runs, marks=[], delay=delay)])


def draw_losses(
    shown: Mapping[str, Sequence[Setting]], x: str, names: Sequence[str], policies: Sequence[str], columns: int = 2
) -> Any:
    """Panels of loss over the number that settings call x, one per title, in rows; both axes logarithmic."""
    figure, axes = panels(list(shown), "", LOST, columns)
    for panel, name, settings in zip(axes, names, shown.values(), strict=True):
        for policy in policies:
            points(panel, [setting.names[x] for setting in settings], settings, policy)
        panel.set_xlabel(name)
        plain_log(panel)
    add_legend(figure)
    return figure


def draw_learning(shown: Mapping[str, Sequence[Results]], first: int, columns: int) -> Any:
    """Panels of loss over tasks from the first one on, a panel per title, in rows; both axes logarithmic."""
    figure, axes = panels(list(shown), "tasks", LOST, columns)
    for panel, simulations in zip(axes, shown.values(), strict=True):
        later, losses = simulations[0].marks >= first, losses_of(simulations).mean(axis=0)
        for policy, mean in zip(simulations[0].policies, losses, strict=True):
            curve(panel, simulations[0].marks[later], mean[later], policy)
        plain_log(panel)
        panel.xaxis.set_major_formatter("{x:,.0f}")
    add_legend(figure)
    return figure
