"""This process's copy of a scheduler: its names, its settings and what its policy has learned.

It is brought up to date from the store before every batch, and thrown away whenever the store may know better.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Iterable, Sequence
from typing import Any

from worthwhile import state as states
from worthwhile.errors import BadParameter, BadTask, Error
from worthwhile.goals.goal import Goal
from worthwhile.live.engines import Offer, offer_of
from worthwhile.live.fold import MOST_CELLS, Fold
from worthwhile.live.guard import Guard
from worthwhile.live.labels import check_declared
from worthwhile.live.settings import Settings, policy_from, settings_from
from worthwhile.live.stores.base import Header, LogRow, NameRow, Snapshot, TaskRow, Transaction
from worthwhile.live.stores.schema import Damaged
from worthwhile.live.trials import TrialSettings, trial_key_of
from worthwhile.live.validation import MOST_FEATURES, check_text, feature_fault, features_in, option_text, option_texts
from worthwhile.policies.base import Policy, looks_at_features
from worthwhile.policies.features import room_for as feature_room
from worthwhile.policies.goal_imed import goal_in

log = logging.getLogger(__name__)

PORTION = 10_000  # entries of the log read at once
SOON = 500  # entries that are learned from while others wait
SNAPSHOT_EVERY = 20_000  # entries of the log
WITH_FEATURES = 10  # times as long it takes to learn from an entry, at least
LOOKED_THROUGH_PER_ENTRY, WRITTEN_PER_ENTRY = 5000, 1000  # bytes of a state, in a part of the time that an entry takes
TOUCHED_PER_ENTRY = 200  # bytes of a state, at most
FEW_OPTIONS, MOST_BYTES = 1024, 2_000_000_000  # with features; beyond the few, each takes as much as the one before
MOST_OFFERS = 10_000  # lists of options that are remembered


class Names:
    """Texts of one role, numbered in the order of first appearance."""

    def __init__(self, *texts: str) -> None:
        self.texts, self.number = list(texts), {text: number for number, text in enumerate(texts)}

    def add(self, text: str) -> None:
        self.number.setdefault(text, len(self.texts))
        self.texts.append(text)


class Replica:
    """Names, settings and fold of one scheduler."""

    def __init__(self, header: Header, engine: str, given_policies: dict[str, Policy]) -> None:
        self.id, self.seed_key, self.engine = header.id, header.seed_key, engine
        self.given_policies = given_policies
        self.kinds, self.options, self.policies, self.features = Names(), Names(), Names("none"), Names()
        self.roles = {
            "kind": self.kinds, "option": self.options, "policy": self.policies, "feature": self.features,
        }  # fmt: skip
        self.known_names, self.generation = 0, -1  # how many, and of the settings
        self.forgotten = -1  # `settings.forgotten` of the log that the fold has learned from
        self.added: list[NameRow] = []  # by this batch, to be stored
        self.offers: dict[Any, Offer] = {}
        self.values: list[Any] = []  # the options as users write them, by number
        self.saved, self.snapshot_due = 0, SNAPSHOT_EVERY  # positions of the latest snapshot and of the next
        self.backlog: list[LogRow] = []  # read, not yet folded
        self.look_at = -math.inf  # by the store's clock: when to look for tasks whose leases have ended
        self.fold: Fold
        self.settings: Settings
        self.trial: TrialSettings | None = None
        self.guard: Guard | None = None  # made when it is needed
        self.guard_as_of = (0, 0)
        self.trial_key = trial_key_of(header.seed_key)

    def read(self, tx: Transaction, header: Header) -> bool:
        """Read what has come since the last time; False if there is more of it than should hold others up.

        Then `fold_backlog` is due after the transaction, and another `read` after that.
        """
        if header.names > self.known_names:
            self.add_names(tx.names(self.id, self.known_names), header.names)
        if header.generation != self.generation:
            self.use_settings(tx.settings(self.id))
            self.offers.clear()
            if self.settings.forgotten != self.forgotten or self.settings.policy != self.fold.number:
                self.forgotten = self.settings.forgotten
                self.fold = self.new_fold(self.settings.policy)
                self.restore(tx, header)
            self.generation = header.generation
        behind = header.reports - self.fold.position
        if behind > 0:
            self.backlog = tx.reports(self.id, self.fold.position, min(PORTION, behind))
            if behind > SOON and self.backlog:
                return False
            self.fold_backlog(header.reports)
        return True

    def add_names(self, rows: Sequence[NameRow], count: int) -> None:
        """Names that are new; without one of them, all numbers would mean something else."""
        for row in rows:
            names = self.roles.get(row.role)
            expected = self.known_names + 1, None if names is None else len(names.texts)
            if names is None or (row.position, row.number) != expected or not is_name(row) or row.text in names.number:
                raise Damaged(
                    "names", f"scheduler {self.id}, position {row.position!r}", f"{tuple(row)} is out of order"
                )
            names.add(row.text)
            self.known_names += 1
        if self.known_names != count:
            says = f"{count} names are counted, there are {self.known_names}"
            raise Damaged("schedulers", f"scheduler {self.id}", says)

    def use_settings(self, text: str) -> None:
        try:
            settings = settings_from(text)
        except ValueError as error:
            raise Damaged("schedulers", f"scheduler {self.id}", str(error)) from error
        if not 1 <= settings.policy < len(self.policies.texts):
            raise Damaged("schedulers", f"scheduler {self.id}", f"no policy has the number {settings.policy}")
        self.settings = settings
        self.trial = settings.trial if settings.trial.active else None

    def check_task(self, row: TaskRow, tasks: int) -> TaskRow:
        """A task that was counted, and whose numbers have names; not every one has a checksum that would show it."""
        if row.task > tasks:
            raise Damaged(
                "schedulers", f"scheduler {self.id}", f"{tasks} tasks are counted, and there is task {row.task}"
            )
        kinds, options, policies = len(self.kinds.texts), len(self.options.texts), len(self.policies.texts)
        if row.kind >= kinds or max(row.option, row.own or 0) >= options or row.policy >= policies:
            says = f"no names for kind {row.kind}, option {row.option} and policy {row.policy}, or one of them"
            raise Damaged("tasks", f"scheduler {self.id}, task {row.task}", says)
        if row.features is not None and (why := feature_fault(row.features)):
            raise Damaged("tasks", f"scheduler {self.id}, task {row.task}", why)
        return row

    def fold_backlog(self, until: int = 0) -> None:
        """Learn from what was read; what should be there and is not, is missing."""
        self.fit(self.fold)
        self.fold.take(self.backlog)
        if self.fold.position < until:
            self.fold.miss(until)
        self.backlog = []

    @property
    def goal(self) -> Goal:
        """What the scheduler aims at."""
        return goal_in(self.fold.policy, self.kinds.texts)

    def policy_of(self, text: str) -> Policy:
        """The policy that a text stands for."""
        return self.given_policies[text] if text in self.given_policies else policy_from(text)

    def check_memory(self, text: str) -> None:
        """Refuse a policy that looks at features, and takes too much memory for as many options as there are."""
        policy, features, options = self.policy_of(text), len(self.features.texts), self.fold.size.options
        if features == 0 or options <= FEW_OPTIONS or not looks_at_features(policy):
            return
        few, twice = (bytes_of(policy, number, feature_room(features)) for number in (FEW_OPTIONS, 2 * FEW_OPTIONS))
        needed = few + (twice - few) * (options / FEW_OPTIONS - 1.0)
        if needed > MOST_BYTES:
            has = f"this scheduler has {len(self.options.texts):,} options, and tasks with features"
            takes = f"that would take {needed / 1e9:,.1f} GB of memory, and {MOST_BYTES / 1e9:g} are allowed"
            raise BadParameter(f"policy {text}: {has}; {takes}: take another policy, or several schedulers")

    def new_fold(self, number: int) -> Fold:
        """An empty fold for one of the scheduler's policies."""
        text = self.policies.texts[number]
        try:
            policy = self.policy_of(text)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            if isinstance(error, Error):
                raise
            raise Damaged(
                "names", f"scheduler {self.id}, policy {number}", f"{text!r} is no policy: {error}"
            ) from error
        fold = Fold(policy, number, self.seed_key, self.engine, self.features.number)
        self.fit(fold)
        return fold

    def fit(self, fold: Fold) -> None:
        """Room for all that has a name."""
        fold.fit(len(self.kinds.texts), len(self.options.texts), len(self.features.texts))

    def restore(self, tx: Transaction, header: Header) -> None:
        """Start from the snapshot; the log alone would do."""
        self.advance(self.fold, tx.snapshot(self.id), header.reports)
        self.saved = self.fold.position
        self.snapshot_due = self.saved + self.snapshot_spacing()

    def snapshot_spacing(self) -> int:
        """So many entries of the log that a snapshot costs a few per cent of what they did."""
        whole = self.fold.bytes
        every = SNAPSHOT_EVERY // (WITH_FEATURES if self.fold.size.features else 1)
        written = min(whole, TOUCHED_PER_ENTRY * self.fold.position)
        return max(every, whole // LOOKED_THROUGH_PER_ENTRY + written // WRITTEN_PER_ENTRY)

    def want_snapshot(self) -> None:
        """Have one saved after this transaction."""
        self.snapshot_due = -1

    def snapshot_worthwhile(self) -> bool:
        """Whether one is due for what there is to be saved now; the next is due after as many entries again."""
        wanted, position, spacing = self.snapshot_due < 0, self.fold.position, self.snapshot_spacing()
        due = wanted or position - self.saved >= spacing
        self.snapshot_due = (position if due else self.saved) + spacing
        return due

    def save(self, tx: Transaction, name: str) -> int:
        """Keep what is known, unless the store knows better: it was put back, or something forgotten; where that is."""
        header = tx.open(name)
        if header is None or header.id != self.id or header.reports < self.fold.position:
            return self.saved
        if settings_from(tx.settings(self.id)).forgotten != self.forgotten:
            return self.saved
        tx.save(self.id, self.fold.snapshot())
        return self.fold.position

    def fold_before(self, tx: Transaction, policy: int, entry: int, explained: Snapshot | None) -> Fold:
        """A fold for one of the policies, from the latest state at hand that is not after an entry of the log."""
        fold = self.new_fold(policy)
        for snapshot in (tx.snapshot(self.id), explained):
            self.advance(fold, snapshot, entry)
        return fold

    def advance(self, fold: Fold, snapshot: Snapshot | None, until: int) -> None:
        """Bring a fold to where a snapshot is, if that is further, not too far, its policy's, and sound."""
        if snapshot is None or snapshot.policy != fold.number:
            return
        try:
            if not fold.position < snapshot.number <= until:
                return
            if any(map(int.__gt__, (snapshot.kinds, snapshot.options, snapshot.features), fold.size)):
                raise ValueError("it has more kinds, options and features than there are")
            fold.restore(snapshot)
        except Exception as error:  # whatever damaged bytes may lead to
            log.warning("a snapshot cannot be used, the log is read from its start: %s", error)
        self.fit(fold)

    def name(self, role: str, text: str) -> int:
        """The number of a name, a new one if it is new."""
        names = self.roles[role]
        if text not in names.number:
            self.check_room(role == "kind", role == "option")
            self.known_names += 1
            self.added.append(NameRow(self.known_names, role, len(names.texts), text))
            names.add(text)
            if role != "policy":
                self.fit(self.fold)
        return names.number[text]

    def name_features(self, texts: Iterable[str]) -> None:
        """Number the features that are new, in the order in which they come; none if there are too many."""
        for name in self.new_features(texts):
            self.name("feature", name)

    def new_features(self, texts: Iterable[str]) -> list[str]:
        """Names of features that have no number yet, unless there are too many."""
        named = dict.fromkeys(name for text in texts for name in features_in(text))
        new = [name for name in named if name not in self.features.number]
        if len(self.features.texts) + len(new) > MOST_FEATURES:
            has = f"feature {new[-1]!r} is new, and this scheduler knows {len(self.features.texts)} others already"
            raise BadTask(f"{has}; {MOST_FEATURES} are allowed: use names that come again, or several schedulers")
        return new

    def check_room(self, kinds: int, options: int) -> None:
        """Refuse so many new names if what is learned about them would be too large for memory."""
        known_kinds, known_options = len(self.kinds.texts), len(self.options.texts)
        if (kinds or options) and self.fold.room_for(known_kinds + kinds, known_options + options).cells > MOST_CELLS:
            has = f"this scheduler knows {known_kinds:,} kinds and {known_options:,} options already"
            most = f"kinds × options, each rounded up to a power of two, may be {MOST_CELLS:,}"
            raise BadTask(f"{has}, and {most}; use names that come again, or several schedulers")

    def offer(self, kind: str, options: Sequence[Any]) -> Offer:
        """The options on offer that are not retired; remembered, because most offers come again."""
        try:
            asked = (kind, *options, *map(type, options))  # types, because 1 == 1.0 == True
            offer = self.offers.get(asked)
        except TypeError:  # no sequence, or something in it that is no scalar
            asked, offer = None, None
        if offer is None:
            offer = self.new_offer(kind, options)
            if len(self.offers) >= MOST_OFFERS:
                self.offers.clear()
            self.offers[asked] = offer
        return offer

    def new_offer(self, kind: str, options: Sequence[Any]) -> Offer:
        texts = option_texts(options)
        check_text("kind", kind)
        check_declared(self.settings.declared, kind, texts)
        retired = self.retired(kind)
        usable = [text for text in texts if text not in retired]
        if not usable:
            names = ", ".join(texts[:10])
            raise BadTask(f"kind {kind!r}: every option on offer is retired ({names}); restore one, or offer another")
        self.check_room(kind not in self.kinds.number, sum(text not in self.options.number for text in usable))
        numbers = [self.name("option", text) for text in usable]
        return offer_of(self.name("kind", kind), numbers)

    def baseline(self, kind: str, offer: Offer, usual: str | None) -> int | None:
        """What a task is held out with; None if that is not known, not on offer, retired, or keeps failing."""
        text = self.settings.trial.usual(kind) if usual is None else usual
        number = None if text is None else self.options.number.get(text)
        sound = number is not None and number in offer.numbers and not self.fold.benched(offer.kind, number)
        return number if sound else None

    def guard_of(self, trial: TrialSettings) -> Guard:
        """What the guard knows; from the start of the log, if something of it was changed."""
        as_of = trial.since, self.forgotten
        if self.guard is None or self.guard_as_of != as_of:
            self.guard, self.guard_as_of = Guard(trial.since), as_of
        return self.guard

    def retired(self, kind: str) -> set[str]:
        """Options that are not to be chosen for a kind."""
        return {option for where, option in self.settings.retired if where in (None, kind)}

    def option(self, number: int) -> Any:
        """The option as the user wrote it."""
        while len(self.values) <= number:
            self.values.append(json.loads(self.options.texts[len(self.values)]))
        return self.values[number]


def bytes_of(policy: Policy, options: int, features: int) -> int:
    """How much memory a state takes that knows one kind."""
    return sum(array.nbytes for _, array in states.arrays(states.empty(policy, 1, options, features)))


def is_name(row: NameRow) -> bool:
    """Whether the text is what a name of that role can be."""
    if row.role == "policy":
        return type(row.text) is str
    try:
        check_text(row.role, row.text)
        return row.role != "option" or option_text(json.loads(row.text)) == row.text
    except (ValueError, RecursionError):
        return False
