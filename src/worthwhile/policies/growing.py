"""How trees grow: one at a time, a little at every report, from random draws that anybody can repeat."""

from __future__ import annotations

import math

from worthwhile.policies.forest import (
    FILLING,
    KIND,
    LEAF,
    NODES,
    ROWS,
    SHRINKAGE,
    SPLITTING,
    STARTING,
    TREES,
    Forest,
    Gates,
    Making,
    Rows,
    Trees,
    add_to_tree,
    feature_of,
    goes_left,
    kind_number,
)
from worthwhile.rng import Rng, bits

DEEPEST = 10  # splits above a leaf, besides those that part kinds
SMALLEST_LEAF = 5  # reports
CANDIDATES = 20  # splits looked at, per node
LOG_CANDIDATES = 2.995732273553991
MOST_PARTED = 10  # a kind is split off if it has a part like this of the reports
RENEWED = 1.5  # from one time that all trees are made anew to the next, there are so many times as many reports
PRIOR_VARIANCE = 10.0  # an option's variance starts from that of all, worth so many reports
ANY_FEATURE = 8  # of so many candidates, one may be a feature that its report lacks: that may tell, too
WORK = 8000  # reports looked at for the next tree, at every report
TREE_DRAWS = 1 << 31  # random draws of trees are numbered from here; those of tasks are below


def grow_trees(forest: Forest, price: float, seed_key: int) -> None:
    """Go on with the next tree, if one is due, for a while."""
    making, work = forest.making, WORK
    if making.phase[0] == 0 and forest.rows.seen[0] >= making.next_start[0]:
        making.phase[0] = STARTING
    while work > 0 and making.phase[0] > 0:
        if making.phase[0] == STARTING:
            work -= start_tree(forest, price)
        elif making.phase[0] == SPLITTING:
            work -= look_for_split(forest, Rng(seed_key, int(making.made[0])))
        else:
            work -= fill_tree(forest)


def start_tree(forest: Forest, price: float) -> int:
    """All reports are in its root; how much the results of every option vary is found out."""
    rows, gates, making = forest.rows, forest.gates, forest.making
    used = int(rows.used[0])
    making.rows[0], making.price[0] = used, price
    pooled, variance, count = 0.0, making.variance, making.counts
    for option in range(variance.shape[0]):
        variance[option] = count[option] = 0.0
    for row in range(used):
        making.order[row] = row
        option = rows.option[row]
        beyond = worth_beyond_mean(rows, gates, row, price)
        making.beyond[row] = beyond
        pooled += beyond * beyond / used
        variance[option] += beyond * beyond
        count[option] += 1.0
    for option in range(variance.shape[0]):
        if count[option] > 0.0:  # else it stays 0, as where there is no room for it yet
            variance[option] = (variance[option] + PRIOR_VARIANCE * pooled) / (count[option] + PRIOR_VARIANCE)
    making.begin[0], making.end[0], making.depth[0] = 0, used, 0
    making.node[0], making.nodes[0], making.candidate[0], making.best_gain[0] = 0, 1, 0, 0.0
    new_node(forest.trees, int(making.slot[0]) * NODES, -1)
    making.phase[0] = SPLITTING
    return used


def worth_beyond_mean(rows: Rows, gates: Gates, row: int, price: float) -> float:
    """R − θC of a report beyond the mean of its option."""
    arm = rows.kind[row], rows.option[row]
    beyond: float = (rows.reward[row] - gates.reward[arm]) - price * (rows.cost[row] - gates.cost[arm])
    return beyond


def new_node(trees: Trees, node: int, parent: int) -> None:
    """A leaf without reports."""
    trees.feature[node], trees.parent[node] = LEAF, parent
    for option in range(trees.weight.shape[1]):
        trees.weight[node, option] = trees.failed[node, option] = 0.0
        trees.reward[node, option] = trees.cost[node, option] = 0.0


def look_for_split(forest: Forest, rng: Rng) -> int:
    """Look at one more candidate, or after the last one split the node by the best."""
    making, node = forest.making, int(forest.making.node[0])
    if node == making.nodes[0]:
        making.phase[0], making.candidate[0] = FILLING, 0
        return 1
    number = int(making.end[node] - making.begin[node])
    full = making.nodes[0] + 2 > NODES or making.depth[node] == DEEPEST or number < 2 * SMALLEST_LEAF
    if full or making.candidate[0] == CANDIDATES:
        if not full and making.best_gain[0] > 0.0:
            split(forest, 1)
        next_node(making)
        return number
    if making.candidate[0] == 0:
        count_node(forest, node)
        if parts_kinds(forest, node, rng):
            split(forest, 0)
            next_node(making)
            return 2 * number
    look_at_candidate(forest, node, rng)
    making.candidate[0] += 1
    return number


def next_node(making: Making) -> None:
    """Nothing is known yet of how to split it."""
    making.node[0] += 1
    making.candidate[0], making.best_gain[0] = 0, 0.0


def parts_kinds(forest: Forest, node: int, rng: Rng) -> bool:
    """Whether a kind of many reports shares no option with the others here. To split it off costs nothing: every option
    keeps all its reports, and what tells them apart in one kind need not be looked for among those of the others."""
    rows, making = forest.rows, forest.making
    begin, end, counts, number = int(making.begin[node]), int(making.end[node]), making.left_counts, 0
    _, second = bits(rng, TREE_DRAWS + node * CANDIDATES)
    kind = rows.kind[making.order[begin + (second * (end - begin) >> 32)]]
    for option in range(counts.shape[0]):
        counts[option] = 0.0
    for position in range(begin, end):
        row = making.order[position]
        if rows.kind[row] == kind:
            number += 1
            counts[rows.option[row]] += 1.0
    if not max(SMALLEST_LEAF, (end - begin) // MOST_PARTED) <= number <= end - begin - SMALLEST_LEAF:
        return False
    for option in range(counts.shape[0]):
        if 0.0 < counts[option] < making.counts[option]:
            return False
    making.best_feature[0], making.best_value[0], making.best_missing_left[0] = KIND, kind_number(kind), False
    return True


def count_node(forest: Forest, node: int) -> None:
    """Reports and sums of every option in a node."""
    rows, making = forest.rows, forest.making
    for option in range(making.counts.shape[0]):
        making.counts[option] = making.totals[option] = 0.0
    for position in range(making.begin[node], making.end[node]):
        row = making.order[position]
        making.counts[rows.option[row]] += 1.0
        making.totals[rows.option[row]] += making.beyond[row]


def look_at_candidate(forest: Forest, node: int, rng: Rng) -> None:
    """A random report of the node, and a random feature that it has: split there."""
    rows, making = forest.rows, forest.making
    order, beyond, options, table = making.order, making.beyond, rows.option, rows.features
    left_counts, left_totals = making.left_counts, making.left_totals
    begin, end, known = int(making.begin[node]), int(making.end[node]), int(rows.known[0])
    first, second = bits(rng, TREE_DRAWS + node * CANDIDATES + int(making.candidate[0]))
    model = int(order[begin + (second * (end - begin) >> 32)])
    feature = first * (known + 1) >> 32
    if feature == known or (first >> 1) % ANY_FEATURE != 0:
        feature = feature_with_value(rows, model, feature, second)
    value, missing_left = feature_of(rows, model, feature), bool(first & 1)
    for option in range(left_counts.shape[0]):
        left_counts[option] = left_totals[option] = 0.0
    number = 0
    for position in range(begin, end):
        row = order[position]
        mine = kind_number(rows.kind[row]) if feature == KIND else table[row, feature]
        if goes_left(mine, value, missing_left):
            number += 1
            left_counts[options[row]] += 1.0
            left_totals[options[row]] += beyond[row]
    if SMALLEST_LEAF <= number <= end - begin - SMALLEST_LEAF:
        gain = gain_of_split(making)
        if gain > making.best_gain[0]:
            making.best_gain[0], making.best_feature[0] = gain, feature
            making.best_value[0], making.best_missing_left[0] = value, missing_left


def feature_with_value(rows: Rows, row: int, start: int, draw: int) -> int:
    """The first feature that a report has from `start` on, in steps of a random length: each is about as likely.

    Its kind, which it always has, counts as one. Odd steps around a power of two reach every place.
    """
    known, places, step = int(rows.known[0]), 1, draw | 1
    while places <= known:
        places *= 2
    while start != known and (start > known or math.isnan(rows.features[row, start])):
        start = (start + step) % places
    return KIND if start == known else start


def gain_of_split(making: Making) -> float:
    """How far apart the options' means are on both sides, in units of their variance."""
    gain = 0.0
    for option in range(making.counts.shape[0]):
        count, left = making.counts[option], making.left_counts[option]
        if left > 0.0 and left < count and making.variance[option] > 0.0:
            beyond = making.left_totals[option] - making.totals[option] * left / count
            both = 1.0 / (left + SHRINKAGE) + 1.0 / (count - left + SHRINKAGE)
            gain += beyond * beyond / making.variance[option] * both
    return gain


def more_than_chance(making: Making, gain: float) -> float:
    """What is left of a gain after that of the best of CANDIDATES splits by a feature that says nothing: a bound."""
    options = 0.0
    for option in range(making.counts.shape[0]):
        options += making.counts[option] > 0.0
    return max(0.0, gain - options - 2.0 * math.sqrt(options * LOG_CANDIDATES) - 2.0 * LOG_CANDIDATES)


def split(forest: Forest, deeper: int) -> None:
    """Two new nodes below the one at hand; its reports are put in order."""
    rows, trees, making, own = forest.rows, forest.trees, forest.making, int(forest.making.node[0])
    first = int(making.slot[0]) * NODES
    node, left, feature = first + own, int(making.nodes[0]), int(making.best_feature[0])
    value, missing_left = making.best_value[0], bool(making.best_missing_left[0])
    trees.feature[node], trees.value[node], trees.missing_left[node] = feature, value, missing_left
    trees.child[node] = first + left
    border = int(making.begin[own])
    for position in range(making.begin[own], making.end[own]):
        row = making.order[position]
        if goes_left(feature_of(rows, row, feature), value, missing_left):
            making.order[position], making.order[border] = making.order[border], row
            border += 1
    making.begin[left], making.end[left] = making.begin[own], border
    making.begin[left + 1], making.end[left + 1] = border, making.end[own]
    for side in range(left, left + 2):
        making.depth[side] = making.depth[own] + deeper
        new_node(trees, first + side, node)
    making.nodes[0] += 2
    if feature != KIND:
        forest.gates.importance[feature] += more_than_chance(making, float(making.best_gain[0]))


def fill_tree(forest: Forest) -> int:
    """Count the next report in its nodes; after the last one the tree is made, and takes the place of the oldest."""
    making = forest.making
    if making.candidate[0] < forest.rows.used[0]:
        add_to_tree(forest, int(making.slot[0]), int(making.candidate[0]))
        making.candidate[0] += 1
        return DEEPEST
    making.made[0] += 1
    making.slot[0] = (making.slot[0] + 1) % (TREES + 1)
    making.phase[0] = 0
    if making.made[0] >= TREES:
        made_from = float(min(making.rows[0], ROWS))
        making.next_start[0] = forest.rows.seen[0] + (RENEWED - 1.0) / TREES * made_from
    return DEEPEST
