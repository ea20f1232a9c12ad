"""The same functions as machine code: numba, with a cache on disk that notices every edit.

A policy's methods and the functions they call stay plain Python. To compile one, a copy is made whose module-level
callees are compiled copies in turn; the originals are never touched. numba's own cache looks at the date of one file.
Ours is a folder named by a hash of everything the machine code depends on: every function's code, every constant it
reads, and the versions of numba, NumPy and Python.
"""

from __future__ import annotations

import dis
import hashlib
import logging
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from worthwhile.errors import BadParameter, CannotCompile, MissingExtra

log = logging.getLogger(__name__)

Replacements = Mapping[str, Any]  # globals, by name: functions and constants
Member = tuple[FunctionType, Replacements]
KEPT_DAYS = 30
ENGINES = ("compiled", "python")
OUTER = {"nogil": True}  # runs of a simulation are threads of one process
# Called from machine code only, so nobody needs a wrapper. Inlined, because a call hands over every array of a state,
# which takes longer than most of these functions do.
INNER = {"forceinline": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
# The outermost function holds every array. To count again who holds them, in each function for each array of a state,
# takes several times as long as a policy does; without, a function cannot make arrays, lists or texts of its own.
UNCOUNTED = {"_nrt": False}
# Nor can it return a view of one. Whoever does is not called: its lines are put in place of the call.
IN_PLACE = {"inline": "always"}
lock = threading.RLock()
compiled: dict[str, MachineCode] = {}


def available() -> bool:
    """Whether numba is installed."""
    from importlib.util import find_spec

    return find_spec("numba") is not None


def engine_named(name: str | None) -> str:
    """The engine of that name; whoever names none gets `compiled` where numba is installed, else `python`."""
    if name is not None and name not in ENGINES:
        raise BadParameter(f"engine = {name!r}; it must be one of {', '.join(ENGINES)}")
    return name or ("compiled" if available() else "python")


def machine_code(function: Callable[..., Any], replace: Replacements, views: Sequence[str] = ()) -> MachineCode:
    """The function as machine code, with the globals named in `replace` taken from there.

    `views` names those that it calls and that return a view of an array.
    """
    if not available():
        raise MissingExtra("the compiled engine (engine='python' needs nothing)", "fast")
    key = fingerprint(function, replace, views)
    with lock:
        if key not in compiled:
            compiled[key] = MachineCode(function, replace, key, views)
        return compiled[key]


class MachineCode:
    """Machine code that does not count who holds an array; it does where it cannot be made without."""

    def __init__(self, function: Callable[..., Any], replace: Replacements, key: str, views: Sequence[str]) -> None:
        self.function, self.replace, self.key, self.views = function, replace, key, views
        members = family(plain(function), replace, set())
        mixed = any(is_machine_code(value) for member in members for _, value in values_read(*member))
        self.uncounted = None if mixed else self.build(counts=False)  # the user's own would not count elsewhere, either
        self.code = self.uncounted or self.build(counts=True)

    def __call__(self, *arguments: Any) -> Any:
        return self.attempt(lambda code: code(*arguments))

    def compile(self, types: tuple[Any, ...]) -> Callable[..., Any]:
        """What to call with arguments of these types, which it does not check."""
        return self.attempt(lambda code: code.compile(types))  # type: ignore[no-any-return]

    def attempt(self, action: Callable[[Any], Any]) -> Any:
        """Do it; if numba cannot make machine code that does not count, with some that does, from now on."""
        from numba.core.errors import NumbaError

        code = self.code
        try:
            return action(code)
        except NumbaError:
            if code is not self.uncounted:
                raise
        with lock:
            self.code = self.build(counts=True) if self.code is code else self.code
        return action(self.code)

    def build(self, counts: bool) -> Any:
        """Nothing is compiled yet: numba waits for the types of the arguments."""
        inner = INNER if counts else INNER | UNCOUNTED
        with lock:  # numba's settings are the process's: nobody else may compile while a cache folder is in them
            return build(self.function, self.replace, {}, inner, OUTER, () if counts else self.views, self.key)


def build(
    function: Callable[..., Any],
    replace: Replacements,
    built: dict[Any, Any],
    inner: Mapping[str, bool],
    outer: Mapping[str, Any],
    views: Sequence[str] = (),
    key: str = "",
) -> Callable[..., Any]:
    """Compile a copy of the function whose callees are compiled copies, each once.

    With a key it is cached, and so is each of its callees that stands in for another: a policy's methods are large,
    and are then the same machine code in every loop.
    """
    original = plain(function)
    if original not in built:
        built[original] = original  # a function that calls itself stays as it is, and numba says what it thinks of that
        # A copy with globals of its own: there numba finds compiled callees, and interpreted code never meets them.
        names = {**original.__globals__, **replace}
        for name, callee, inherited in callees(original, replace):
            own = fingerprint(callee, inherited) if name in replace and name not in views else ""
            names[name] = build(callee, inherited, built, inner, IN_PLACE if name in views else inner, key=own)
        copy = FunctionType(original.__code__, names, original.__name__, original.__defaults__)
        copy.__qualname__ = original.__qualname__
        built[original] = jitted(copy, outer, f"{key}{'' if '_nrt' in inner else '-counts'}" if key else "")
    return built[original]  # type: ignore[no-any-return]


def jitted(function: FunctionType, options: Mapping[str, Any], key: str) -> Any:
    """numba's wrapper for a function, cached in the folder of that name, if it has one."""
    import numba

    folder, settings = cache_folder(key) if key else None, vars(numba.config)
    before, settings["CACHE_DIR"] = settings["CACHE_DIR"], str(folder or "")
    try:
        # error_model: a division by 0 gives inf, without a branch at every division to raise what Python would.
        return numba.njit(error_model="numpy", cache=folder is not None, **options)(function)
    finally:
        settings["CACHE_DIR"] = before


def callees(function: FunctionType, replace: Replacements) -> Iterator[tuple[str, FunctionType, Replacements]]:
    """The module-level functions that a function names, and what to replace in them: the same, within its module.

    Also in a replacement from the module of what it replaces: it stands for a method by calling others.
    """
    for name, original in sorted(globals_read(function).items()):
        value = replace.get(name, original)
        if isinstance(value, FunctionType):
            modules = [function.__globals__, *([getattr(original, "__globals__", None)] if name in replace else [])]
            yield name, value, replace if any(value.__globals__ is module for module in modules) else {}


def globals_read(function: FunctionType) -> dict[str, Any]:
    """The globals that a function reads and their values, those of a module it names (`module.name`) included."""
    values: dict[str, Any] = {}
    for first, *attributes in names_read(function.__code__):
        name, value = first, function.__globals__.get(first)
        for attribute in attributes:
            if isinstance(value, ModuleType):
                name, value = f"{name}.{attribute}", getattr(value, attribute, None)
        if value is not None and not isinstance(value, ModuleType):
            values[name] = value
    return values


@cache
def names_read(code: CodeType) -> frozenset[tuple[str, ...]]:
    """Every global name in a function's code, with the attributes that are asked of it."""
    chains: list[tuple[str, ...]] = []
    follows = False
    for step in instructions(code):
        if step.opname == "LOAD_GLOBAL":
            chains.append((step.argval,))
        elif follows and step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            chains[-1] += (step.argval,)
        follows = step.opname in ("LOAD_GLOBAL", "LOAD_ATTR", "LOAD_METHOD") and bool(chains)
    return frozenset(chains)


def instructions(code: CodeType) -> Iterator[dis.Instruction]:
    """All steps of a function, those of the comprehensions inside it included."""
    yield from dis.get_instructions(code)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from instructions(constant)


def plain(function: Callable[..., Any]) -> FunctionType:
    """Only plain functions can be rebuilt."""
    if not isinstance(function, FunctionType) or function.__closure__:
        raise CannotCompile(
            f"{function!r} is not a plain module-level function or method; engine='python' still runs it"
        )
    return function


def fingerprint(function: Callable[..., Any], replace: Replacements, views: Sequence[str] = ()) -> str:
    """A hash of everything that the machine code of a function depends on."""
    import numba
    import numpy as np

    digest = hashlib.sha256(f"{sys.version} numba {numba.__version__} numpy {np.__version__}".encode())
    digest.update(f"{OUTER} {INNER} {UNCOUNTED}".encode())
    digest.update(f"{IN_PLACE} {views}".encode() if views else b"")
    for text in parts(plain(function), replace, set()):
        digest.update(text.encode())
    return digest.hexdigest()[:20]


def parts(function: FunctionType, replace: Replacements, seen: set[Any]) -> Iterator[str]:
    """Code and constants of a function and, recursively, of all that it calls."""
    for one, replaced in family(function, replace, seen):
        yield f"{one.__module__}.{one.__qualname__}{one.__defaults__}{code_text(one.__code__)}"
        for name, value in values_read(one, replaced):
            yield f"{name}={value_text(value)}"
            yield from parts(value.py_func, {}, seen) if is_machine_code(value) else ()


def family(function: FunctionType, replace: Replacements, seen: set[Any]) -> Iterator[Member]:
    """A function and, recursively, all that it calls, each once."""
    if function not in seen:
        seen.add(function)
        yield function, replace
        for _, callee, inherited in callees(function, replace):
            yield from family(callee, inherited, seen)


def values_read(function: FunctionType, replace: Replacements) -> Iterator[tuple[str, Any]]:
    """The globals that a function reads, by name, and their values or what replaces those."""
    for name, original in sorted(globals_read(function).items()):
        yield name, replace.get(name, original)


def is_machine_code(value: Any) -> bool:
    """Whether it is the user's own machine code, made by numba."""
    return isinstance(getattr(value, "py_func", None), FunctionType)


def value_text(value: Any) -> str:
    """What a constant is to machine code: its bits if it is an array, its fields if it is a class."""
    if isinstance(value, type):
        return f"{value.__qualname__} {getattr(value, '_fields', '')}"
    if hasattr(value, "tobytes"):
        return f"{value.dtype} {value.shape} {value.tobytes().hex()}"
    return repr(value) if isinstance(value, bool | int | float | complex | str | tuple) else type(value).__name__


@cache
def code_text(code: CodeType) -> str:
    """What a code object does, without where it stands."""
    constants = [code_text(value) if isinstance(value, CodeType) else repr(value) for value in code.co_consts]
    return f"{code.co_code.hex()} {constants} {code.co_names} {code.co_varnames}"


def cache_folder(key: str) -> Path | None:
    """Where this machine code is kept between processes; None where nothing can be written.

    The folder is named by the hash, so an edit anywhere leads to another folder, and two versions never mix.
    """
    root = Path(os.environ.get("WORTHWHILE_CACHE") or user_cache())
    folder = root / key
    try:
        if not folder.exists():
            forget_unused(root)
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)  # in use: not to be forgotten
    except OSError as error:
        log.info("no cache of compiled code: %s", error)
        return None
    return folder


def user_cache() -> Path:
    """The platform's folder for caches."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "worthwhile" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "worthwhile"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "worthwhile"


def forget_unused(root: Path) -> None:
    """Drop what no process has used for a month."""
    oldest = time.time() - KEPT_DAYS * 86_400
    for folder in root.glob("*") if root.exists() else ():
        if folder.stat().st_mtime < oldest:
            shutil.rmtree(folder, ignore_errors=True)


def first_cause(message: str) -> str:
    """The line of numba's message that names the cause."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    causes = [line for line in lines if not line.startswith(("Failed in", "During", "File", "- ", "<source", "def "))]
    return next(
        (line for line in reversed(causes) if "rror" in line or "nknown" in line or "nvalid" in line), causes[0]
    )
