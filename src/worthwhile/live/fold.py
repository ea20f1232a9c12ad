"""State = the log of reports, folded: the same numbers in the same order give every process the same bits."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from typing import Any, NamedTuple
from zlib import crc32

from worthwhile import state as states
from worthwhile.errors import BrokenRule
from worthwhile.live.engines import Offer, engine_of
from worthwhile.live.stores.base import LOST, OWN, REPLACES, RESTORED, WORTH_A_NUMBER, LogRow, Snapshot
from worthwhile.live.totals import SAMPLED, Folded, count_expected, count_unmeasured, new_totals, no_features
from worthwhile.live.validation import MOST_FEATURES, feature_fault, features_in
from worthwhile.policies.base import NOTHING_RUNS, Policy, Running, has_goal, looks_at_features
from worthwhile.policies.features import FeaturesSoFar, feature_vector
from worthwhile.policies.features import room_for as feature_room
from worthwhile.state import Floats


class Room(NamedTuple):
    """How many kinds, options and features a state has room for."""

    kinds: int
    options: int
    features: int = 0  # of a policy that looks at them

    @property
    def cells(self) -> int:
        return self.kinds * self.options


ROOM = Room(8, 8)  # of a new state; it doubles when it is full
FINITE = "reward", "cost", "overhead", "reward_estimate", "cost_estimate"  # numbers, in an entry of the log
MOST_CELLS = 1 << 24  # kinds × options, as there is room for them; each takes about a hundred bytes
MOST_NAMED = 100  # bad entries that are kept by name; the rest are counted


class SetAside(NamedTuple):
    """An entry of the log that cannot be learned from, and why."""

    number: int
    why: str


class Fold:
    """What one policy makes of the log, up to entry `position`."""

    def __init__(
        self, policy: Policy, number: int, seed_key: int, engine: str, features: Mapping[str, int] | None = None
    ) -> None:
        self.policy, self.number = policy, number
        self.looks_at_features, self.has_goal = looks_at_features(policy), has_goal(policy)
        self.feature_numbers = {} if features is None else features  # by name; there may come more
        self.engine = engine_of(engine, policy, seed_key)
        self.draws: bool = hasattr(policy, "probability")  # and says how likely it draws an option
        self.position, self.bad = 0, 0
        self.set_aside: list[SetAside] = []
        self.kinds = self.options = 0  # known by name
        self.size = ROOM
        self.put(self.init(*ROOM))

    def init(self, kinds: int, options: int, features: int = 0) -> Folded:
        """An empty state, in the way of a policy's `init`: growing and storing need no more."""
        learned = states.empty(self.policy, kinds, options, features)
        return Folded(new_totals(kinds, options), learned, no_features(kinds, options))

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

    def fit(self, kinds: int, options: int, features: int = 0) -> None:
        """Room for so many kinds, options and features."""
        self.kinds, self.options = kinds, options
        room = self.room_for(kinds, options, features)
        if room != self.size:
            self.size = room
            self.put(states.grow(self, self.state, *room))

    def room_for(self, kinds: int, options: int, features: int = 0) -> Room:
        """How large the state will be: powers of two, never smaller than it is."""
        needed = *(1 << (count - 1).bit_length() for count in (kinds, options)), self.room_for_features(features)
        return Room(*map(max, self.size, needed))

    def room_for_features(self, features: int) -> int:
        return feature_room(features) if self.looks_at_features else 0

    def vector(self, features: str | None) -> Floats | None:
        """The features of a task as the policy sees them; None if there are none, or it does not look at any."""
        if features is None or not self.looks_at_features:
            return None
        return feature_vector(features_in(features), self.feature_numbers, self.size.features)

    def learn_features(self, row: LogRow, cost: float) -> None:
        """What came of a task with these features, if the policy looks at them."""
        vector = None if row.outcome == LOST else self.vector(row.features)  # what is lost may yet report
        if vector is not None:
            reward = math.nan if row.reward is None else row.reward
            if row.observed == OWN and row.policy == self.number:
                self.count_features(row, vector, cost)
            self.engine.learn_features(row.kind, row.option, vector, reward, cost, row.task)

    def count_features(self, row: LogRow, features: Floats, cost: float) -> None:
        """What was expected of a task that is learned from next, now and then."""
        counts = self.state.features
        counts.reports[0] += 1.0
        if counts.reports[0] % SAMPLED == 0.0 and hasattr(self.policy, "beyond_usual"):
            engine = self.engine.seldom
            beyond = self.policy.beyond_usual(engine.state, row.kind, engine.seen(features))
            count_expected(counts, row.kind, row.option, cost * (self.price or 0.0), beyond)

    def features_so_far(self) -> FeaturesSoFar | None:
        """Which features matter; None if no task has any, or the policy does not say."""
        so_far = getattr(self.policy, "features_so_far", None)
        told: FeaturesSoFar | None = so_far(self.state.learned) if so_far and self.size.features else None
        return told

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
            outcome, _, features, _, _,
        ) = row  # fmt: skip
        cost += overhead
        try:
            if features is not None and observed >= OWN:
                self.learn_features(row, cost)
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
            if self.has_goal and observed <= OWN:
                self.book(row, cost)
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
        self.learn_features(row, cost)
        if row.reward is None:
            engine.fail_again(kind, option, cost, task)
        else:
            engine.try_again(kind, option, row.reward, cost, task)

    def book(self, row: LogRow, cost: float) -> None:
        """What came of a task, for a policy that keeps a floor or a budget: of those that it has decided itself.

        An attempt after the first is no other task, and what seemed lost is one already.
        """
        book, reward, tasks = self.engine.seldom.book, row.reward or 0.0, float(row.observed == OWN)
        if row.observed <= REPLACES and row.outcome != RESTORED:
            book(row.kind, Running(0.0, reward - row.reward_estimate, cost - row.cost_estimate), NOTHING_RUNS)
        elif row.policy == self.number:
            expected = Running(tasks, row.reward_estimate, row.cost_estimate)
            book(row.kind, Running(tasks, reward, cost), expected)

    def aim(self, kind: int, in_flight: tuple[Running, Running]) -> float | None:
        """The price for the next task of a kind, given what is running."""
        return self.engine.seldom.aim(kind, *in_flight) if self.has_goal else self.price

    def price_of(self, kind: int) -> float | None:
        """The price at which options of a kind are judged, on average."""
        own = getattr(self.policy, "price_of", None)
        price: float | None = self.price if own is None else float(own(self.state.learned, kind))
        return price

    def probability(self, offer: Offer, option: int) -> float:
        """How likely the policy was to take an option that it draws at random."""
        engine = self.engine.seldom
        options = offer.array if engine.plain else offer.numbers
        probability: float = self.policy.probability(engine.state, offer.kind, options, option)  # type: ignore[attr-defined]
        return float(probability)

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
        size = Room(snapshot.kinds, snapshot.options, snapshot.features)
        most = self.room_for_features(MOST_FEATURES)
        if min(size[:2]) < 1 or size.cells > MOST_CELLS or not 0 <= size.features <= most:
            raise ValueError(f"it has {size.kinds} kinds, {size.options} options and {size.features} features")
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
        size = Room(*map(max, self.size, other.size))
        mine, others = (
            fold.state if fold.size == size else states.grow(fold, fold.state, *size) for fold in (self, other)
        )
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
    if any(type(number) is not int for number in (row.task, row.observed, row.policy, row.mode)):
        return f"task {row.task!r}: observed = {row.observed!r} by policy {row.policy!r} in mode {row.mode!r}"
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
    damage = row.damage or ("" if row.features is None else feature_fault(row.features))
    return f"task {row.task}: {damage}" if damage else ""
