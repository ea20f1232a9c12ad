"""`check_policy`: does a policy of your own keep the rules that simulator and live use rely on?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from worthwhile import state as states
from worthwhile.compiling import available
from worthwhile.decision import Decision
from worthwhile.optimum import solve
from worthwhile.policies.base import Policy, known
from worthwhile.policies.registry import METHODS, make
from worthwhile.problem import Noise, Problem
from worthwhile.rng import Rng
from worthwhile.simulation.environments import synthetic
from worthwhile.simulation.loop import TOTALS, Block, engine_for, new_flight, truth_of
from worthwhile.simulation.runs import Delay
from worthwhile.state import Floats, Indices, Size
from worthwhile.testing import rules
from worthwhile.testing.rules import KEY, TASKS, attempt, broken

UNMOVED = ("tasks", "price", "arrivals", "plug_in")
HARD = ((0.0, 1e-6), (-1e6, 1.0), (1e6, 1e6), (-1e-6, 1e6), (0.0, 1.0))  # rewards and costs


class Case(NamedTuple):
    """A task: what is asked, and the feedback that it gets."""

    kind: int
    options: Indices
    pending: Indices
    rng: Rng
    reward: float
    cost: float


def check_policy(policy: Any, compiled: bool = True) -> None:
    """Raise `BrokenRule` unless a policy (an instance, a class or a name) keeps every rule.

    A class or a name is told the truth about a small problem. With `compiled=False` it need not suit numba.

    >>> check_policy("dol-rm", compiled=False)
    """
    policy = instance(policy)
    size, truths = size_of(policy)
    check_state(policy, size)
    try_tasks(policy, policy.init(*size), size, cases(size, 1))
    check_memory(policy, size)
    check_growth(policy, size, accepts_more=not truths)
    if compiled and available():
        for delay in (Delay(0, 0), Delay(0, 5)):
            check_same_bits(policy, practice(size), delay)


def practice(size: Size) -> Problem:
    """A small problem; not every kind offers every option."""
    generator = np.random.default_rng(7)
    reward, cost = generator.uniform(0.2, 0.9, size), generator.uniform(0.2, 2.0, size)
    missing = (np.add.outer(np.arange(size.kinds), np.arange(size.options)) % 3 == 2) & (np.arange(size.options) > 0)
    reward[missing] = cost[missing] = np.nan
    kinds, options = (tuple(str(number) for number in range(length)) for length in size)
    arrival = np.full(size.kinds, 1.0 / size.kinds)
    return Problem("practice", kinds, options, arrival, reward, cost, Noise(sd=0.3), Noise("lognormal", cv=0.3))


def instance(policy: Any) -> Policy:
    """The policy to check, told what it must know if it was given as a class or a name."""
    told = known(practice(Size(3, 4)), TASKS)
    if isinstance(policy, str):
        policy = make(policy, told)
    elif isinstance(policy, type) and hasattr(policy, "_field_defaults"):
        truth, needed = told._asdict(), [name for name in policy._fields if name not in policy._field_defaults]  # type: ignore[attr-defined]
        unknown = [name for name in needed if name not in truth]
        if unknown:
            raise broken(policy, rules.PARAMETERS, f"nothing is known about {unknown[0]!r}; check an instance instead")
        policy = policy(**{name: truth[name] for name in needed})
    missing = [name for name in METHODS if not callable(getattr(policy, name, None))]
    if not (isinstance(policy, tuple) and hasattr(policy, "_fields")) or missing:
        raise broken(policy, rules.PARAMETERS, f"no method {missing[0]}" if missing else "it is not a NamedTuple")
    for name, value in zip(policy._fields, policy, strict=True):
        if not isinstance(value, int | float | np.number | np.bool_ | np.ndarray):
            raise broken(policy, rules.PARAMETERS, f"{name} = {value!r}")
    return policy  # type: ignore[return-value]


def size_of(policy: Any) -> tuple[Size, bool]:
    """The size to try a policy at: that of the means it was given, if any, and whether there are any."""
    shapes = [value.shape for value in policy if isinstance(value, np.ndarray) and value.ndim == 2]
    return (Size(*shapes[0]), True) if shapes else (Size(3, 4), False)


def check_state(policy: Any, size: Size) -> None:
    """The state's arrays have one of four shapes, the same at every size."""
    small, large = Size(*size), Size(size.kinds + 4, size.options + 7)
    forms = [state_form(policy, small), state_form(policy, large)]
    for (name, form), (_, larger_form) in zip(*forms, strict=True):
        if not form & larger_form:
            raise broken(policy, rules.STATE, f"{name} does not grow with the state as its shape at {small} suggests")


def state_form(policy: Any, size: Size) -> list[tuple[str, set[int]]]:
    """Which of the four shapes each array has."""
    state = attempt(policy, rules.STATE, policy.init, *size)
    if not (isinstance(state, tuple) and hasattr(state, "_fields")):
        raise broken(policy, rules.STATE, f"init returned {state!r}")
    shapes = ((1,), (size.kinds,), (size.options,), tuple(size))
    forms = []
    for name, array in states.arrays(state):
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiub":
            raise broken(policy, rules.STATE, f"{name} = {array!r}")
        if array.shape not in shapes:
            raise broken(policy, rules.STATE, f"{name} has shape {array.shape} for {size}")
        forms.append((name, {form for form, shape in enumerate(shapes) if array.shape == shape}))
    return forms


def cases(size: Size, seed: int) -> list[Case]:
    """Tasks with any options in any order; the last kind never reports, some feedback is hard to swallow."""
    generator = np.random.default_rng(seed)
    tasks = []
    for task in range(1, TASKS + 1):
        count = int(generator.integers(1, size.options, endpoint=True))
        options = generator.permutation(size.options)[:count].astype(np.uint32)
        pending = generator.integers(0, 3, size.options).astype(np.uint32)
        kind = int(generator.integers(max(1, size.kinds - 1)))
        reward, cost = generator.normal(0.5, 0.3), generator.gamma(4.0, 0.25)
        reward, cost = HARD[task // 20 % len(HARD)] if task % 20 == 0 else (float(reward), float(cost))
        tasks.append(Case(kind, options, pending, Rng(KEY, task), reward, cost))
    return tasks


def try_tasks(policy: Any, state: Any, size: Size, tasks: Sequence[Case]) -> None:
    """Every rule about a single call, task after task, with plain and with NumPy inputs."""
    for case in tasks:
        decide(policy, state, case._replace(kind=size.kinds - 1))
        made = decide(policy, state, case)
        again, typed = copy_of(state), copy_of(state)
        take_in(policy, state, case, case.kind, made, int(case.options[-1]))
        take_in(policy, again, case, case.kind, made, int(case.options[-1]))
        if not states.same(state, again):
            raise broken(policy, rules.SAME_DECISION, f"it learned differently, twice from {case}")
        option = case.options[case.options == made.option][0]
        take_in(policy, typed, case, np.uint32(case.kind), Decision(option, *made[1:]), case.options[-1])
        if not states.same(state, typed):
            raise broken(policy, rules.PLAIN_NUMBERS, f"they leave different states after {case}")


def take_in(policy: Any, state: Any, case: Case, kind: Any, made: Decision, side: Any) -> None:
    """Learn from a task and observe another option, checked."""
    change(policy, policy.learn, state, kind, made, case.reward, case.cost, case.rng)
    before = copy_of(state)
    change(policy, policy.observe, state, kind, side, case.cost, case.cost, case.rng)
    check_unmoved(policy, rules.SIDE, before, state, UNMOVED, case)
    if hasattr(policy, "fail"):
        fail(policy, state, case, kind, made, side)


def fail(policy: Any, state: Any, case: Case, kind: Any, made: Decision, side: Any) -> None:
    """The task fails as well, and another option after it, which was a mistake, checked."""
    change(policy, policy.fail, state, kind, made, case.cost, case.rng)
    before = copy_of(state)
    for method, *told in (
        ("observe_failure", kind, side, case.cost, case.rng),
        ("take_back", kind, side, case.cost, case.rng),
        ("forgive", kind, side),
    ):
        if hasattr(policy, method):
            change(policy, getattr(policy, method), state, *told)
    check_unmoved(policy, rules.FURTHER, before, state, ("tasks", "arrivals"), case)


def check_unmoved(policy: Any, rule: str, before: Any, after: Any, names: Sequence[str], case: Case) -> None:
    """What has one of these names is what it was."""
    for (name, old), (_, new) in zip(states.arrays(before), states.arrays(after), strict=True):
        if set(name.split(".")) & set(names) and old.tobytes() != new.tobytes():
            raise broken(policy, rule, f"{name} went from {old} to {new} in {case}")


def decide(policy: Any, state: Any, case: Case) -> Decision:
    """The decision on a task, checked."""
    frozen = states.freeze(copy_of(state))
    for array in (case.options, case.pending):
        array.flags.writeable = False
    options = case.options.tolist()
    arrays = (np.uint32(case.kind), case.options, case.pending, case.rng)
    plain = (case.kind, options, case.pending.tolist(), case.rng)
    made, again, other = (
        decision(policy, attempt(policy, rules.ANY_TASK, policy.choose, frozen, *task), options, case)
        for task in (arrays, arrays, plain)
    )
    if made != other and all(policy.choose(frozen, *arrays) == made for _ in range(20)):
        raise broken(policy, rules.PLAIN_NUMBERS, f"{made} from NumPy's, {other} from plain ones, for {case}")
    if not made == again == other:
        raise broken(policy, rules.SAME_DECISION, f"{made}, {again} and {other} for {case}")
    judged, again = (
        decision(
            policy, attempt(policy, rules.ANY_TASK, policy.judge, frozen, case.kind, made.option), [made.option], case
        )
        for _ in range(2)
    )
    if judged != again:
        raise broken(policy, rules.SAME_DECISION, f"judge says {judged} and {again} for {case}")
    return made


def decision(policy: Any, made: Any, options: list[int], case: Case) -> Decision:
    """A decision in plain numbers, if it is one."""
    if not isinstance(made, Decision) or made.option not in options:
        raise broken(policy, rules.DECISION, f"{made!r} where options {options} are on offer, for {case}")
    plain = Decision(int(made.option), float(made.reward_estimate), float(made.cost_estimate))
    if not np.isfinite(plain[1:]).all():
        raise broken(policy, rules.FINITE, f"{made} for {case}")
    return plain


def change(policy: Any, method: Callable[..., Any], state: Any, *task: Any) -> None:
    """Learn or observe, checked."""
    before = [(name, array.shape, array.dtype) for name, array in states.arrays(state)]
    returned = attempt(policy, rules.ANY_TASK, method, state, *task)
    after = [(name, array.shape, array.dtype) for name, array in states.arrays(state)]
    if returned is not None or before != after:
        shown = f"returned {returned!r}" if returned is not None else f"made {before} into {after}"
        raise broken(policy, rules.IN_PLACE, f"{method.__name__} {shown}")
    for name, array in states.arrays(state):
        if not np.isfinite(array).all():
            raise broken(policy, rules.FINITE, f"{name} is {array} after {method.__name__} with {task}")


def check_memory(policy: Any, size: Size) -> None:
    """A stored state is the same state, whatever else the process has seen since."""
    tasks = cases(size, 2)
    state = policy.init(*size)
    follow(policy, state, tasks[: TASKS // 2])
    before, stored = copy_of(state), states.to_bytes(state)
    went = follow(policy, state, tasks[TASKS // 2 :])
    follow(policy, policy.init(*size), cases(size, 3)[1:])  # a number of tasks that no small cycle divides
    restored = states.from_bytes(policy, stored, size)
    if not states.same(restored, before):
        raise broken(policy, rules.MEMORY, "the state comes back from storage with other bits")
    again = follow(policy, restored, tasks[TASKS // 2 :])
    for case, before_storage, after in zip(tasks[TASKS // 2 :], went, again, strict=True):
        if before_storage != after:
            raise broken(policy, rules.MEMORY, f"{before_storage}, but {after} after storage, for {case}")
    if not states.same(state, restored):
        raise broken(policy, rules.MEMORY, "the stored state learns otherwise than the one it was stored from")


def check_growth(policy: Any, size: Size, accepts_more: bool) -> None:
    """A larger state decides as the old one did, and then takes new kinds and options."""
    tasks, larger = cases(size, 4), Size(size.kinds + 2, size.options + 3)
    state = policy.init(*size)
    follow(policy, state, tasks[: TASKS // 2])
    grown = states.grow(policy, copy_of(state), *larger)
    wider = [case._replace(pending=np.append(case.pending, np.zeros(3, np.uint32))) for case in tasks]
    went, again = follow(policy, state, tasks[TASKS // 2 :]), follow(policy, grown, wider[TASKS // 2 :])
    for case, old, new in zip(tasks[TASKS // 2 :], went, again, strict=True):
        if old != new:
            raise broken(policy, rules.GROWTH, f"{old} with room for {size}, {new} with room for {larger}, for {case}")
    if accepts_more:
        try_tasks(policy, grown, larger, cases(larger, 5))


def follow(policy: Any, state: Any, tasks: Sequence[Case]) -> list[Decision]:
    """What a policy decides as it learns."""
    decisions = []
    for case in tasks:
        made = policy.choose(state, case.kind, case.options, case.pending, case.rng)
        policy.learn(state, case.kind, made, case.reward, case.cost, case.rng)
        policy.observe(state, case.kind, int(case.options[-1]), case.cost, case.cost, case.rng)
        if hasattr(policy, "fail") and case.rng.task % 3 == 0:
            policy.fail(state, case.kind, made, case.cost, case.rng)
        decisions.append(Decision(int(made.option), float(made.reward_estimate), float(made.cost_estimate)))
    return decisions


def check_same_bits(policy: Any, problem: Problem, delay: Delay) -> None:
    """The compiled loop ends with the same totals and the same state."""
    state, totals = run(policy, problem, delay, "python")
    try:
        twin, twin_totals = run(policy, problem, delay, "compiled")
    except Exception as error:  # it ran interpreted, so this is numba's doing
        raise broken(policy, rules.COMPILES, f"{error}; or check it with compiled=False") from error
    if totals.tobytes() != twin_totals.tobytes():
        shown = dict(zip(TOTALS, zip(totals.tolist(), twin_totals.tolist(), strict=True), strict=True))
        raise broken(policy, rules.SAME_BITS, f"totals with {delay} (interpreted, compiled): {shown}")
    for (name, array), (_, other) in zip(states.arrays(state), states.arrays(twin), strict=True):
        if array.tobytes() != other.tobytes():
            raise broken(policy, rules.SAME_BITS, f"{name} with {delay}: {array} interpreted, {other} compiled")


def run(policy: Any, problem: Problem, delay: Delay, engine: str) -> tuple[Any, Floats]:
    """The state and the totals after a few tasks."""
    world, generator = synthetic(problem).world, np.random.default_rng(KEY)
    size, tasks = (len(problem.kinds), len(problem.options)), 2 * TASKS
    state, flight, totals = policy.init(*size), new_flight(*size, delay.most), np.zeros(len(TOTALS))
    block = Block(*world.draw(generator, tasks), delay.draw(generator, tasks))
    play = engine_for(policy, world, engine)
    play(policy, state, world, truth_of(problem, solve(problem)), flight, totals, block, 0, tasks, KEY, 0)
    return state, totals


def copy_of(state: Any) -> Any:
    """A state of its own, arrays and all."""
    return type(state)(*(copy_of(value) if isinstance(value, tuple) else value.copy() for value in state))
