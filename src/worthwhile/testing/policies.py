"""`check_policy`: does a policy of your own keep the rules that simulator and live use rely on?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from worthwhile import state as states
from worthwhile.compiling import available
from worthwhile.optimum import solve
from worthwhile.policies.base import Policy, known, looks_at_features
from worthwhile.policies.registry import METHODS, make
from worthwhile.problem import Noise, Problem
from worthwhile.simulation.environments import synthetic
from worthwhile.simulation.environments.base import World, features_in
from worthwhile.simulation.loop import TOTALS, Block, engine_for, new_flight, truth_of
from worthwhile.simulation.runs import Delay
from worthwhile.state import Floats, Indices, Size
from worthwhile.testing import rules
from worthwhile.testing.rules import KEY, TASKS, attempt, broken
from worthwhile.testing.trials import ROOM, Case, cases, copy_of, follow, some_features, try_tasks

Form = list[set[str]]  # of an array: what each of its sides can be as long as


def check_policy(policy: Any, compiled: bool = True) -> None:
    """Raise `BrokenRule` unless a policy (an instance, a class or a name) keeps every rule.

    A class or a name is told the truth about a small problem. With `compiled=False` it need not suit numba.

    >>> check_policy("dol-rm", compiled=False)
    """
    policy = instance(policy)
    size, truths = size_of(policy)
    looks = looks_at_features(policy)
    check_state(policy, size)
    if looks:
        check_tables(policy, size)
    for room in (0, ROOM) if looks else (0,):
        try_tasks(policy, states.empty(policy, *size, room), size, cases(size, 1, room))
        check_memory(policy, size, room)
        check_growth(policy, size, accepts_more=not truths, room=room)
    if compiled and available():
        worlds: list[World] = [synthetic(practice(size)).world]
        for world in [*worlds, *(map(with_features, worlds) if looks else ())]:
            for delay in (Delay(0, 0), Delay(0, 5)):
                check_same_bits(policy, practice(size), world, delay)


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
    methods = [*METHODS, "learn_features"] if looks_at_features(policy) else METHODS
    missing = [name for name in methods if not callable(getattr(policy, name, None))]
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
    """The state's arrays have one of four shapes, the same at every size; or none, if they are for features."""
    small, large = Size(*size), Size(size.kinds + 4, size.options + 7)
    forms = [state_form(policy, small), state_form(policy, large)]
    for (name, form), (_, larger_form) in zip(*forms, strict=True):
        if not form & larger_form:
            raise broken(policy, rules.STATE, f"{name} does not grow with the state as its shape at {small} suggests")


def state_form(policy: Any, size: Size) -> list[tuple[str, set[int]]]:
    """Which of the four shapes each array has; −1 for one without any room, which is for features."""
    shapes = ((1,), (size.kinds,), (size.options,), tuple(size))
    forms = []
    for name, array in arrays_of(policy, rules.STATE, size):
        empty = looks_at_features(policy) and array.size == 0
        if array.shape not in shapes and not empty:
            raise broken(policy, rules.STATE, f"{name} has shape {array.shape} for {size}")
        forms.append((name, {-1} if empty else {form for form, shape in enumerate(shapes) if array.shape == shape}))
    return forms


def arrays_of(policy: Any, rule: str, size: Sequence[int]) -> list[tuple[str, Any]]:
    """The arrays of an empty state, if they are such."""
    state = attempt(policy, rule, policy.init, *size)
    if not (isinstance(state, tuple) and hasattr(state, "_fields")):
        raise broken(policy, rule, f"init returned {state!r}")
    for name, array in states.arrays(state):
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiub":
            raise broken(policy, rule, f"{name} = {array!r}")
    return list(states.arrays(state))


def check_tables(policy: Any, size: Size) -> None:
    """With room for features, every side of every array is of fixed length, or grows with one of three numbers."""
    without = [(name, array.dtype) for name, array in arrays_of(policy, rules.STATE, size)]
    small, large = (*size, ROOM), (size.kinds + 4, size.options + 7, 2 * ROOM)
    tables, larger = arrays_of(policy, rules.TABLES, small), arrays_of(policy, rules.TABLES, large)
    if not without == [(name, array.dtype) for name, array in tables] == [(name, one.dtype) for name, one in larger]:
        raise broken(policy, rules.TABLES, f"other arrays, or of other types, with room for {ROOM} features")
    for (name, array), (_, other) in zip(tables, larger, strict=True):
        forms = zip(form_of(array, small), form_of(other, large), strict=False)
        if array.ndim != other.ndim or not all(form & larger_form for form, larger_form in forms):
            raise broken(policy, rules.TABLES, f"{name} is {array.shape} at {small}, {other.shape} at {large}")


def form_of(array: Any, size: Sequence[int]) -> Form:
    """What each side of an array can be as long as."""
    named = dict(zip(("kinds", "options", "features"), size, strict=True))
    return [{str(side), *(name for name, length in named.items() if length == side)} for side in array.shape]


def check_memory(policy: Any, size: Size, room: int) -> None:
    """A stored state is the same state, whatever else the process has seen since."""
    tasks = cases(size, 2, room)
    half = len(tasks) // 2
    state = states.empty(policy, *size, room)
    follow(policy, state, tasks[:half])
    before, stored = copy_of(state), states.to_bytes(state)
    went = follow(policy, state, tasks[half:])
    follow(policy, policy.init(*size), cases(size, 3)[1:])  # a number of tasks that no small cycle divides
    restored = states.from_bytes(policy, stored, (*size, room))
    if not states.same(restored, before):
        raise broken(policy, rules.MEMORY, "the state comes back from storage with other bits")
    again = follow(policy, restored, tasks[half:])
    for case, before_storage, after in zip(tasks[half:], went, again, strict=True):
        if before_storage != after:
            raise broken(policy, rules.MEMORY, f"{before_storage}, but {after} after storage, for {case}")
    if not states.same(state, restored):
        raise broken(policy, rules.MEMORY, "the stored state learns otherwise than the one it was stored from")


def check_growth(policy: Any, size: Size, accepts_more: bool, room: int) -> None:
    """A larger state decides as the old one did, and then takes new kinds, options and features."""
    tasks, larger = cases(size, 4, room), Size(size.kinds + 2, size.options + 3)
    half = len(tasks) // 2
    more = room + ROOM if looks_at_features(policy) else 0
    state = states.empty(policy, *size, room)
    follow(policy, state, tasks[:half])
    grown = states.grow(policy, copy_of(state), *larger, more)
    wider = [widened(case, larger, more) for case in tasks]
    went, again = follow(policy, state, tasks[half:]), follow(policy, grown, wider[half:])
    for case, old, new in zip(tasks[half:], went, again, strict=True):
        if old != new:
            raise broken(policy, rules.GROWTH, f"{old} with room for {size}, {new} with room for {larger}, for {case}")
    if room and not states.same(states.grow(policy, state, *larger, more), grown):
        raise broken(policy, rules.GROWTH, f"it learns otherwise with room for {larger} and {more} features")
    if accepts_more:
        try_tasks(policy, grown, larger, cases(larger, 5, more))


def widened(case: Case, size: Size, room: int) -> Case:
    """The same task where there is room for more."""
    pending = np.append(case.pending, np.zeros(size.options - len(case.pending), np.uint32))
    if case.features is None:
        return case._replace(pending=pending)
    return case._replace(pending=pending, features=np.append(case.features, np.full(room - len(case.features), np.nan)))


class Items(NamedTuple):
    """A world whose tasks have features."""

    world: Any
    known: Floats  # (items, features)

    def draw(self, generator: np.random.Generator, count: int) -> tuple[Indices, Floats]:
        kinds, latents = self.world.draw(generator, count)
        return kinds, np.hstack([latents, generator.random((count, 1))])

    def feedback(self, kind: int, option: int, latent: Floats) -> tuple[float, float]:
        item = int(latent[len(latent) - 1] * len(self.known))
        better = self.known[item, 0] if option % 2 == 0 else 0.0
        return latent[0] + better, 1.0 + 0.5 * latent[len(latent) - 1]

    def features(self, kind: int, latent: Floats) -> Floats:
        row: Floats = self.known[int(latent[len(latent) - 1] * len(self.known))]
        return row


def with_features(world: World) -> World:
    luck = np.random.default_rng(KEY)
    return Items(world, np.array([some_features(luck, item, ROOM) for item in range(TASKS)]))


def check_same_bits(policy: Any, problem: Problem, world: World, delay: Delay) -> None:
    """The compiled loop ends with the same totals and the same state."""
    state, totals = run(policy, problem, world, delay, "python")
    try:
        twin, twin_totals = run(policy, problem, world, delay, "compiled")
    except Exception as error:  # it ran interpreted, so this is numba's doing
        raise broken(policy, rules.COMPILES, f"{error}; or check it with compiled=False") from error
    if totals.tobytes() != twin_totals.tobytes():
        shown = dict(zip(TOTALS, zip(totals.tolist(), twin_totals.tolist(), strict=True), strict=True))
        raise broken(policy, rules.SAME_BITS, f"totals with {delay} (interpreted, compiled): {shown}")
    for (name, array), (_, other) in zip(states.arrays(state), states.arrays(twin), strict=True):
        if array.tobytes() != other.tobytes():
            raise broken(policy, rules.SAME_BITS, f"{name} with {delay}: {array} interpreted, {other} compiled")


def run(policy: Any, problem: Problem, world: World, delay: Delay, engine: str) -> tuple[Any, Floats]:
    """The state and the totals after a few tasks."""
    generator, room = np.random.default_rng(KEY), features_in(world) if looks_at_features(policy) else 0
    size, tasks = (len(problem.kinds), len(problem.options)), 2 * TASKS
    state, totals = states.empty(policy, *size, room), np.zeros(len(TOTALS))
    flight = new_flight(*size, delay.most, room)
    block = Block(*world.draw(generator, tasks), delay.draw(generator, tasks))
    play = engine_for(policy, world, engine)
    play(policy, state, world, truth_of(problem, solve(problem)), flight, totals, block, 0, tasks, KEY, 0)
    return state, totals
