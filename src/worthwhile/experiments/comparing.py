"""Is the default best? Losses of several policies in several settings, compared sample by sample."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from worthwhile.experiments.base import OURS, Claim, Columns, Scale, plus_minus
from worthwhile.experiments.figures import name_lines, panels
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
KNOWING = ("oracle", "optimum")  # told what others must learn: shown, never a rival
MOST_NAMED = 6  # settings in a sentence
TICKS_BETWEEN = (  # powers of ten, if the axis goes up by less than a factor of …
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
    return {name: [row[name] for row in rows] for name in rows[0]}


def default_claim(settings: Sequence[Setting], where: str) -> Claim:
    """The default is best or tied; the settings where it is not, with the best rival and by how much."""
    behind = []
    for setting in settings:
        better = [p for p in setting.policies if p not in KNOWING and setting.standing(p) == "better"]
        if better:
            best = max(better, key=lambda policy: setting.ahead(policy)[0])
            behind.append((setting, best))
    behind.sort(key=lambda pair: -pair[0].ahead(pair[1])[0])
    words = [
        f"{setting.label}: {best} loses {plus_minus(*setting.ahead(best))} % less "
        f"({setting.mean(best)[0]:.3g} beside {setting.mean(DEFAULT)[0]:.3g} %)"
        for setting, best in behind[:MOST_NAMED]
    ]
    if len(behind) > MOST_NAMED:
        words.append(f"{len(behind) - MOST_NAMED} more in the table")
    found = f"not best in {len(behind)} of {len(settings)} settings"
    return Claim(f"{where}: the default loses least, or ties", OURS, f"{found}: {'; '.join(words)}" if words else found)


def simulate_each(
    scale: Scale, worlds: Sequence[World], policies: Asked | Callable[[Any], Asked], tasks: int, **settings: Any
) -> list[Results]:
    """One run on each world, worlds side by side in threads; world n has seed + n. Policies may depend on the world."""
    with Progress(len(worlds), scale.progress, " worlds") as bar, ThreadPoolExecutor(os.cpu_count()) as pool:

        def one(number: int) -> Results:
            given = {"seed": scale.seed + number, "threads": 1, "progress": False, **settings}
            asked = policies(worlds[number]) if callable(policies) else policies
            results = scale.simulate(worlds[number], asked, tasks, 1, **given)
            bar.add(1)
            return results

        futures = [pool.submit(one, number) for number in range(len(worlds))]
        try:
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def last_losses(results: Results | Sequence[Results]) -> Floats:
    """(samples, policies): loss at the end in %, runs of one simulation or of several."""
    several = [results] if isinstance(results, Results) else results
    return 100.0 * np.concatenate([one.measure("loss")[:, :, -1] for one in several])


def fold(figure: Any, axes: Sequence[Any], columns: int, size: tuple[float, float] = (4.6, 3.0)) -> None:
    """Move panels that are side by side into rows of so many."""
    rows = -(-len(axes) // columns)
    figure.set_size_inches(size[0] * columns, size[1] * rows + 0.6)
    grid = figure.add_gridspec(rows, columns)
    for place, one in enumerate(axes):
        one.set_subplotspec(grid[place // columns, place % columns])
        if place % columns == 0:
            one.set_ylabel(axes[0].get_ylabel())


def points(axes: Any, x: Sequence[float], settings: Sequence[Setting], policy: str) -> None:
    """A policy's mean loss over settings with its standard errors, in its own colour."""
    mean, error = np.array([setting.mean(policy) for setting in settings]).T
    look = look_of(policy)
    line = {"color": look.colour, "linestyle": look.dashes, "linewidth": 1.5, "marker": "o", "markersize": 3.5}
    axes.errorbar(x, mean, error, capsize=2, label=policy, **line)


def plain_log(axes: Any, which: str) -> None:
    """Make the x or the y axis logarithmic, with plain numbers, also between the powers of ten if there are few."""
    from matplotlib.ticker import LogLocator, NullLocator

    axes.set(**{f"{which}scale": "log"})
    axis = getattr(axes, f"{which}axis")
    low, high = axis.get_view_interval()
    between = next(more for most, more in TICKS_BETWEEN if high < most * low)
    axis.set_major_locator(LogLocator(subs=(1.0, *between)))
    axis.set_major_formatter("{x:g}")
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
    return last_losses(scale.simulate(worlds[0], asked, tasks, runs, marks=[], delay=delay))


def draw_losses(
    shown: Mapping[str, Sequence[Setting]], x: str, names: Sequence[str], policies: Sequence[str], columns: int = 2
) -> Any:
    """Panels of loss over the number that settings call x, one per title, in rows; both axes logarithmic."""
    figure, axes = panels(list(shown), "", "lost, % of the optimum")
    fold(figure, axes, columns)
    for one, name, settings in zip(axes, names, shown.values(), strict=True):
        for policy in policies:
            points(one, [setting.names[x] for setting in settings], settings, policy)
        one.set_xlabel(name)
        plain_log(one, "x")
        plain_log(one, "y")
    name_lines(figure, axes[:columns])
    return figure
