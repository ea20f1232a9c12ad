"""The reference of the Python names, from their signatures and docstrings."""

from __future__ import annotations

import dataclasses
import inspect
import re
import typing
from collections.abc import Iterator
from typing import Any

import worthwhile
from reference_text import page, table
from worthwhile import testing
from worthwhile.live.scheduler import Scheduler

WIDTH = 110  # of a signature on one line
DOCTEST = r"(?:^>>> .*\n(?:^(?!$).*\n)*\n*)+"


def plain(annotation: Any) -> str:
    """A type without the modules of its names: Scheduler, not worthwhile.live.scheduler.Scheduler."""
    text = getattr(annotation, "__forward_arg__", annotation)
    text = text if isinstance(text, str) else getattr(text, "__name__", str(text))
    return re.sub(r"(?:[a-z_]+\.)+([A-Z]\w*)", r"\1", text).replace("'", "")


def parameter(one: inspect.Parameter) -> str:
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}.get(one.kind, "")
    typed = "" if one.annotation is one.empty else f": {plain(one.annotation)}"
    return stars + one.name + typed + ("" if one.default is one.empty else f" = {one.default!r}")


def signature(thing: Any, name: str) -> str:
    """As one would write the call, a parameter a line if it is long."""
    if inspect.isclass(thing) and issubclass(thing, Exception):
        return name
    found = inspect.signature(thing)
    named = [each for each in found.parameters.values() if each.name != "self"]
    lines = [parameter(each) for each in named]
    keywords = [place for place, each in enumerate(named) if each.kind is inspect.Parameter.KEYWORD_ONLY]
    if keywords and not any(line.startswith("*") for line in lines):
        lines.insert(keywords[0], "*")
    nothing = inspect.isclass(thing) or found.return_annotation in (found.empty, None, "None")
    answer = "" if nothing else f" -> {plain(found.return_annotation)}"
    text = f"{name}({', '.join(lines)}){answer}"
    return text if len(text) <= WIDTH else f"{name}(\n" + "".join(f"    {line},\n" for line in lines) + f"){answer}"


def words(thing: Any) -> str:
    """The docstring as Markdown, its examples as code."""
    text = (inspect.getdoc(thing) or "") + "\n"
    return re.sub(DOCTEST, lambda found: f"```pycon\n{found[0].strip()}\n```\n\n", text, flags=re.M).strip()


def methods(kind: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties that are its own, in the order of the file."""
    for name, value in vars(kind).items():
        if not name.startswith("_") and (
            inspect.isfunction(value) or isinstance(value, (property, classmethod, staticmethod))
        ):
            yield name, value


def documented(name: str, thing: Any, level: str = "##") -> str:
    code = f"```py\n{signature(thing, name) if callable(thing) else name}\n```"
    parts = [f"{level} {name}", code, words(thing)]
    if inspect.isclass(thing):
        for method, value in methods(thing):
            function = getattr(value, "fget", None) or getattr(value, "__func__", value)
            shown = f"{name}.{method}" if isinstance(value, property) else signature(function, f"{name}.{method}")
            parts.append(f"### {name}.{method}\n\n```py\n{shown}\n```\n\n{words(function)}".rstrip())
    return "\n\n".join(part for part in parts if part)


def answered() -> list[type]:
    """What the scheduler's methods answer with, beside the public classes."""
    found: dict[str, type] = {}

    def collect(hint: Any) -> None:
        for part in typing.get_args(hint):
            collect(part)
        record = dataclasses.is_dataclass(hint) or hasattr(hint, "_fields")
        if record and hint.__module__.startswith("worthwhile.live") and hint.__name__ not in {*found, *dir(worthwhile)}:
            found[hint.__name__] = hint
            for part in typing.get_type_hints(hint).values():
                collect(part)

    for _, method in methods(Scheduler):
        collect(typing.get_type_hints(method).get("return"))
    return list(found.values())


def api() -> str:
    names = sorted((name for name in dir(worthwhile) if not name.startswith("__")), key=str.lower)
    public = [documented(name, getattr(worthwhile, name)) for name in names]
    kits = [documented(f"testing.{name}", getattr(testing, name)) for name in sorted(testing.__all__)]
    about = (
        "Every public name: `import worthwhile`, then `worthwhile.NAME`. `worthwhile.__version__` is the installed\n"
        "version. [The index](../index.md#the-public-names) says which page explains what."
    )
    answers = [fields(kind) for kind in answered()]
    return page("Python", about, *public, *kits, "## Answers\n\nWhat the scheduler's methods answer with.", *answers)


def fields(kind: type) -> str:
    rows = [[f"`{name}`", f"`{plain(hint)}`"] for name, hint in kind.__annotations__.items()]
    return f"### {kind.__name__}\n\n{first_sentence(words(kind))}\n\n{table(['field', 'type'], rows)}"


def first_sentence(text: str) -> str:
    return text.partition("\n\n")[0]
