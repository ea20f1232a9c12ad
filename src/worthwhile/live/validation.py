"""What comes from outside, checked: names of kinds and options, keys, rewards, costs, seconds."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from worthwhile.errors import BadFeedback, BadParameter, BadTask, Error
from worthwhile.problem import LARGEST, SMALLEST

Option = str | int | float | bool | None  # any JSON scalar

MOST_OPTIONS = 1000  # per decision
LONGEST_NAME = 200  # bytes of UTF-8


def option_text(option: Any) -> str:
    """An option as JSON, which keeps 1, 1.0, "1", true and null apart."""
    if isinstance(option, np.generic):
        option = option.item()
    if not isinstance(option, str | int | float | bool | None):
        raise BadTask(f"option {option!r}: an option is text, a number, true, false or null")
    if isinstance(option, float):
        if not math.isfinite(option):
            raise BadTask(f"option {option!r}: a number must be finite")
        option += 0.0  # −0.0 is 0.0
    text = json.dumps(option, ensure_ascii=False)
    check_text("option", text)
    return text


def check_text(name: str, text: Any, error: type[Error] = BadTask) -> str:
    """A name that every store can keep."""
    if not isinstance(text, str) or not text:
        raise error(f"{name} {text!r}: it must be text, and not empty")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise error(f"{name} {text!r}: it has a character that is no Unicode text") from None
    if size > LONGEST_NAME:
        raise error(f"{name} {text[:30]!r}… has {size} bytes; at most {LONGEST_NAME} are allowed")
    if "\0" in text:
        raise error(f"{name} {text!r}: it must not contain the character \\0")
    return text


def option_texts(options: Sequence[Any]) -> tuple[str, ...]:
    """The options on offer: at least one, none twice, not too many."""
    if isinstance(options, str | bytes):
        raise BadTask(f"options = {options!r}; give a list of options")
    if len(options) == 0:
        raise BadTask("no options; offer at least one")
    if len(options) > MOST_OPTIONS:
        raise BadTask(f"{len(options)} options; a task can have at most {MOST_OPTIONS}")
    texts = tuple(map(option_text, options))
    if len(set(texts)) < len(texts):
        raise BadTask(f"option {next(text for text in texts if texts.count(text) > 1)} is offered twice")
    return texts


def feedback(name: str, value: Any) -> float:
    """A reward or a cost: a finite number; a cost is above 0."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise BadFeedback(f"{name} = {value!r}; it must be a number")
    try:
        number = float(value) + 0.0
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise BadFeedback(f"{name} = {value!r}; it must be a finite number")
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
    if not is_number or not 0.0 <= float(value) <= LARGEST:
        raise BadParameter(f"{name} = {value!r}; it must be a number, 0 or more")
    return float(value) + 0.0
