"""What every policy decides in one short run, kept in tests/golden: whoever changes a policy's decisions is told.

`default.json` holds the default policy, `goals.json` the same with a floor or a budget to keep. When it is changed on
purpose and measured to be better, these are made anew: `python tests/policies/golden.py --write`. `rivals.json` holds
the paper's policies and all others. Their formulas are given, so their numbers stay; the command adds those of policies
that are missing there, no more.

Feedback is made of `random.Random.random()`, which Python promises to keep for a seed, with + − × alone. Choices are
whole numbers, and the totals depend on nothing but them: both are the same on every machine. Prices and estimates may
have logarithms in them, whose last bit is up to the machine's C library: they agree to 1e-12.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from worthwhile.goals.goal import goal_of
from worthwhile.live.engines import Engine, engine_of, offer_of
from worthwhile.live.totals import Folded, new_totals, no_features
from worthwhile.policies.base import Policy, Running, has_goal, known
from worthwhile.policies.features import MISSING, feature_number, room_for
from worthwhile.policies.goal_imed import towards
from worthwhile.policies.registry import DEFAULT, LIST, make
from worthwhile.problem import Problem
from worthwhile.state import Floats, empty, price_in

FOLDER = Path(__file__).parents[1] / "golden"
TASKS, SEED, SEED_KEY = 450, 20240506, 77
LONGEST_DELAY = 6  # tasks
ALONE = 0.75  # the level of the kind that has all options
OBSERVED_EVERY = 9  # tasks, one side observation
PROBLEM = Problem.of(
    {
        "three options": (0.4, {"a": (0.50, 0.50), "b": (0.62, 0.60), "c": (0.30, 0.25)}),
        "two options": (0.3, {"b": (0.55, 0.40), "d": (0.90, 0.85)}),
        "all options": (0.2, {"a": (0.40, 0.50), "b": (0.45, 0.45), "c": (0.20, 0.30), "d": (0.70, 0.90)}),
        "one option": (0.1, {"c": (0.35, 0.30)}),
    }
)


class World(NamedTuple):
    """How wide rewards and costs scatter around their means."""

    reward_width: float
    cost_width: float  # in mean costs: above 2, costs can be negative
    alone: bool = False  # whether all tasks are of one kind
    features: int = 0  # of a task; some are missing


WORLDS = {
    "positive costs": World(0.6, 1.5),
    "some negative costs": World(0.6, 2.6),
    "one kind": World(0.6, 1.5, alone=True),
    "features": World(0.6, 1.5, features=3),
}
FEATURE_WIDTH = 0.8  # how far rewards depend on the first feature
VARIANTS = (
    "dol-rm,explore_first=true,noise=0.2",
    "plug-in-dol,noise=0.1",
    "omega-star-ucb,rho=1",
    "b-greedy,exploration=9",
)
GOALS = {
    "floor": goal_of(floor=0.6),
    "floor that is slack": goal_of(floor=0.1),
    "floors of kinds": goal_of(floor={"three options": 0.5, "all options": 0.6}),
    "budget": goal_of(budget=0.5),
    "ratio above a floor": goal_of("ratio", floor=0.6),
    "ratio above floors of kinds, within a budget": goal_of("ratio", floor={"two options": 0.7}, budget=0.55),
}
GOAL_POLICY = "goal-imed"  # what the default is with any of these
OF_DEFAULT = ("", ",half_life=1", ",half_life=60", ",caution=0.3")  # a half-life of 1 meets the largest weight


def wanted() -> dict[str, dict[str, list[str]]]:
    """By file and world, the policies in it."""
    default = [DEFAULT + variant for variant in OF_DEFAULT]
    rivals = [*(name for name in LIST if name not in (DEFAULT, GOAL_POLICY)), *VARIANTS]
    every = [GOAL_POLICY, *GOALS]
    goals = {"positive costs": every, "some negative costs": every, "features": ["floor", "budget"]}
    return {"default": dict.fromkeys(WORLDS, default), "goals": goals, "rivals": {"positive costs": rivals}}


def policy_of(text: str) -> Policy:
    """The policy of a name, or the default with the goal of that name."""
    if text in GOALS:
        return towards(make(DEFAULT), GOALS[text], {kind: number for number, kind in enumerate(PROBLEM.kinds)})
    return make(text, known(PROBLEM, TASKS))


def run(text: str, world: World, engine: str = "python") -> dict[str, Any]:
    """One policy's choices, totals, price and estimates."""
    policy = policy_of(text)
    shape = PROBLEM.reward.shape
    state = Folded(new_totals(*shape), empty(policy, *shape, room_for(world.features)), no_features(*shape))
    methods = engine_of(engine, policy, SEED_KEY)
    methods.bind(state)
    record = play(methods, world)
    price = price_in(state.learned)
    pairs = [(kind, option) for kind, row in enumerate(PROBLEM.offered) for option in row.nonzero()[0].tolist()]
    judged = [methods.judge(kind, option) for kind, option in pairs]
    return record | {
        "price": None if price is None else float(price[0]),
        "judged": [[float(reward), float(cost)] for _, reward, cost in judged],
    }


def play(methods: Engine, world: World) -> dict[str, Any]:
    """arrive → choose → feedback → learn, with reports that come late and side observations."""
    luck, running, under_way = random.Random(SEED), [dict[int, int]() for _ in PROBLEM.kinds], list[Any]()
    aims, expected = has_goal(methods.seldom.policy), np.zeros((len(PROBLEM.kinds) + 1, 3))  # the last: of all kinds
    choices, totals = "", [0.0, 0.0, 0.0, 0.0]
    for task in range(1, TASKS + 1):
        kind, options = arrival(ALONE if world.alone else luck.random())
        features = draw_features(luck) if world.features else None
        price = methods.seldom.aim(kind, *(Running(*row.tolist()) for row in expected[[-1, kind]])) if aims else None
        option, *estimates = methods.choose(offer_of(kind, options), running[kind], task, features, price)
        expected[[kind, -1]] += 1.0, *estimates
        feedback = draw(world, kind, int(option), luck, features)
        totals = [total + float(value) for total, value in zip(totals, (*feedback, *estimates), strict=True)]
        choices += str(int(option))
        running[kind][int(option)] = running[kind].get(int(option), 0) + 1
        under_way.append(
            (task + int(luck.random() * LONGEST_DELAY), task, kind, int(option), estimates, feedback, features)
        )
        for due in [entry for entry in under_way if entry[0] <= task]:
            under_way.remove(due)
            expected[[due[2], -1]] -= 1.0, *due[4]
            land(methods, running, *due[1:])
            if aims:
                methods.seldom.book(due[2], Running(1.0, *due[5]), Running(1.0, *due[4]))
        if task % OBSERVED_EVERY == 0:
            side = options[int(luck.random() * len(options))]
            observed = draw(world, kind, side, luck, features)
            if features is not None:
                methods.learn_features(kind, side, features, *observed, task)
            methods.observe(kind, side, *observed, task)
    return {"choices": choices, "reward": totals[0], "cost": totals[1], "estimates": totals[2:]}


def land(
    methods: Engine, running: list[dict[int, int]], task: int, kind: int, option: int, estimates: Any, feedback: Any,
    features: Floats | None,
) -> None:  # fmt: skip
    """A task reports."""
    running[kind][option] -= 1
    if features is not None:
        methods.learn_features(kind, option, features, *feedback, task)
    methods.learn(kind, option, *estimates, *feedback, task)


def arrival(level: float) -> tuple[int, list[int]]:
    """A kind, and what is on offer to it."""
    kind = 0
    for share in PROBLEM.arrival[:-1].tolist():
        if level < share:
            break
        kind, level = kind + 1, level - share
    return kind, PROBLEM.offered[kind].nonzero()[0].tolist()


def draw_features(luck: random.Random) -> Floats:
    """A number that says which options are better, a category that says nothing, and a number that is often missing."""
    features = np.full(room_for(3), MISSING)
    features[0], features[1] = luck.random(), feature_number("abc"[int(luck.random() * 3)])
    features[2] = MISSING if luck.random() < 0.5 else luck.random()
    return features


def draw(
    world: World, kind: int, option: int, luck: random.Random, features: Floats | None = None
) -> tuple[float, float]:
    """Reward and cost, evenly around their means; those of every other option go up with the first feature."""
    reward, cost = float(PROBLEM.reward[kind, option]), float(PROBLEM.cost[kind, option])
    if features is not None:
        reward += FEATURE_WIDTH * (float(features[0]) - 0.5) * (1 - 2 * (option % 2))
    return reward + world.reward_width * (luck.random() - 0.5), cost + cost * world.cost_width * (luck.random() - 0.5)


def read(file: str) -> dict[str, dict[str, Any]]:
    path = FOLDER / f"{file}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def write() -> None:
    """The default anew, with goals and without; of the rivals only those that are missing."""
    FOLDER.mkdir(exist_ok=True)
    for file, worlds in wanted().items():
        kept = read(file) if file == "rivals" else {}
        made = {
            world: {text: kept.get(world, {}).get(text) or run(text, WORLDS[world]) for text in policies}
            for world, policies in worlds.items()
        }
        (FOLDER / f"{file}.json").write_text(one_line_each(made), encoding="utf-8")


def one_line_each(made: dict[str, dict[str, Any]]) -> str:
    """JSON with a line per policy, so that a difference shows whose it is."""
    worlds = (
        f"{json.dumps(world)}: {{\n"
        + ",\n".join(f"  {json.dumps(text)}: {json.dumps(record)}" for text, record in policies.items())
        + "\n}"
        for world, policies in made.items()
    )
    return "{\n" + ",\n".join(worlds) + "\n}\n"


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("python tests/policies/golden.py --write   makes the default's golden numbers anew")
    write()
