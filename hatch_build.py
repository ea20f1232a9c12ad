"""What the package index is told that depends on where the source is published: the README's links, and the URLs.

An index shows the README without the files beside it. With WORTHWHILE_SOURCE, the address of the published repository
(the publishing workflow knows its own), links and images become absolute and lead to the version that is built. Without
it, links become their text and images are left out, since nothing may be promised.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

try:
    from hatchling.metadata.plugin.interface import MetadataHookInterface as Hook
except ImportError:  # outside of a build, for tests
    Hook = object

PAPER = "https://arxiv.org/abs/2402.16463"
IMAGE = re.compile(r"!\[([^\]]*)\]\((?!https?:)([^)]+)\)\n*")
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?:)([^)]+)\)")


def for_index(readme: str, source: str, version: str) -> str:
    """The README as an index can show it."""
    if not source:
        return LINK.sub(r"\1", IMAGE.sub("", readme))
    readme = IMAGE.sub(rf"![\1]({source}/raw/v{version}/\2)\n\n", readme)
    return LINK.sub(lambda found: f"[{found[1]}]({absolute(found[2], source, version)})", readme)


def absolute(target: str, source: str, version: str) -> str:
    """Where a file, a folder or a heading of the README is in the published repository."""
    return f"{source}{target}" if target.startswith("#") else f"{source}/blob/v{version}/{target}"


def urls(source: str, version: str) -> dict[str, str]:
    if not source:
        return {"Paper": PAPER}
    return {
        "Source": source,
        "Documentation": f"{source}/blob/v{version}/docs/index.md",
        "Changelog": f"{source}/blob/v{version}/CHANGELOG.md",
        "Issues": f"{source}/issues",
        "Paper": PAPER,
    }


class Published(Hook):  # type: ignore[misc]
    """Called by hatchling for every wheel and source archive."""

    def update(self, metadata: dict[str, Any]) -> None:
        source = os.environ.get("WORTHWHILE_SOURCE", "").rstrip("/")
        readme = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        text = for_index(readme, source, metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        metadata["urls"] = urls(source, metadata["version"])
