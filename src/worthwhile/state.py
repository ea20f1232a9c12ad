"""What a policy remembers: a NamedTuple of arrays, each shaped (1,), (kinds,), (options,) or (kinds, options).

One that looks at features may also have tables, like reports it has kept or nodes of trees: their sides are of a fixed
length, or as long as there is room for kinds, options or features. Without room for features they are empty. That rule
is all that growth, storage and compilation need to know about a policy. NamedTuples may nest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

LARGEST, SMALLEST = 1e100, 1e-100  # of a reward, a cost, and their means

State = TypeVar("State", bound=tuple[Any, ...])

PART, SAMPLE = 1 << 20, 1000  # bytes; cells that tell which value is frequent

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.uint32]


class Size(NamedTuple):
    """How many kinds and options a state has room for."""

    kinds: int
    options: int


class HasInit(Protocol):
    """Anything that can make an empty state of a given size; whoever looks at features has a third parameter."""

    def init(self, kinds: int, options: int) -> Any: ...


def empty(policy: Any, kinds: int, options: int, features: int = 0) -> Any:
    """The state before the first task; `features` must be 0 for a policy that does not look at any."""
    return policy.init(kinds, options, features) if features else policy.init(kinds, options)


def arrays(state: tuple[Any, ...], path: str = "") -> Iterator[tuple[str, npt.NDArray[Any]]]:
    """Every array of a state with its dotted name, in order."""
    for name, value in zip(state._fields, state, strict=True):  # type: ignore[attr-defined]
        if isinstance(value, tuple):
            yield from arrays(value, f"{path}{name}.")
        else:
            yield path + name, value


def grow(policy: HasInit, state: State, kinds: int, options: int, features: int = 0) -> State:
    """A larger state with everything learned so far in its corner; it decides as the old one did."""
    larger: State = empty(policy, kinds, options, features)
    for (_, new), (_, old) in zip(arrays(larger), arrays(state), strict=True):
        new[tuple(slice(0, length) for length in old.shape)] = old
    return larger


def freeze(state: State) -> State:
    """The same state with every array read-only; `choose` and `judge` must not mind."""
    for _, array in arrays(state):
        array.flags.writeable = False
    return state


def same(state: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Whether two states hold the same bits."""
    pairs = zip(arrays(state), arrays(other), strict=True)
    return all(a.dtype == b.dtype and np.array_equal(a.view(np.uint8), b.view(np.uint8)) for (_, a), (_, b) in pairs)


def layout(state: tuple[Any, ...]) -> str:
    """What its bytes mean: the arrays by name, type and shape."""
    return " ".join(f"{name}:{array.dtype.str}{array.shape}" for name, array in arrays(state))


def parts(state: tuple[Any, ...], size: int = PART) -> Iterator[bytes]:
    """The state exactly to the bit, in parts of so many bytes: all of it at once may be more than there is room for."""
    part = bytearray()
    for _, array in arrays(state):
        for values in packed(np.ascontiguousarray(array).reshape(-1)):
            rest = bytes_of(values)
            while rest:
                taken = rest[: size - len(part)]
                part += taken
                rest = rest[len(taken) :]
                if len(part) == size:
                    yield bytes(part)
                    part.clear()
    if part:
        yield bytes(part)


def packed(array: npt.NDArray[Any]) -> Iterator[npt.NDArray[Any]]:
    """Its most frequent value with the few cells that differ, or all cells: most of a large state was never touched."""
    bits = array.view(f"u{array.itemsize}")
    values, counts = np.unique(bits[:: max(1, len(bits) // SAMPLE)], return_counts=True)
    usual = values[counts.argmax()] if len(bits) else 0  # no cell, where there are no features
    different = np.flatnonzero(bits != usual).astype(np.uint32)
    few = 2 * len(different) < len(bits)
    yield np.array([few, usual, len(different)], np.uint64)
    yield from (different, bits[different]) if few else (bits,)


def bytes_of(array: npt.NDArray[Any]) -> memoryview:
    """The array itself, byte by byte."""
    return memoryview(array.view(np.uint8).data)


def fill(state: tuple[Any, ...], stored: Iterable[bytes]) -> None:
    """Put what `parts` gave into a state of the same layout; `ValueError` if it cannot be that."""
    reader = Reader(stored)
    for name, array in arrays(state):
        bits = np.empty(array.size, f"u{array.itemsize}") if not array.flags.c_contiguous else array.reshape(-1)
        bits = bits.view(f"u{array.itemsize}")
        few, usual, count = reader.read(np.empty(3, np.uint64), name).tolist()
        if not few:
            reader.read(bits, name)
        elif count > len(bits) or usual > np.iinfo(bits.dtype).max:
            raise ValueError(f"{name} has not so many cells, or other values")
        else:
            places = reader.read(np.empty(count, np.uint32), name)
            values = reader.read(np.empty(count, bits.dtype), name)
            if count and places.max() >= len(bits):
                raise ValueError(f"{name} has no cell {places.max()}")
            if (bits != usual).any():  # as good as never; to write all cells would take memory for them
                bits[:] = usual
            bits[places] = values
        if not array.flags.c_contiguous:
            array[...] = bits.view(array.dtype).reshape(array.shape)
    if reader.has_more():
        raise ValueError("there are more bytes than the state has")


class Reader:
    """Bytes that come in parts."""

    def __init__(self, stored: Iterable[bytes]) -> None:
        self.more, self.part = iter(stored), memoryview(b"")

    def read(self, array: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
        """Fill an array."""
        rest = bytes_of(array)
        while rest:
            self.part = self.part or memoryview(next(self.more, b""))
            if not self.part:
                raise ValueError(f"the bytes end in the middle of {name}")
            taken = self.part[: len(rest)]
            rest[: len(taken)] = taken
            self.part, rest = self.part[len(taken) :], rest[len(taken) :]
        return array

    def has_more(self) -> bool:
        return bool(self.part) or any(self.more)


def to_bytes(state: tuple[Any, ...]) -> bytes:
    """The state exactly to the bit."""
    return b"".join(parts(state))


def from_bytes(policy: HasInit, stored: bytes, size: tuple[int, ...]) -> Any:
    """The state that `to_bytes` stored, of so many kinds, options and, if it has room for any, features."""
    state = empty(policy, *size)
    fill(state, [stored])
    return state


def price_in(state: tuple[Any, ...]) -> Any:
    """The array (1,) with the policy's price θ: the one that is called `price`, wherever it is; None without one."""
    return next((array for name, array in arrays(state) if name.rpartition(".")[2] == "price"), None)
