"""What an option that is new to a kind may be worth, by what it did in other kinds; docs/policies.md derives it.

Two-way model: the mean reward, and the logarithm of the mean cost, of a cell (kind, option) is an effect of the kind
plus an effect of the option. How far that can be trusted is learned from how well it foretold each cell's first result.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from worthwhile.learning import Moments
from worthwhile.state import Floats

SETTLED = 8.0  # reports of a cell after which what it says to others stays as it is
KIND_PRIOR, OPTION_PRIOR = 0.5, 0.1  # cells that pull an effect towards 0, or the overall mean
PRIOR_ERRORS = 3.0  # before the first forecast, as if so many had been off by all that cells differ
DOUBT = 0.5  # of the share of the variance that forecasts explain, over √(their number)
HEARSAY = 4.6  # a forecast never counts for more evidence than this, as the first report of an option: e⁴·⁶ ≈ 100
TAIL = 5.0  # half the degrees of freedom of what is foretold
LARGEST_LOG = 700.0  # e⁷⁰⁹ is the largest number there is
LOG_2 = 0.6931471805599453
SQRT_HALF = 0.7071067811865476


class Effects(NamedTuple):
    """The two-way model of one measure, the reward or the logarithm of the cost."""

    value: Floats  # (kinds, options): of the cells tried, as last taken in
    kind: Floats  # (kinds,): effect of the kind
    total: Floats  # (options,): Σ value − effect of the kind, over the option's cells
    mean: Floats  # (1,): of all cells when they were new
    squares: Floats  # (1,): Σ (new value − mean)²
    error: Floats  # (1,): Σ (new value − what this model foretold)²
    plain_error: Floats  # (1,): the same for the mean of the kind's other cells


class Sharing(NamedTuple):
    """What all kinds and options have in common."""

    kinds: Floats  # (1,): kinds with a cell that has been tried
    cells: Floats  # (1,): cells tried
    foretold: Floats  # (1,): cells that other cells of their kind and their option had foretold
    kind_cells: Floats  # (kinds,)
    option_cells: Floats  # (options,)
    reward: Effects
    cost: Effects


def new_effects(kinds: int, options: int) -> Effects:
    """No cell tried."""
    mean, squares, error, plain_error = np.zeros((4, 1))
    value, kind, total = np.zeros((kinds, options)), np.zeros(kinds), np.zeros(options)
    return Effects(value, kind, total, mean, squares, error, plain_error)


def new_sharing(kinds: int, options: int) -> Sharing:
    """No cell tried."""
    number_of_kinds, cells, foretold = np.zeros((3, 1))
    effects = new_effects(kinds, options), new_effects(kinds, options)
    return Sharing(number_of_kinds, cells, foretold, np.zeros(kinds), np.zeros(options), *effects)


def option_effect(effects: Effects, option: int, cells: float) -> float:
    """The overall mean for an option that was never tried."""
    effect: float = (effects.total[option] + OPTION_PRIOR * effects.mean[0]) / (cells + OPTION_PRIOR)
    return effect


def take_in_cell(sharing: Sharing, arms: Moments, kind: int, option: int, is_new: bool) -> None:
    """A cell has reported, one of its first few times; the kind's effects follow."""
    reward, cost = arms.mean_reward[kind, option], arms.mean_cost[kind, option]
    logarithm = natural_log(cost) if cost > 0.0 else foretold(sharing, sharing.cost, kind, option)
    if is_new:
        kind_cells, option_cells = sharing.kind_cells[kind], sharing.option_cells[option]
        if kind_cells > 0.0 and option_cells > 0.0:
            sharing.foretold[0] += 1.0
            score_forecast(sharing, sharing.reward, arms, kind, option, reward)
            score_forecast(sharing, sharing.cost, arms, kind, option, logarithm)
        sharing.kinds[0] += 1.0 if kind_cells == 0.0 else 0.0
        sharing.cells[0] += 1.0
        sharing.kind_cells[kind] += 1.0
        sharing.option_cells[option] += 1.0
    enter(sharing, sharing.reward, arms, kind, option, reward, is_new)
    enter(sharing, sharing.cost, arms, kind, option, logarithm, is_new)


def foretold(sharing: Sharing, effects: Effects, kind: int, option: int) -> float:
    """What the two effects say of a cell."""
    effect: float = effects.kind[kind] + option_effect(effects, option, sharing.option_cells[option])
    return effect


def score_forecast(sharing: Sharing, effects: Effects, arms: Moments, kind: int, option: int, value: float) -> None:
    """How far off was the model, and how far the mean of the kind's cells, now that a new cell is known?"""
    kind_cells, option_cells = sharing.kind_cells[kind], sharing.option_cells[option]
    error, mean = value - foretold(sharing, effects, kind, option), 0.0
    for other in range(arms.pulls.shape[1]):
        if other != option and arms.pulls[kind, other] > 0.0:
            mean += effects.value[kind, other] / kind_cells
    effects.error[0] += error * error / (1.0 + uncertainty(kind_cells, option_cells))
    effects.plain_error[0] += (value - mean) * (value - mean) / (1.0 + 1.0 / kind_cells)


def uncertainty(kind_cells: float, option_cells: float) -> float:
    """The variance of the sum of both effects, in units of that of one cell."""
    return 1.0 / (kind_cells + KIND_PRIOR) + 1.0 / (option_cells + OPTION_PRIOR)


def enter(
    sharing: Sharing, effects: Effects, arms: Moments, kind: int, option: int, value: float, is_new: bool
) -> None:
    """Put a cell's value in place of the one before."""
    if is_new:
        before = value - effects.mean[0]
        effects.mean[0] += before / sharing.cells[0]
        effects.squares[0] += before * (value - effects.mean[0])
        effects.total[option] += value - effects.kind[kind]
    else:
        effects.total[option] += value - effects.value[kind, option]
    effects.value[kind, option] = value
    fit_kind(sharing, effects, arms, kind)


def fit_kind(sharing: Sharing, effects: Effects, arms: Moments, kind: int) -> None:
    """The kind's effect is what its cells have beyond their options' effects (backfitting, a kind at a time)."""
    beyond, every = 0.0, range(arms.pulls.shape[1])
    for option in every:
        if arms.pulls[kind, option] > 0.0:
            beyond += effects.value[kind, option] - option_effect(effects, option, sharing.option_cells[option])
    change = beyond / (sharing.kind_cells[kind] + KIND_PRIOR) - effects.kind[kind]
    effects.kind[kind] += change
    for option in every:
        if arms.pulls[kind, option] > 0.0:
            effects.total[option] -= change


def is_shared(sharing: Sharing, kind: int) -> bool:
    """Whether another kind has something to say."""
    return bool(sharing.kinds[0] > (1.0 if sharing.kind_cells[kind] > 0.0 else 0.0))


class Forecast(NamedTuple):
    """What a cell may be worth that was never tried: Gaussian in the reward and in the logarithm of the cost."""

    reward: float
    cost: float  # the median
    reward_variance: float
    log_cost_variance: float


def forecast(sharing: Sharing, kind: int, option: int) -> Forecast:
    """By the model, with the variance that its errors had."""
    reward, cost = sharing.reward, sharing.cost
    median = math.exp(min(foretold(sharing, cost, kind, option), LARGEST_LOG))
    variances = cell_variance(sharing, reward, kind, option), cell_variance(sharing, cost, kind, option)
    return Forecast(foretold(sharing, reward, kind, option), median, *variances)


def cell_variance(sharing: Sharing, effects: Effects, kind: int, option: int) -> float:
    """How far off the model may be: by an interaction of kind and option, and by its effects, known from few cells."""
    prior = PRIOR_ERRORS * variance(sharing, effects)
    interaction: float = (effects.error[0] + prior) / (sharing.foretold[0] + PRIOR_ERRORS)  # τ²
    return interaction * (1.0 + uncertainty(sharing.kind_cells[kind], sharing.option_cells[option]))


def variance(sharing: Sharing, effects: Effects) -> float:
    """Of all cells, when they were new."""
    spread: float = effects.squares[0] / (sharing.cells[0] - 1.0) if sharing.cells[0] > 1.0 else 0.0
    return spread


def trust(sharing: Sharing, unit: float) -> float:
    """√(1 − E/E₀ − ½/√n): E the squared errors of n forecasts, E₀ those of the kinds' plain means, both of R − θC.

    `unit` is θC, what a task costs. Where kinds have nothing in common it is 0: everything is tried at once, as in a
    kind that is alone.
    """
    reward, cost, square = sharing.reward, sharing.cost, unit * unit
    prior = PRIOR_ERRORS * (variance(sharing, reward) + square * variance(sharing, cost))
    plain = reward.plain_error[0] + square * cost.plain_error[0] + prior
    errors = reward.error[0] + square * cost.error[0] + prior
    doubt = DOUBT / math.sqrt(sharing.foretold[0] + PRIOR_ERRORS)
    explained: float = 1.0 - errors / plain - doubt if plain > 0.0 else 0.0
    return math.sqrt(explained) if explained > 0.0 else 0.0


def evidence_of_others(foreseen: Forecast, behind: float, price: float) -> float:
    """How unlikely it is that a new cell makes up for what it seems to be `behind`: by reward, by cost, or by both."""
    evidence = math.inf
    if foreseen.reward_variance > 0.0:
        evidence = 0.5 * behind * behind / foreseen.reward_variance
    unit = price * foreseen.cost
    if behind < unit and foreseen.log_cost_variance > 0.0 and evidence > 0.0:
        logarithm = math.log(1.0 - behind / unit)  # of the share of the cost that must be left
        by_cost = 0.5 * logarithm * logarithm / foreseen.log_cost_variance
        evidence = 1.0 / (1.0 / evidence + 1.0 / by_cost) if by_cost > 0.0 else 0.0  # exact for small shares
    return min(TAIL * math.log(1.0 + evidence / TAIL), HEARSAY)


def natural_log(number: float) -> float:
    """By arithmetic alone: other machines must come to the same bits."""
    mantissa, exponent = math.frexp(number)
    if mantissa < SQRT_HALF:
        mantissa, exponent = 2.0 * mantissa, exponent - 1
    ratio = (mantissa - 1.0) / (mantissa + 1.0)  # ln x = 2 artanh((x − 1)/(x + 1))
    square, term, series = ratio * ratio, 2.0 * ratio, 0.0
    for odd in range(1, 18, 2):
        series += term / odd
        term *= square
    return exponent * LOG_2 + series
