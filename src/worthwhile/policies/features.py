"""What a policy sees of a task besides its kind: its features as numbers, one for every feature ever used.

A missing one is NaN, true is 1. A category is a number beyond all others, made from its text: equal texts have equal
numbers, and that is all it says.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple
from zlib import crc32

import numpy as np

from worthwhile.state import Floats

Feature = float | int | bool | str | None  # None: missing
CATEGORY = 2.0**1000  # numbers from here on stand for texts
MISSING = math.nan
LEAST_ROOM = 8  # features that a policy has room for, once there is one; the room doubles when it is full


def feature_number(value: Feature) -> float:
    """A feature as a policy sees it.

    >>> feature_number(12), feature_number(True), feature_number("crypto") == feature_number("crypto")
    (12.0, 1.0, True)
    """
    if value is None:
        return MISSING
    if isinstance(value, str):
        return CATEGORY * (1.0 + crc32(value.encode()) * 2.0**-32)
    return float(value) + 0.0


def feature_vector(features: Mapping[str, Feature], number: Mapping[str, int], room: int) -> Floats:
    """All features in the order of their numbers, with so much room; those without a number are left out.

    >>> feature_vector({"clauses": 12}, {"family": 0, "clauses": 1}, 3)
    array([nan, 12., nan])
    """
    vector = np.full(room, MISSING)
    for name, value in features.items():
        if name in number:
            vector[number[name]] = feature_number(value)
    return vector


def room_for(features: int) -> int:
    """How many features a state has room for that must hold so many: none, or a power of two."""
    return max(LEAST_ROOM, 1 << (features - 1).bit_length()) if features else 0


CHOICE, TRY, NOTHING = "choice", "try", "nothing"  # what features of a task led to


class Condition(NamedTuple):
    """Something of a task that mattered: a feature above a number, up to one, equal to a text, missing, or not."""

    feature: int
    above: float | None = None
    up_to: float | None = None
    equal: bool = False  # to what the task has
    missing: bool | None = None


class ByFeatures(NamedTuple):
    """What the features of a task led to, as a policy tells it to people."""

    effect: str  # CHOICE: another option than the usual one; TRY: a try of one that may be best here; NOTHING
    usual: int  # the option that is best overall, −1 if none is
    conditions: tuple[Condition, ...]  # what mattered, most of all first
    like: float  # reports of the option taken that are like the task
    gain: float  # R − θC that was expected of it beyond the usual one
    believed: float  # how much of what is foretold, from 0 to 1


class FeaturesSoFar(NamedTuple):
    """What features have been good for, as a policy tells it to people."""

    importance: tuple[float, ...]  # by feature; only how they compare matters
    believed: float  # how much of what is foretold, from 0 to 1
    different: tuple[float, ...]  # by feature: of the texts that it has lately had, the share that came once
