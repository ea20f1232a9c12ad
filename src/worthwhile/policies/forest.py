"""What features of a task tell about an option, beyond what it does on average: a forest, and how far it is trusted.

Regression trees on the latest reports of every option, made anew one after the other, a little work at every report.
docs/policies.md has the formulas.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from worthwhile.policies.features import CATEGORY
from worthwhile.state import Floats

TREES = 8
NODES = 512  # of a tree, at most
MOST_OPTIONS = 1024  # that features are looked at for, the first; nodes take 150 KB for each
ROWS = 4096  # reports that trees are made from, at most
FIRST_ROWS = 40  # before the first tree
SHRINKAGE = 3.0  # κ: a node is worth so many reports less than it has; what is above it makes up for them
GATE_PRIOR = 1.5  # reports of an option that the gate of all options is worth
RECENT = 1000.0  # tasks of a kind that say what choices by features earn
MOST_TIMES = 10.0  # how far off a cost may be foretold
LEAST_SUCCESS = 0.1  # the chance that a task is completed is never foretold to be less
BEYOND_REASON = 2.0**900  # the score of a forecast that is so far off says nothing, and must not be summed up
LEAF = -1
KIND = 1 << 20  # in place of a feature: the kind, as a category
STARTING, SPLITTING, FILLING = 1, 2, 3  # phases of growing a tree; 0 between two of them

Whole = npt.NDArray[np.int64]


class Rows(NamedTuple):
    """The latest reports of every option; when it is full, the option with the most gives up its oldest."""

    features: Floats  # (rows, features)
    kind: Whole  # (rows,)
    option: Whole
    reward: Floats  # a failure counts as 0
    cost: Floats
    failed: Floats  # 1 if it did, else 0
    weight: Floats
    following: Whole  # (rows,): the next younger row of the same option
    oldest: Whole  # (options,)
    youngest: Whole
    number: Whole  # (options,): of rows
    used: Whole  # (1,)
    seen: Whole  # (1,): reports with features so far
    known: Whole  # (1,): features that any of them had, counted from the first


class Trees(NamedTuple):
    """Nodes of all trees and of the one being made; tree t has nodes t·NODES, …, its root first."""

    feature: Whole  # (nodes,): what splits a node; LEAF if nothing does
    value: Floats  # a number: up to it is left; a category: that one is left; NaN: what has none is left
    missing_left: npt.NDArray[np.bool_]  # where the feature is missing, if that is not the split
    child: Whole  # the left one; the right one is next to it
    parent: Whole
    weight: Floats  # (nodes, options): of reports
    reward: Floats  # (nodes, options): Σ weight·(R − the option's mean)
    cost: Floats
    failed: Floats


class Making(NamedTuple):
    """The tree that is being made."""

    phase: Whole  # (1,)
    slot: Whole  # (1,): where its nodes are
    made: Whole  # (1,): trees so far
    next_start: Floats  # (1,): after how many reports the next one begins
    rows: Whole  # (1,): that it is made from
    price: Floats  # (1,): θ, when it began
    node: Whole  # (1,): that is to be split next, counted from its root
    nodes: Whole  # (1,): so far
    candidate: Whole  # (1,): the next one, or the next row while it is filled
    best_gain: Floats  # (1,)
    best_feature: Whole  # (1,)
    best_value: Floats  # (1,)
    best_missing_left: npt.NDArray[np.bool_]  # (1,)
    order: Whole  # (rows,): those of a node are side by side
    beyond: Floats  # (rows,): R − θC beyond the mean of the option
    begin: Whole  # (NODES,)
    end: Whole
    depth: Whole
    variance: Floats  # (options,): of R − θC
    counts: Floats  # (options,): of the node that is being split
    totals: Floats
    left_counts: Floats
    left_totals: Floats


class Gates(NamedTuple):
    """How well forecasts came true: slope of what happened beyond the mean on what was foretold beyond it."""

    weight: Floats  # (kinds, options): of reports with features
    reward: Floats  # (kinds, options): their mean, failures counted as 0
    cost: Floats
    failed: Floats
    squares: Floats  # (kinds, options): X = Σ forecast²/variance
    products: Floats  # (kinds, options): Y = Σ forecast·outcome/variance
    all_squares: Floats  # (1,)
    all_products: Floats  # (1,)
    recent: Floats  # (kinds,): tasks with features that have succeeded lately, RECENT at most, with all trees there
    recent_reward: Floats  # (kinds,): what they brought on average
    recent_cost: Floats  # (kinds,): and cost, failures included
    importance: Floats  # (features,): gain of all splits by it beyond chance; for people


class Forest(NamedTuple):
    """All that is learned from features; it takes no room as long as no task has any."""

    rows: Rows
    trees: Trees
    making: Making
    gates: Gates
    ahead_reward: Floats  # (1,): what trees foretold of the task that is learned from next, beyond the mean
    ahead_cost: Floats  # (1,): the same of its cost, as so many times the mean


def new_forest(kinds: int, options: int, features: int) -> Forest:
    """No report yet."""
    rows = ROWS if features else 0
    nodes, own = ((TREES + 1) * NODES, NODES) if features else (0, 0)
    options = min(options, MOST_OPTIONS) if features else 0
    kinds = kinds if features else 0

    def whole(size: int) -> Whole:
        return np.zeros(size, np.int64)

    def real(*size: int) -> Floats:
        return np.zeros(size)

    table = np.full((rows, features), np.nan)
    kept = Rows(
        table, whole(rows), whole(rows), real(rows), real(rows), real(rows), real(rows), whole(rows),
        whole(options), whole(options), whole(options), whole(1), whole(1), whole(1),
    )  # fmt: skip
    trees = Trees(
        np.full(nodes, LEAF), real(nodes), np.zeros(nodes, np.bool_), whole(nodes), whole(nodes),
        real(nodes, options), real(nodes, options), real(nodes, options), real(nodes, options),
    )  # fmt: skip
    making = Making(
        whole(1), whole(1), whole(1), np.full(1, float(FIRST_ROWS)), whole(1), real(1), whole(1), whole(1), whole(1),
        real(1), whole(1), real(1), np.zeros(1, np.bool_), whole(rows), real(rows), whole(own), whole(own), whole(own),
        real(options), real(options), real(options), real(options), real(options),
    )  # fmt: skip
    gates = Gates(
        real(kinds, options), real(kinds, options), real(kinds, options), real(kinds, options), real(kinds, options),
        real(kinds, options), real(1), real(1), real(kinds), real(kinds), real(kinds), real(features),
    )  # fmt: skip
    return Forest(kept, trees, making, gates, real(1), np.ones(1))


def goes_left(number: float, value: float, missing_left: bool) -> bool:
    """Which way a feature's number goes at a split."""
    if math.isnan(value):
        return math.isnan(number)
    if math.isnan(number):
        return missing_left
    return number == value if value >= CATEGORY else number <= value


def kind_number(kind: int) -> float:
    """The kind as if it were a category."""
    return CATEGORY * (1.0 + kind * 2.0**-32)


def feature_of(rows: Rows, row: int, feature: int) -> float:
    """A feature of a report."""
    number: float = kind_number(rows.kind[row]) if feature == KIND else rows.features[row, feature]
    return number


def leaf_of_row(trees: Trees, rows: Rows, tree: int, row: int) -> int:
    """Where a report ends up in a tree."""
    node = tree * NODES
    while trees.feature[node] >= 0:
        left = goes_left(feature_of(rows, row, trees.feature[node]), trees.value[node], trees.missing_left[node])
        node = trees.child[node] + (0 if left else 1)
    return node


def leaf_of(trees: Trees, tree: int, kind: int, features: Floats) -> int:
    """Where a task ends up in a tree."""
    node = tree * NODES
    while trees.feature[node] >= 0:
        feature = trees.feature[node]
        number = kind_number(kind) if feature == KIND else features[feature]
        left = goes_left(number, trees.value[node], trees.missing_left[node])
        node = trees.child[node] + (0 if left else 1)
    return node


Leaves = tuple[int, int, int, int, int, int, int, int]  # one per tree; that of the tree being made is left out


def leaves_of(forest: Forest, kind: int, features: Floats) -> Leaves:
    """Where a task ends up in every tree."""
    trees, slot = forest.trees, int(forest.making.slot[0])
    return (
        leaf_of(trees, (slot + 1) % 9, kind, features), leaf_of(trees, (slot + 2) % 9, kind, features),
        leaf_of(trees, (slot + 3) % 9, kind, features), leaf_of(trees, (slot + 4) % 9, kind, features),
        leaf_of(trees, (slot + 5) % 9, kind, features), leaf_of(trees, (slot + 6) % 9, kind, features),
        leaf_of(trees, (slot + 7) % 9, kind, features), leaf_of(trees, (slot + 8) % 9, kind, features),
    )  # fmt: skip


class Local(NamedTuple):
    """What trees say of an option near a task, beyond its mean: reward, cost, failures, and from how many reports."""

    reward: float
    cost: float
    failed: float
    reports: float


def local_of(forest: Forest, leaves: Leaves, option: int, weight: float) -> Local:
    """Means down the path to each leaf, each shrunk towards the one above it, then the mean of all trees."""
    trees, shrinkage = forest.trees, SHRINKAGE * weight
    reward, cost, failed, reports = 0.0, 0.0, 0.0, 0.0
    if not is_looked_at(forest.gates, option):
        return Local(reward, cost, failed, reports)
    made = min(int(forest.making.made[0]), TREES)
    for tree in range(TREES - made, TREES):
        node, share = leaves[tree], 1.0
        reports += trees.weight[node, option] / weight
        while trees.parent[node] >= 0:  # the root knows nothing but the mean
            own = trees.weight[node, option]
            if own > 0.0:
                share /= own + shrinkage
                reward += share * trees.reward[node, option]
                cost += share * trees.cost[node, option]
                failed += share * trees.failed[node, option]
                share *= shrinkage
            node = trees.parent[node]
    return Local(reward / made, cost / made, failed / made, reports / made)


def is_looked_at(gates: Gates, option: int) -> bool:
    """Whether features say something of an option; those beyond MOST_OPTIONS are judged overall."""
    return bool(option < gates.weight.shape[1])


def success(gates: Gates, kind: int, option: int, beyond: float) -> float:
    """The chance that a task is completed, where that of a failure is so far beyond its mean."""
    if not is_looked_at(gates, option):
        return 1.0
    return min(1.0, max(LEAST_SUCCESS, 1.0 - float(gates.failed[kind, option]) - beyond))


def gate(gates: Gates, kind: int, option: int, weight: float) -> float:
    """How much of what is foretold about an option can be believed, from 0 to 1."""
    if not is_looked_at(gates, option):
        return 0.0
    overall, squares = gate_overall(gates, weight), gates.squares[kind, option] / weight
    doubt = math.sqrt(squares) * squares / (squares + GATE_PRIOR)
    return clipped((gates.products[kind, option] / weight + GATE_PRIOR * overall - doubt) / (squares + GATE_PRIOR))


def gate_overall(gates: Gates, weight: float) -> float:
    """The same of all options together."""
    squares = gates.all_squares[0] / weight
    return clipped((gates.all_products[0] / weight - math.sqrt(squares)) / (squares + 1.0))


def clipped(number: float) -> float:
    return min(1.0, max(0.0, number))


def score_forecast(
    gates: Gates, near: Local, kind: int, option: int, reward: float, cost: float,
    price: float, variance: float, weight: float,
) -> None:  # fmt: skip
    """How what happened compares with what trees foretold of it."""
    if gates.weight[kind, option] <= weight or not variance > 0.0:
        return
    foretold = near.reward - price * near.cost
    happened = (reward - gates.reward[kind, option]) - price * (cost - gates.cost[kind, option])
    squares, products = weight * foretold * foretold / variance, weight * foretold * happened / variance
    if not (squares < BEYOND_REASON and abs(products) < BEYOND_REASON):  # NaN, too
        return
    gates.squares[kind, option] += squares
    gates.products[kind, option] += products
    gates.all_squares[0] += squares
    gates.all_products[0] += products


def take_in_recent(gates: Gates, kind: int, reward: float, cost: float, failed: bool) -> None:
    """What is earned with choices by features, over the latest tasks of a kind."""
    if not failed:
        gates.recent[kind] = min(RECENT, gates.recent[kind] + 1.0)
        gates.recent_reward[kind] += (reward - gates.recent_reward[kind]) / gates.recent[kind]
        gates.recent_cost[kind] += (cost - gates.recent_cost[kind]) / gates.recent[kind]
    elif gates.recent[kind] > 0.0:
        gates.recent_cost[kind] += cost / gates.recent[kind]


def take_in_report(
    forest: Forest, near: Local, trusted: float, kind: int, features: Floats, option: int,
    reward: float, cost: float, failed: float, weight: float,
) -> None:  # fmt: skip
    """One more report: kept, and added to every tree. What trees foretold of it is taken off before its mean is."""
    gates, making, arm = forest.gates, forest.making, (kind, option)
    row, mean = keep(forest.rows, kind, features, option, reward, cost, failed, weight), gates.cost[arm]
    ahead_reward, ahead_failed = trusted * near.reward, trusted * near.failed
    times = 1.0 + trusted * near.cost / mean if mean > 0.0 else 1.0
    ahead_of_completed(forest, kind, option, ahead_reward, times, ahead_failed)
    gates.weight[arm] += weight
    share = weight / gates.weight[arm]
    gates.reward[arm] += share * (reward - ahead_reward - gates.reward[arm])
    gates.cost[arm] += share * (cost / bounded(times) - gates.cost[arm])
    gates.failed[arm] += share * (failed - ahead_failed - gates.failed[arm])
    slot = int(making.slot[0])
    for back in range(1, min(int(making.made[0]), TREES) + 1):
        add_to_tree(forest, (slot - back) % (TREES + 1), row)
    if making.phase[0] == FILLING and row < making.candidate[0]:
        add_to_tree(forest, slot, row)


def bounded(times: float) -> float:
    return max(1.0 / MOST_TIMES, min(MOST_TIMES, times))


def ahead_of_completed(forest: Forest, kind: int, option: int, reward: float, times: float, failed: float) -> None:
    """What was foretold of a report, as what is foretold of a completed task, which pays for failures before it."""
    gates = forest.gates
    usual, here = success(gates, kind, option, 0.0), success(gates, kind, option, failed)
    forest.ahead_reward[0] = (reward + gates.reward[kind, option] / usual * (usual - here)) / here
    forest.ahead_cost[0] = bounded(times * usual / here)


def keep(
    rows: Rows, kind: int, features: Floats, option: int, reward: float, cost: float, failed: float, weight: float
) -> int:
    """Put a report where there is room, or in place of the oldest one of the option that has most."""
    row = int(rows.used[0])
    if row < ROWS:
        rows.used[0] += 1
    else:
        most = 0
        for other in range(rows.number.shape[0]):
            most = other if rows.number[other] > rows.number[most] else most
        row = int(rows.oldest[most])
        rows.oldest[most] = rows.following[row]
        rows.number[most] -= 1
    if rows.number[option] == 0:
        rows.oldest[option] = row
    else:
        rows.following[rows.youngest[option]] = row
    rows.youngest[option] = row
    rows.number[option] += 1
    rows.kind[row], rows.option[row] = kind, option
    rows.reward[row], rows.cost[row], rows.failed[row], rows.weight[row] = reward, cost, failed, weight
    for feature in range(rows.features.shape[1]):
        number = features[feature]
        rows.features[row, feature] = number
        if not math.isnan(number) and feature >= rows.known[0]:
            rows.known[0] = feature + 1
    rows.seen[0] += 1
    return row


def add_to_tree(forest: Forest, tree: int, row: int) -> None:
    """Count a report in every node that it passes."""
    rows, trees, gates = forest.rows, forest.trees, forest.gates
    kind, option, weight = rows.kind[row], rows.option[row], rows.weight[row]
    reward, cost = rows.reward[row] - gates.reward[kind, option], rows.cost[row] - gates.cost[kind, option]
    failed = rows.failed[row] - gates.failed[kind, option]
    node = leaf_of_row(trees, rows, tree, row)
    while node >= 0:
        trees.weight[node, option] += weight
        trees.reward[node, option] += weight * reward
        trees.cost[node, option] += weight * cost
        trees.failed[node, option] += weight * failed
        node = trees.parent[node]


def scale_forest(forest: Forest, scale: float) -> None:
    """Everything that is weighed weighs `scale` times as much."""
    rows, trees, gates = forest.rows, forest.trees, forest.gates
    for row in range(rows.weight.shape[0]):
        rows.weight[row] *= scale
    for node in range(trees.weight.shape[0]):
        for option in range(trees.weight.shape[1]):
            trees.weight[node, option] *= scale
            trees.reward[node, option] *= scale
            trees.cost[node, option] *= scale
            trees.failed[node, option] *= scale
    for kind in range(gates.weight.shape[0]):
        for option in range(gates.weight.shape[1]):
            gates.weight[kind, option] *= scale
            gates.squares[kind, option] *= scale
            gates.products[kind, option] *= scale
    gates.all_squares[0] *= scale
    gates.all_products[0] *= scale
