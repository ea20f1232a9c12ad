"""What a forest had to say about a task, and which features it splits by, for people to read.

Down every tree, each split changes what is foretold of an option. What the splits by a feature changed in favour of the
option that was taken, over the usual one, is the feature's part; the parts of all splits add up to the whole.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from worthwhile.learning import Moments
from worthwhile.policies.failures import Failures
from worthwhile.policies.features import CATEGORY, CHOICE, NOTHING, TRY, ByFeatures, Condition, FeaturesSoFar
from worthwhile.policies.forest import (
    KIND,
    SHRINKAGE,
    TREES,
    Forest,
    Leaves,
    Rows,
    Trees,
    gate,
    gate_overall,
    leaves_of,
    local_of,
)
from worthwhile.policies.near import best_here, can_lead, leader, worth_here
from worthwhile.rng import Rng
from worthwhile.state import Floats, Indices

MOST_NAMED = 3  # features
LEAST_PART = 0.25  # of what the condition did that mattered most: what did less is not named
LOOKED_AT = 256  # reports, for texts that come once
ABOVE, UP_TO, EQUAL, IS_MISSING, IS_KNOWN, UNNAMED = "above", "up to", "equal", "missing", "known", ""


class Step(NamedTuple):
    """A split that a task passed, and what it changed in favour of the option that was taken."""

    feature: int
    side: str
    value: float
    part: float


def what_mattered(
    arms: Moments, failures: Failures, forest: Forest, price: float, weight: float, kind: int,
    features: Floats, options: Indices, overall: int, taken: int, rng: Rng,
) -> ByFeatures:  # fmt: skip
    """Why an option was taken for a task; `overall` is the one that would have been, whatever its features."""
    usual = leader(arms, failures, kind, options, price)
    if usual < 0 or len(options) == 1 or forest.making.made[0] < TREES or arms.pulls[kind, taken] == 0.0:
        return ByFeatures(NOTHING, usual, (), 0.0, 0.0, 0.0)
    leaves = leaves_of(forest, kind, features)
    near = local_of(forest, leaves, taken, weight)
    mine, others = (
        expected_here(arms, failures, forest, leaves, price, weight, kind, option) for option in (taken, usual)
    )
    gain = mine - others
    told = ByFeatures(NOTHING, usual, (), near.reports, gain, float(gate_overall(forest.gates, weight)))
    best = int(best_here(arms, failures, forest, leaves, price, weight, kind, options, -1).option)
    if taken != best:  # by the index, or at random
        return told if taken == overall else told._replace(effect=TRY)
    if taken == usual:
        return told
    steps = list(steps_to(forest, leaves, price, weight, kind, features, taken, usual))
    return told._replace(effect=CHOICE, conditions=conditions_of(steps))


def expected_here(
    arms: Moments, failures: Failures, forest: Forest, leaves: Leaves, price: float, weight: float,
    kind: int, option: int,
) -> float:  # fmt: skip
    """R − θC that is expected of an option near a task, by forecasts as far as they proved true."""
    trusted = gate(forest.gates, kind, option, weight)
    near = local_of(forest, leaves, option, weight)
    return float(worth_here(arms, failures, forest, near, trusted, price, kind, option))


def beyond_usual(
    arms: Moments, failures: Failures, forest: Forest, price: float, weight: float, kind: int, features: Floats
) -> list[float]:
    """What is expected of every option beyond the usual one; one that nobody knows counts as that."""
    every = range(arms.pulls.shape[1])
    usual = leader(arms, failures, kind, every, price)
    if usual < 0 or forest.making.made[0] < TREES:
        return []
    leaves = leaves_of(forest, kind, features)

    def worth(option: int) -> float:
        known = option if can_lead(arms, failures, kind, option) else usual
        return expected_here(arms, failures, forest, leaves, price, weight, kind, known)

    least = worth(usual)
    return [worth(option) - least for option in every]


def steps_to(
    forest: Forest, leaves: Leaves, price: float, weight: float, kind: int, features: Floats, taken: int, usual: int
) -> Iterator[Step]:
    """All splits that a task passes, tree by tree; the kind is no feature, and has no name."""
    trees = forest.trees
    believed, of_usual = (gate(forest.gates, kind, option, weight) for option in (taken, usual))
    for leaf in leaves:
        path = path_to(trees, leaf)
        mine, others = (worth_down(trees, path, option, price, weight) for option in (taken, usual))
        beyond = [believed * one - of_usual * other for one, other in zip(mine, others, strict=True)]
        for node, (before, after) in zip(path, pairwise(beyond), strict=False):
            feature, value = int(trees.feature[node]), float(trees.value[node])
            side = UNNAMED if feature == KIND else side_of(float(features[feature]), value)
            yield Step(feature, side, value, (after - before) / len(leaves))


def path_to(trees: Trees, leaf: int) -> list[int]:
    """The nodes from a root to a leaf."""
    path = [int(leaf)]
    while trees.parent[path[0]] >= 0:
        path.insert(0, int(trees.parent[path[0]]))
    return path


def worth_down(trees: Trees, path: Sequence[int], option: int, price: float, weight: float) -> list[float]:
    """R − θC beyond the mean that is foretold of an option in every node of a path."""
    worth, shrinkage = [0.0], SHRINKAGE * weight  # the root knows nothing but the mean
    for node in path[1:]:
        beyond = trees.reward[node, option] - price * trees.cost[node, option]
        worth.append((beyond + shrinkage * worth[-1]) / (trees.weight[node, option] + shrinkage))
    return worth


def side_of(number: float, value: float) -> str:
    """On which side of a split a task is, as far as there are words for it: other texts than its own are not known."""
    if math.isnan(number):
        return IS_MISSING
    if math.isnan(value):
        return IS_KNOWN
    if value >= CATEGORY or number >= CATEGORY:
        return EQUAL if number == value else UNNAMED
    return UP_TO if number <= value else ABOVE


def conditions_of(steps: Sequence[Step]) -> tuple[Condition, ...]:
    """What did most, feature by feature: at most MOST_NAMED of them, each bound where its largest step was."""
    sides: dict[tuple[int, str], list[Step]] = {}
    for step in steps:
        if step.side != UNNAMED:
            sides.setdefault((step.feature, step.side), []).append(step)
    parts = {side: sum(step.part for step in passed) for side, passed in sides.items()}
    least = LEAST_PART * max(parts.values(), default=0.0)
    named: dict[int, Condition] = {}
    for feature, side in sorted(parts, key=parts.__getitem__, reverse=True):
        if parts[feature, side] > 0.0 and parts[feature, side] >= least:
            largest = max(sides[feature, side], key=lambda step: step.part)
            named[feature] = with_side(named.get(feature, Condition(feature)), side, largest.value)
    return tuple(named.values())[:MOST_NAMED]


def with_side(condition: Condition, side: str, value: float) -> Condition:
    """A condition and one more on the same feature."""
    if side == ABOVE:
        return condition._replace(above=value)
    if side == UP_TO:
        return condition._replace(up_to=value)
    return condition._replace(equal=True) if side == EQUAL else condition._replace(missing=side == IS_MISSING)


def so_far(forest: Forest, weight: float) -> FeaturesSoFar:
    """Which features splits are by, how far forecasts are believed, and which texts never come again."""
    known = int(forest.rows.known[0])
    importance = tuple(map(float, forest.gates.importance[:known]))
    different = tuple(came_once(forest.rows, feature) for feature in range(known))
    return FeaturesSoFar(importance, float(gate_overall(forest.gates, weight)), different)


def came_once(rows: Rows, feature: int) -> float:
    """Of the texts in some of the reports, the share that is different; 0 if there are too few to tell."""
    used = int(rows.used[0])
    numbers = rows.features[: used : max(1, used // LOOKED_AT), feature]
    texts = numbers[numbers >= CATEGORY]
    return len(np.unique(texts)) / len(texts) if 2 * len(texts) >= LOOKED_AT else 0.0
