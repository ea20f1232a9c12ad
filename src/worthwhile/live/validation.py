"""What comes from outside, checked: names of kinds and options, features, keys, rewards, costs, seconds."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from worthwhile.errors import BadFeedback, BadParameter, BadTask, Error, UnknownTask
from worthwhile.goals.goal import Goal, goal_of
from worthwhile.live.stores.base import MOST_ATTEMPTS
from worthwhile.policies.features import Feature
from worthwhile.state import LARGEST, SMALLEST

Option = str | int | float | bool | None  # any JSON scalar
PLAIN = frozenset({str, int, float, bool, type(None)})

MOST_OPTIONS = 1000  # per decision
MOST_FEATURES = 256  # of a task, and different ones that a scheduler knows
LONGEST_FEATURES = 4096  # bytes of JSON
LATEST_FEATURES: dict[
    str, Mapping[str, Feature]
] = {}  # by their texts: whoever decides, reports and learns asks for them
END_OF_NUMBERS = 1 << 48  # of tasks
DIGITS = 20  # more than any of them has
LONGEST_NAME = 200  # bytes of UTF-8
LONGEST_REASON = 200  # characters
NONE = "none"  # in place of a number: failures are worth none
LONGEST_SHOWN = 200  # characters of a value in an error


def quoted(value: Any) -> str:
    """A value as an error shows it: short, and whatever its own `repr` does."""
    try:
        text = repr(value)
    except Exception:
        return f"<{type(value).__name__} that cannot be shown>"
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


def plain_option(option: Any) -> Option:
    """An option of one of JSON's own types: one of numpy's, or of the user's own, may do anything when compared."""
    if isinstance(option, np.generic):
        option = option.item()
    plain: Option = option if type(option) in PLAIN else json.loads(option_text(option))
    return plain


def plain_options(options: Any) -> tuple[Option, ...]:
    """The options on offer, which nobody can change any more."""
    if isinstance(options, (str, bytes)):
        raise BadTask(f"options = {quoted(options)}; give a list of options")
    try:
        listed = tuple(options)
    except TypeError:
        raise BadTask(f"options = {quoted(options)}; give a list of options") from None
    return listed if PLAIN.issuperset(map(type, listed)) else tuple(map(plain_option, listed))


def option_text(option: Any) -> str:
    """An option as JSON, which keeps 1, 1.0, "1", true and null apart."""
    if isinstance(option, np.generic):
        option = option.item()
    if not isinstance(option, str | int | float | bool | None):
        raise BadTask(f"option {quoted(option)}: an option is text, a number, true, false or null")
    if isinstance(option, float):
        if not math.isfinite(option):
            raise BadTask(f"option {option!r}: a number must be finite")
        option += 0.0  # −0.0 is 0.0
    try:
        text = json.dumps(option, ensure_ascii=False)
    except ValueError:  # Python writes no number of thousands of digits
        raise BadTask(f"option {quoted(option)}: a number has at most {LONGEST_NAME} digits") from None
    check_text("option", text)
    return text


def as_option(text: str) -> Any:
    """5 is a number, true is true, and what is no JSON scalar is text."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    infinite = isinstance(value, float) and not math.isfinite(value)
    return text if infinite or isinstance(value, list | dict) else value


def check_text(name: str, text: Any, error: type[Error] = BadTask) -> str:
    """A name that every store can keep, as plain text: one of a class of the user's own may do anything."""
    if not isinstance(text, str) or not text:
        raise error(f"{name} {quoted(text)}: it must be text, and not empty")
    plain = "".join([text])
    try:
        size = len(plain.encode())
    except UnicodeEncodeError:
        raise error(f"{name} {plain!r}: it has a character that is no Unicode text") from None
    if size > LONGEST_NAME:
        raise error(f"{name} {plain[:30]!r}… has {size} bytes; at most {LONGEST_NAME} are allowed")
    if "\0" in plain:
        raise error(f"{name} {plain!r}: it must not contain the character \\0")
    return plain


def option_texts(options: Sequence[Any]) -> tuple[str, ...]:
    """The options on offer: at least one, none twice, not too many."""
    if len(options) == 0:
        raise BadTask("no options; offer at least one")
    if len(options) > MOST_OPTIONS:
        raise BadTask(f"{len(options)} options; a task can have at most {MOST_OPTIONS}")
    texts = tuple(map(option_text, options))
    if len(set(texts)) < len(texts):
        raise BadTask(f"option {next(text for text in texts if texts.count(text) > 1)} is offered twice")
    return texts


def feature_text(features: Mapping[str, Any] | None) -> str | None:
    """The features of a task as JSON, in the order given and without those that are missing; None if there are none."""
    known = {} if features is None else plain_features(features)
    if not known:
        return None
    text = json.dumps(known, ensure_ascii=False)
    if len(text.encode()) > LONGEST_FEATURES:
        raise BadTask(f"features of {len(text.encode())} bytes as JSON; at most {LONGEST_FEATURES}: give fewer")
    if len(LATEST_FEATURES) >= MOST_FEATURES:
        LATEST_FEATURES.clear()
    LATEST_FEATURES[text] = known
    return text


def plain_features(features: Mapping[str, Any]) -> dict[str, Feature]:
    """Features with values of JSON's own types, without those that are missing."""
    if not isinstance(features, Mapping):
        raise BadTask(f"features = {quoted(features)}; give a mapping of names to values, like {{'clauses': 12}}")
    plain = {check_text("feature", name): plain_feature(name, value) for name, value in features.items()}
    known: dict[str, Feature] = {name: value for name, value in plain.items() if value is not None}
    if len(known) > MOST_FEATURES:
        raise BadTask(f"{len(known)} features; a task can have at most {MOST_FEATURES}: give those that matter most")
    return known


def plain_feature(name: str, value: Any) -> Feature:
    """A feature of one of JSON's own types."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool) or (isinstance(value, str) and not value):
        plain: Feature = value
        return plain
    if isinstance(value, str):
        return check_text(f"feature {quoted(name)}:", value)
    if not isinstance(value, int | float):
        raise BadTask(f"feature {quoted(name)} = {quoted(value)}; it must be a number, true, false or text")
    value = (
        int.__int__(value) if isinstance(value, int) else float.__float__(value)
    )  # whatever a class of the user's says
    if isinstance(value, float) and not math.isfinite(value):
        raise BadTask(f"feature {quoted(name)} = {value!r}; if it is not known, leave it out, or give None")
    if abs(value) > LARGEST:
        raise BadTask(f"feature {quoted(name)} = {quoted(value)}; at most {LARGEST:g}: use another unit")
    return value if isinstance(value, int) else value + 0.0


def features_in(text: str) -> Mapping[str, Feature]:
    """The features that `feature_text` wrote; `ValueError` if it was not that."""
    known = LATEST_FEATURES.get(text)
    if known is not None:
        return known
    with suppress(ValueError, TypeError, RecursionError):
        features: Mapping[str, Feature] = json.loads(text)
        if feature_text(features) == text:
            return features
    raise ValueError(f"features = {quoted(text)} are not what was written")


def feature_fault(text: str) -> str:
    """Why a text cannot be the features of a task; empty if it can."""
    try:
        features_in(text)
    except ValueError as error:
        return str(error)
    return ""


def feedback(name: str, value: Any) -> float:
    """A reward or a cost: a finite number; a cost is above 0."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise BadFeedback(f"{name} = {quoted(value)}; it must be a number")
    try:
        number = float(value) + 0.0
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise BadFeedback(f"{name} = {quoted(value)}; it must be a finite number")
    if name == "cost" and number <= 0.0:
        raise BadFeedback(f"cost = {value!r}; it must be above 0, or reward per cost means nothing")
    if abs(number) > LARGEST or (name == "cost" and number < SMALLEST):
        limits = f"at most {LARGEST:g}" + (f" and at least {SMALLEST:g}" if name == "cost" else "")
        raise BadFeedback(f"{name} = {value!r}; it must be {limits}: use another unit")
    return number


def both(reward: Any, cost: Any) -> tuple[float | None, float | None]:
    """A reward and a cost, of which one may be missing."""
    if type(reward) is float and type(cost) is float and -LARGEST <= reward <= LARGEST and SMALLEST <= cost <= LARGEST:
        return reward + 0.0, cost
    return None if reward is None else feedback("reward", reward), None if cost is None else feedback("cost", cost)


def not_negative(name: str, value: Any) -> float:
    """An overhead or a lease: 0 or more."""
    is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not is_number or not 0.0 <= value <= LARGEST:
        raise BadParameter(f"{name} = {quoted(value)}; it must be a number, 0 or more")
    return float(value) + 0.0


def yes_or_no(name: str, value: Any) -> bool | None:
    """A setting that is on or off; None for what it was."""
    if value is not None and not isinstance(value, bool):
        raise BadParameter(f"{name} = {quoted(value)}; it must be True or False")
    return value


def goal_said(goal: Any, floor: Any, budget: Any) -> Goal | None:
    """A goal with its floor and its budget, or None if nothing was said of it."""
    if goal is None and floor is None and budget is None:
        return None
    said = goal_of(goal, floor, budget)
    for kind in said.floors:
        check_text("kind", kind, BadParameter)
    return said


def failed_reward_of(value: Any) -> float | str | None:
    """What failures are worth: a number, NONE for none, None for what it was."""
    return value if value is None or (isinstance(value, str) and value == NONE) else worth("failed_reward", value)


def worth(name: str, value: Any) -> float:
    """A number that stands for rewards, in a setting."""
    try:
        return feedback(name, value)
    except BadFeedback as error:
        raise BadParameter(str(error)) from None


def reason_text(reason: Any) -> str | None:
    """Why a task has failed, as text that every store can keep: its beginning; None if there is nothing to say."""
    if not isinstance(reason, str):
        raise BadFeedback(f"reason = {quoted(reason)}; it must be text")
    text = "".join(reason[:LONGEST_REASON]).encode(errors="replace").decode().replace("\0", "?")
    return text.strip() or None


def attempt_number(value: Any) -> int:
    """Which attempt at a task; the first is 0."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < MOST_ATTEMPTS:
        raise BadFeedback(f"attempt = {quoted(value)}; it must be a whole number from 0 to {MOST_ATTEMPTS - 1}")
    return value


def at_least_one(name: str, value: Any) -> int:
    """How many: a whole number that every store can count to."""
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_whole or not 1 <= value < END_OF_NUMBERS:
        raise BadParameter(f"{name} = {quoted(value)}; it must be a whole number, 1 or more")
    return int(value)


def task_number(id: Any) -> int:
    """A task's number from its id: a whole number, or its digits as `decide` gave them."""
    if isinstance(id, str):
        number = int(id) if id.isdecimal() and id.isascii() and id[0] != "0" and len(id) < DIGITS else 0
    else:
        number = int(id) if isinstance(id, int | np.integer) and not isinstance(id, bool) else 0
    if not 0 < number < END_OF_NUMBERS:
        raise UnknownTask(f"no task {quoted(id)}; an id is what decide gave, as task.id")
    return number


def number_of(task: Any) -> int:
    """The same of a task, a line of a list of tasks, or an id."""
    return task_number(getattr(task, "id", task))
