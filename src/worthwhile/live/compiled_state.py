"""A policy and its state in one box that stays on numba's side: handing over sixteen arrays takes longer than deciding.

Imported by the compiled engine only, because it imports numba.
"""

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.experimental import structref


@structref.register
class HolderType(types.StructRef):
    """What numba knows of a `Holder`."""


class Holder(structref.StructRefProxy):
    """`policy`, `state` and `totals`, for machine code to read."""

    def __new__(cls, policy: Any, state: Any, totals: Any) -> Any:
        return structref.StructRefProxy.__new__(cls, policy, state, totals)  # type: ignore[no-untyped-call]


structref.define_proxy(Holder, HolderType, ["policy", "state", "totals"])  # type: ignore[no-untyped-call]
