"""State = the log of reports, folded: the same numbers in the same order give every process the same bits."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from copy import copy
from math import prod
from typing import Any, NamedTuple
from zlib import crc32

from worthwhile import state as states
from worthwhile.errors import BrokenRule
from worthwhile.live.engines import engine_of
from worthwhile.live.stores.base import OWN, REPLACES, RESTORED, WORTH_A_NUMBER, LogRow, Snapshot
from worthwhile.live.totals import Folded, count_unmeasured, new_totals
from worthwhile.policies.base import Policy
from worthwhile.state import Size

ROOM = Size(8, 8)  # of a new state; it doubles when it is full
FINITE = "reward", "cost", "overhead", "reward_estimate", "cost_estimate"  # numbers, in an entry of the log
MOST_CELLS = 1 << 24  # kinds × options, as there is room for them; each takes about a hundred bytes
MOST_NAMED = 100  # bad entries that are kept by name; the rest are counted


class SetAside(NamedTuple):
    """An entry of the log that cannot be learned from, and why."""

    number: int
    why: str


class Fold:
    """What one policy makes of the log, up to entry `position`."""

    def __init__(self, policy: Policy, number: int, seed_key: int, engine: str) -> None:
        self.policy, self.number = policy, number
        self.engine = engine_of(engine, policy, seed_key)
        self.position, self.bad = 0, 0
        self.set_aside: list[SetAside] = []
        self.kinds = self.options = 0  # known by name
        self.size = ROOM
        self.put(self.init(*ROOM))

    def init(self, kinds: int, options: int) -> Folded:
        """An empty state, in the way of a policy's `init`: growing and storing need no more."""
        return Folded(new_totals(kinds, options), self.policy.init(kinds, options))

    def put(self, state: Folded) -> None:
        self.state = state
        self.engine.bind(state)
        self.bytes = sum(array.nbytes for _, array in states.arrays(state))
        price = states.price_in(state.learned)
        self.prices: Any = (None,) if price is None else memoryview(price)

    @property
    def price(self) -> float | None:
        """The policy's θ, if it has one."""
        price: float | None = self.prices[0]
        return price

    def fit(self, kinds: int, options: int) -> None:
        """Room for so many kinds and options."""
        self.kinds, self.options = kinds, options
        if kinds > self.size.kinds or options > self.size.options:
            self.size = self.room_for(kinds, options)
            self.put(states.grow(self, self.state, *self.size))

    def room_for(self, kinds: int, options: int) -> Size:
        """How large the state will be: powers of two, never smaller than it is."""
        kinds, options = (1 << (count - 1).bit_length() for count in (kinds, options))
        return Size(max(self.size.kinds, kinds), max(self.size.options, options))

    def take(self, rows: Iterable[LogRow]) -> None:
        """Learn from the next entries of the log; what cannot be learned from is set aside."""
        for row in rows:
            if row.number != self.position + 1:
                self.miss(row.number - 1)
            why = fault(row, self.kinds, self.options)
            if why:
                self.leave_out(row.number, why)
                self.position = row.number
            else:
                self.learn(row)

    def learn(self, row: LogRow) -> None:
        """The next entry, known to be sound."""
        (
            number, task, observed, kind, option, reward, cost, overhead, reward_estimate, cost_estimate, policy,
            outcome, _, _,
        ) = row  # fmt: skip
        cost += overhead
        try:
            if observed < OWN:
                self.learn_more(row, cost)
            elif observed > OWN and reward is not None:
                self.engine.observe(kind, option, reward, cost, task)
            else:
                if policy != self.number:  # another policy's estimates mean nothing to this one
                    _, reward_estimate, cost_estimate = self.engine.judge(kind, option)
                if reward is not None:
                    self.engine.learn(kind, option, reward_estimate, cost_estimate, reward, cost, task)
                else:
                    self.engine.seldom.fail(kind, option, reward_estimate, cost_estimate, cost, task)
            if outcome:
                count_unmeasured(self.state.totals, row)
        except (MemoryError, RecursionError):  # of this process: another one learns from the entry
            raise
        except Exception as error:  # whatever a policy of the user's own may raise
            self.leave_out(number, f"{type(self.policy).__name__} raised {type(error).__name__}: {error}")
        self.position = number

    def learn_more(self, row: LogRow, cost: float) -> None:
        """What counts no arrival: a further attempt, the outcome of a task that seemed lost, a restored option."""
        kind, option, task, engine = row.kind, row.option, row.task, self.engine.seldom
        if row.outcome == RESTORED:
            engine.forgive(kind, option)
            return
        if row.observed <= REPLACES:
            count_unmeasured(self.state.totals, row, -1.0)
            if row.policy == WORTH_A_NUMBER:
                engine.discount_result(kind, option, row.reward_estimate, row.cost_estimate)
            else:
                engine.take_back_loss(kind, option, row.cost_estimate, task)
        if row.reward is None:
            engine.fail_again(kind, option, cost, task)
        else:
            engine.try_again(kind, option, row.reward, cost, task)

    def benched(self, kind: int, option: int) -> bool:
        """Whether the policy tries an option only now and then, because it keeps failing."""
        benched = getattr(self.policy, "benched", None)
        return benched is not None and bool(benched(self.engine.seldom.state, kind, option))

    def has_succeeded(self, kind: int, option: int) -> bool:
        """Whether an option has ever had a result with a kind, its own or on the side."""
        totals, arm = self.state.totals, (kind, option)
        return bool(totals.pulls[arm] - totals.failed[arm] + totals.observed[arm] > 0.0)

    def next_try(self, kind: int, option: int) -> int | None:
        """After how many more reports of the kind a benched option is tried again; None if the policy does not say."""
        next_try = getattr(self.policy, "next_try", None)
        return None if next_try is None else int(next_try(self.engine.seldom.state, kind, option))

    def miss(self, last: int) -> None:
        """Go on after entries that are not there."""
        self.leave_out(self.position + 1, f"entries {self.position + 1} to {last} are missing from the log")
        self.position = last

    def leave_out(self, number: int, why: str) -> None:
        self.bad += 1
        if len(self.set_aside) < MOST_NAMED:
            self.set_aside.append(SetAside(number, why))

    def broken(self, how: str) -> BrokenRule:
        """The policy does what no policy should."""
        return BrokenRule(f"{type(self.policy).__name__} {how}")

    def snapshot(self) -> Snapshot:
        """Everything, to be stored."""
        bad = json.dumps([self.bad, self.set_aside])
        whole = Snapshot(self.position, self.number, *self.size, bad, Parts(self.state), 0)
        checksum = first_checksum(whole, self.state)
        for part in whole.parts:
            checksum = crc32(part, checksum)
        return whole._replace(checksum=checksum)

    def restore(self, snapshot: Snapshot) -> None:
        """Go on from a snapshot; raises whatever a damaged one may lead to, and then changes nothing."""
        size = Size(snapshot.kinds, snapshot.options)
        if min(size) < 1 or prod(size) > MOST_CELLS:
            raise ValueError(f"it has {size.kinds} kinds and {size.options} options")
        state = self.init(*size)
        checksum = first_checksum(snapshot, state)

        def checked() -> Iterator[bytes]:
            nonlocal checksum
            for part in snapshot.parts:
                checksum = crc32(part, checksum)
                yield part

        states.fill(state, checked())
        if checksum != snapshot.checksum:
            raise ValueError("its checksum does not fit")
        bad, named = json.loads(snapshot.set_aside)
        set_aside = [SetAside(number, why) for number, why in named]
        self.size, self.position, self.bad, self.set_aside = size, snapshot.number, bad, set_aside
        self.put(state)

    def copy(self) -> Fold:
        """What is known now, left alone by what comes."""
        twin = copy(self)
        twin.state, twin.set_aside = states.grow(self, self.state, *self.size), list(self.set_aside)
        return twin

    def same_as(self, other: Fold) -> bool:
        """Whether both have learned the same, to the bit."""
        size = max(self.size.kinds, other.size.kinds), max(self.size.options, other.size.options)
        mine, others = (states.grow(fold, fold.state, *size) for fold in (self, other))
        return states.same(mine, others) and self.set_aside == other.set_aside


class Parts:
    """The bytes of a state, as they are whenever somebody asks for them."""

    def __init__(self, state: Folded) -> None:
        self.state = state

    def __iter__(self) -> Iterator[bytes]:
        return states.parts(self.state)


def first_checksum(snapshot: Snapshot, state: Folded) -> int:
    """Of all but the bytes: also of what they mean, which may change from one version to the next."""
    said = *snapshot[:-2], states.layout(state)
    return crc32(repr(said).encode())


def fault(row: LogRow, kinds: int, options: int) -> str:
    """Why an entry cannot be learned from; empty if it can."""
    for role, number, count in (("kind", row.kind, kinds), ("option", row.option, options)):
        if type(number) is not int or not 0 <= number < count:
            return f"task {row.task}: no {role} has the number {number!r}"
    if type(row.task) is not int or type(row.observed) is not int or type(row.policy) is not int:
        return f"task {row.task!r}: observed = {row.observed!r} by policy {row.policy!r}"
    if type(row.outcome) is not int or not 0 <= row.outcome <= RESTORED or (row.outcome and row.observed > OWN):
        return f"task {row.task}: outcome = {row.outcome!r}, observed = {row.observed!r}"
    values = row.reward, row.cost, row.overhead, row.reward_estimate, row.cost_estimate
    for field, value in zip(FINITE, values, strict=True):
        if value is None and field == "reward" and row.outcome:
            continue
        if type(value) is not float or not math.isfinite(value):
            return f"task {row.task}: {field} = {value!r} is not a finite number"
    if row.cost <= 0.0 or row.overhead < 0.0:
        return f"task {row.task}: cost = {row.cost!r} with overhead {row.overhead!r} is not above 0"
    return f"task {row.task}: {row.damage}" if row.damage else ""
