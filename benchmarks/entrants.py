"""Who takes part in the arena, and what each is told: every rival in the best of its honest settings.

The default is told nothing. The others are told the horizon and the true bounds of the means, where they
ask for them; beyond that, each setting below is one that somebody who knew the problem could have chosen. The table
shows the best of them for every row, which flatters the rivals: nobody knows beforehand which one that is.

* dol-rm, dol-rm-anytime, ratio-ts, ratio-ucb: `noise` 1 as published; σ, the standard deviation of rewards; 2σ; and σc,
  that of costs: they take one number for both.
* plug-ts: one or two tries of every option before its draws begin; it is told nothing.
* omega-ucb, omega-star-ucb, m-ucb, bts: the range of the means, or that of single observations; m-ucb with its factor
  2⁻⁴ and with 2⁻².
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from suites import Row
from worthwhile import Environment
from worthwhile.compiling import available
from worthwhile.testing.environments import answer, answer_fast

NOISY = ("dol-rm", "dol-rm-anytime", "ratio-ts")  # told how large noise is
RANGED = ("omega-ucb", "omega-star-ucb", "m-ucb", "bts")  # told a range of the observations
RIVALS = (*NOISY, *RANGED, "plug-ts")
ONE_KIND = "ratio-ucb"  # at home where there is one kind
SAMPLES = 2_000  # tasks from which the noise and the range of a world are taken


class Scale(NamedTuple):
    """What can be said of single observations of a world."""

    reward_sd: float
    cost_sd: float
    reward: tuple[float, float]  # least and largest
    cost: tuple[float, float]


def entrants(row: Row, world: Environment, rivals: tuple[str, ...]) -> dict[str, str]:
    """{label: policy} of every setting of the rivals; a label is a name, and what it is told in brackets."""
    found: dict[str, str] = {}
    scale = scale_of(world) if rivals else None
    for name in (*rivals, *((ONE_KIND,) if rivals and row.one_kind else ())):
        if scale and name in (*NOISY, ONE_KIND):
            found |= {f"{name} [{words}]": f"{name},noise={noise:.9g}" for words, noise in noises(scale)}
        elif scale and name in RANGED:
            found |= {f"{name} [{words}]": f"{name}{told}" for words, told in ranges(name, row, scale)}
        elif name == "plug-ts":
            found |= {f"{name} [{tries}]": f"{name},first_tries={tries}" for tries in (1, 2)}
        else:
            found[name] = name
    return found


def noises(scale: Scale) -> Iterator[tuple[str, float]]:
    yield "1", 1.0
    yield "σ", scale.reward_sd
    yield "2σ", 2.0 * scale.reward_sd
    yield "σc", scale.cost_sd


def ranges(name: str, row: Row, scale: Scale) -> Iterator[tuple[str, str]]:
    """The range of the means is what policies are told by `simulate`, unless the row knows better."""
    seen = f",reward_max={scale.reward[1]:.9g},cost_max={scale.cost[1]:.9g}"
    if name.startswith("omega"):
        seen += f",reward_low={scale.reward[0]:.9g},cost_low={max(0.0, scale.cost[0]):.9g}"
    yield "means", f",{row.told}" if row.told else ""
    yield "seen", seen
    if name == "m-ucb":
        yield "seen, 2⁻²", f"{seen},width=0.25"


def policy_of(label: str) -> str:
    """The policy of a label."""
    return label.partition(" [")[0]


scales: dict[int, Scale] = {}  # by the id of a world, which lives as long as the arena


def scale_of(world: Environment) -> Scale:
    """Noise and range of a world's observations, looked at once."""
    if id(world) not in scales:
        scales[id(world)] = look_at(world)
    return scales[id(world)]


def look_at(world: Environment) -> Scale:
    """Noise and range of a world's observations, a failure being a reward of 0."""
    kinds, latents = world.world.draw(np.random.default_rng(0), SAMPLES)
    answers = answer_fast if available() else answer
    problem, seen, squares = world.problem, [], []
    for option in range(len(problem.options)):
        asked = problem.offered[:, option][kinds]
        means = np.stack([means[kinds[asked], option] for means in problem.means_per_attempt], axis=1)
        seen.append(np.nan_to_num(answers(world.world, option, kinds[asked], latents[asked])))
        squares.append((seen[-1] - means) ** 2)
    least, largest = np.concatenate(seen).min(axis=0).tolist(), np.concatenate(seen).max(axis=0).tolist()
    reward_sd, cost_sd = np.sqrt(np.concatenate(squares).mean(axis=0)).tolist()
    return Scale(reward_sd, cost_sd, (least[0], largest[0]), (least[1], largest[1]))
