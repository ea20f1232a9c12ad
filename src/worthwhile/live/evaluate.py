"""What would another rule have earned on this log? Seen where the log shows it, weighted where chance allows it, else
from the options' means, and labelled as such; never without a range, and *cannot be told* where too little is known.

For a task and an option g, with m the mean of g for the kind so far, the value is

    what was seen                  if the task took g, or showed it on the side, and would have for every task
    m + 1{took g}/p · (x − m)      if the task could take g, with a known probability p > 0 (doubly robust)
    m                              otherwise: the model

for the reward and for the cost. A rule's ratio is that of both averages (docs/proof.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from worthwhile.errors import BadParameter, did_you_mean
from worthwhile.formatting import shown
from worthwhile.learning import UNKNOWN, Sums, one_more
from worthwhile.live.engines import engine_of, offer_of
from worthwhile.live.log_statistics import cautious_errors
from worthwhile.live.logged import Log, Logged, read
from worthwhile.live.rules import MATTERS
from worthwhile.live.totals import Folded, new_totals, no_features
from worthwhile.live.transactor import Transactor
from worthwhile.live.validation import as_option, option_text
from worthwhile.policies.base import Policy
from worthwhile.policies.registry import make
from worthwhile.proof.confidence import FIRST, HANDFUL, sequence, student
from worthwhile.state import empty

RULES = "always:OPTION, baseline, greedy, random"
SEEN, WEIGHTED, MODEL, UNTOLD = "seen", "weighted", "model", "cannot be told"
LABELS = {
    SEEN: "the log shows it for every task",
    WEIGHTED: "weighted by how likely the log's options were (doubly robust)",
    MODEL: "from the options' means, which nobody checked: an estimate",
    UNTOLD: "too few reports to tell",
}
NEARLY = 0.95  # of the tasks: as good as all

Arm = tuple[int, int]
Pair = tuple[float, float]  # reward and cost


@dataclass(frozen=True)
class Evaluation:
    """What a rule would have earned per cost, from `low` to `high` (95 %), and what that rests on."""

    rule: str
    ratio: float | None  # None if it cannot be told
    low: float | None
    high: float | None
    method: str  # seen, weighted, model, cannot be told
    says: str  # all of it in a line
    tasks: int  # of the log, for which the rule has an option
    known: float  # share of them whose outcome was seen, or could be weighted
    achieved: float | None  # on the same tasks, with what they took

    def __str__(self) -> str:
        return self.says


def evaluate(transactor: Transactor, rule: str | None, policy: str | Policy | None) -> Evaluation:
    """What a rule, or a policy, would have earned on the log."""
    if (rule is None) == (policy is None):
        raise BadParameter("give a rule or a policy, one of both")
    log = read(transactor)
    if policy is not None:
        made = make(policy, options=[text.strip('"') for text in log.texts]) if isinstance(policy, str) else policy
        name = policy if isinstance(policy, str) else type(policy).__name__
        return judged(f"policy {name}", log, Replayed(made, log).choice)
    name, choice = choice_of(str(rule), log)
    return judged(name, log, choice)


Choice = Callable[[Logged], Mapping[int, float]]  # how often a rule takes each option; nothing if it has none


def choice_of(rule: str, log: Log) -> tuple[str, Choice]:
    """A rule by its name."""
    word, colon, rest = rule.partition(":")
    if word == "always" and colon:
        text = option_text(as_option(rest))
        if text not in log.texts:
            hint = did_you_mean(rest, [shown(option) for option in log.options])
            raise BadParameter(f"rule {rule!r}: no option {rest!r} in this log; {hint}")
        number = log.texts.index(text)
        return f"always {shown(log.options[number])}", lambda task: {number: 1.0} if number in task.options else {}
    if rule == "random":
        return "any option, equally often", lambda task: dict.fromkeys(task.options, 1.0 / len(task.options))
    if rule == "greedy":
        return "the best reward per cost of each kind", greedy(log)
    if rule == "baseline":
        return "the baseline", baseline(log)
    raise BadParameter(f"rule {rule!r}: there are {RULES}")


def greedy(log: Log) -> Choice:
    """For each kind, the option with the best ratio of means in the log, of those with a handful of results."""
    sums: dict[Arm, Sums] = {}
    for task in log.tasks:
        for option, (reward, cost) in task.seen.items():
            sums[task.kind, option] = one_more(sums.get((task.kind, option), UNKNOWN), reward, cost, 1.0)

    def choice(task: Logged) -> Mapping[int, float]:
        known = {option: sums[task.kind, option] for option in task.options if (task.kind, option) in sums}
        told = {option: each[1] / each[2] for option, each in known.items() if each[0] >= HANDFUL}
        return {max(told, key=told.__getitem__): 1.0} if told else {}

    return choice


def baseline(log: Log) -> Choice:
    """What the settings name."""
    if not log.trial.baseline:
        raise BadParameter("rule 'baseline': this scheduler has none; set one with change(baseline=…)")
    number = {text: place for place, text in enumerate(log.texts)}

    def choice(task: Logged) -> Mapping[int, float]:
        option = number.get(log.trial.usual(log.kinds[task.kind]) or "", -1)
        return {option: 1.0} if option in task.options else {}

    return choice


class Replayed:
    """A policy that goes through the log, and learns from what the log shows of its choices."""

    def __init__(self, policy: Policy, log: Log) -> None:
        size = max(len(log.kinds), 1), max(len(log.options), 1)
        self.engine = engine_of("python", policy, 0)
        self.engine.bind(Folded(new_totals(*size), empty(policy, *size, 0), no_features(*size)))

    def choice(self, task: Logged) -> Mapping[int, float]:
        option, reward, cost = self.engine.choose(offer_of(task.kind, list(task.options)), {}, task.task)
        if int(option) in task.seen:
            self.engine.learn(task.kind, int(option), float(reward), float(cost), *task.seen[int(option)], task.task)
        return {int(option): 1.0}


class Estimator:
    """Reward and cost of the rule's option, task by task, and what they rest on."""

    def __init__(self, weighs: bool = True) -> None:
        self.weighs = weighs  # whether what was taken by chance counts for what was not
        self.means: dict[Arm, Sums] = {}
        self.values: list[tuple[float, float]] = []
        self.before: list[tuple[float, float]] = []  # the same without what is weighted
        self.by_model: dict[Arm, float] = {}  # tasks whose value is the model's
        self.by_chance: dict[Arm, float] = {}  # tasks that were weighted
        self.known = self.shown = 0.0  # tasks; `shown`: it was seen
        self.weights: dict[Arm, float] = {}  # of these, the sum of 1/p

    def add(self, task: Logged, weights: Mapping[int, float]) -> None:
        reward = cost = more_reward = more_cost = 0.0
        for option, weight in weights.items():
            (known_reward, known_cost), over = self.value(task, option, weight)
            reward, cost = reward + weight * known_reward, cost + weight * known_cost
            if over > 0.0 and option == task.option:
                more_reward += weight * over * (task.reward - known_reward)
                more_cost += weight * over * (task.cost - known_cost)
        self.before.append((reward, cost))
        self.values.append((reward + more_reward, cost + more_cost))

    def learn(self, task: Logged) -> None:
        """What the log shows of a task."""
        for option, values in task.seen.items():
            self.means[task.kind, option] = one_more(self.means.get((task.kind, option), UNKNOWN), *values, 1.0)

    def value(self, task: Logged, option: int, weight: float) -> tuple[Pair, float]:
        """What is known of an option for a task, and how much the task's own result weighs if it took that: 1/p."""
        arm = task.kind, option
        _, reward, cost, *_ = self.means.get(arm, UNKNOWN)
        if len(task.seen) == len(task.options) and option in task.seen:
            self.shown += weight
            self.known += weight
            return task.seen[option], 0.0
        if self.weighs and (chance := task.chance(option)) > 0.0:
            self.known += weight
            self.by_chance[arm] = self.by_chance.get(arm, 0.0) + weight
            self.weights[arm] = self.weights.get(arm, 0.0) + weight * weight / chance
            return (reward, cost), 1.0 / chance
        self.by_model[arm] = self.by_model.get(arm, 0.0) + weight
        return (reward, cost), 0.0

    @property
    def results(self) -> float:
        """How many results tell as much as those that were to be expected, by their weights (Kish, 1965)."""
        return sum(self.by_chance.values()) ** 2 / sum(self.weights.values()) if self.weights else 0.0


Choices = list[tuple[Logged, Mapping[int, float]]]  # of a rule


def judged(name: str, log: Log, choice: Choice) -> Evaluation:
    """The rule on all tasks for which it has an option."""
    choices = [(task, weights) for task in log.tasks if (weights := choice(task))]
    reward, cost = (
        math.fsum(values) for values in ([task.reward for task, _ in choices], [t.cost for t, _ in choices])
    )
    tasks, achieved = len(choices), reward / cost if cost > 0.0 else None
    estimator = estimated(choices)
    if estimator.by_chance and rests_on_few(estimator, tasks):
        estimator = estimated(choices, weighs=False)
    known = estimator.known / tasks if tasks else 0.0
    if tasks < FIRST or untold(estimator, tasks) > MATTERS:
        return told(name, None, UNTOLD, tasks, known, achieved)
    method = SEEN if estimator.shown >= NEARLY * tasks else WEIGHTED if known >= NEARLY else MODEL
    if method == MODEL:
        estimator = estimated(choices, estimator.weighs, estimator.means)
    return told(name, ranged(estimator), method, tasks, known, achieved)


def estimated(choices: Choices, weighs: bool = True, means: Mapping[Arm, Sums] | None = None) -> Estimator:
    """What the rule brings, task by task; by the means so far or, where those of the whole log are given, by these.

    The first tasks of a log know none.
    """
    estimator = Estimator(weighs)
    estimator.means = dict(means or {})
    for task, weights in choices:
        estimator.add(task, weights)
        if means is None:
            estimator.learn(task)
    return estimator


def rests_on_few(estimator: Estimator, tasks: int) -> bool:
    """Whether too few tasks could be expected to take the rule's option by chance for a weighted mean."""
    few = few_results(estimator, estimator.by_chance)
    return estimator.shown < NEARLY * tasks and (estimator.results < FIRST or few / tasks > MATTERS)


def untold(estimator: Estimator, tasks: int) -> float:
    """The share of tasks whose value is the mean of too few results."""
    return few_results(estimator, estimator.by_model) / tasks


def few_results(estimator: Estimator, counts: Mapping[Arm, float]) -> float:
    """Of these tasks, those whose option has less than a handful of results with the kind."""
    return sum(count for arm, count in counts.items() if estimator.means.get(arm, UNKNOWN)[0] < HANDFUL)


def ranged(estimator: Estimator) -> tuple[float, float, float] | None:
    """The ratio, from … to …: the scatter of tasks, and the errors of the means that stand for many of them."""
    values = np.array(estimator.values)
    count = len(values)
    reward, cost = values.mean(axis=0)
    if cost <= 0.0:
        return None
    ratio = float(reward / cost)
    results = estimator.results if estimator.weights else float(count)
    among = float(np.var(np.array(estimator.before) @ (1.0, -ratio), ddof=1)) * count
    scatter = student(results - 1.0) * math.sqrt(among + weighted_variance(estimator, ratio)) / count
    half = math.hypot(scatter, model_width(estimator, ratio)) / float(cost)
    if ratio == half == 0.0:  # nothing has ever brought anything: nobody knows what a success would
        return None
    return ratio, ratio - half, ratio + half


def weighted_variance(estimator: Estimator, ratio: float) -> float:
    """Of the sum of R − ratio·C that was weighted: σ²/p for every task, also where chance had its option not taken."""
    return sum(
        weight * error * error * estimator.means[arm][0]
        for arm, weight, error in errors(estimator, estimator.weights, ratio)
    )


def model_width(estimator: Estimator, ratio: float) -> float:
    """Of R − ratio·C of a task, by the means in the place of values."""
    tasks = len(estimator.values)
    widths = (
        weight / tasks * sequence(max(estimator.means[arm][0], HANDFUL)) * error
        for arm, weight, error in errors(estimator, estimator.by_model, ratio)
    )
    return math.hypot(*widths)


def errors(estimator: Estimator, weights: Mapping[Arm, float], ratio: float) -> Iterator[tuple[Arm, float, float]]:
    """Kinds and options that matter, with the errors of their means."""
    for kind in {kind for kind, _ in weights}:
        options = [option for each, option in estimator.means if each == kind]
        found = cautious_errors([estimator.means[kind, option] for option in options], ratio)
        for option, error in zip(options, found, strict=True):
            if (weight := weights.get((kind, option), 0.0)) > 0.0 and error > 0.0:
                yield (kind, option), weight, error


def told(
    name: str, found: tuple[float, float, float] | None, method: str, tasks: int, known: float, achieved: float | None
) -> Evaluation:
    if found is None or not all(map(math.isfinite, found)):
        says = f"{name}: cannot be told; {LABELS[UNTOLD]}"
        return Evaluation(name, None, None, None, UNTOLD, says, tasks, known, achieved)
    ratio, low, high = found
    beside = "" if achieved is None else f"; the log has {achieved:.4g}"
    says = f"{name}: {ratio:.4g} ({low:.4g} to {high:.4g}) reward per cost on {tasks:,} tasks, {LABELS[method]}{beside}"
    return Evaluation(name, ratio, low, high, method, says, tasks, known, achieved)
