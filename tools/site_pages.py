"""Put together what the documentation's site is made of, in build/docs: pages as they are, and the files they link to.

    python tools/site_pages.py && zensical build --strict --config-file mkdocs.yml

The folders are those of the repository, so that links lead where they lead in it. A linked file of code becomes a page.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
OUT = ROOT / "build" / "docs"
PROJECT = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
LINK = re.compile(r"(\]\()([^)\s#]+)((?:#[^)\s]*)?\))")
SHOWN = {
    ".py": "python",
    ".toml": "toml",
    ".csv": "text",
    ".jsonl": "json",
    ".cff": "yaml",
    ".ipynb": "json",
    "": "text",
}
SHOWN |= {".conf": "nginx", ".service": "ini", ".html": "html", ".js": "javascript", ".css": "css"}


def pages() -> list[Path]:
    return [*(ROOT / name for name in PROJECT), *sorted(ROOT.glob("docs/**/*.md"))]


def linked(page: Path, text: str) -> Iterator[Path]:
    """The files of the repository that a page links to or shows."""
    for _, target, _ in LINK.findall(text):
        if "://" not in target and not target.startswith("mailto:"):
            yield (page.parent / target).resolve()


def as_page(file: Path) -> bool:
    """Whether a browser would not show it well, and it becomes a page."""
    return file.suffix in SHOWN


def site_text(page: Path, text: str) -> str:
    """With links to code turned into links to the pages that show it."""

    def changed(found: re.Match[str]) -> str:
        before, target, after = found.groups()
        file = (page.parent / target).resolve()
        return f"{before}{target}.md{after}" if "://" not in target and file.is_file() and as_page(file) else found[0]

    return LINK.sub(changed, text)


def code_page(file: Path) -> str:
    """A page that shows a file; the search leaves it out."""
    name = file.relative_to(ROOT).as_posix()
    text = file.read_text(encoding="utf-8").rstrip()
    return f"---\nsearch:\n  exclude: true\n---\n\n# {name}\n\n`````{SHOWN[file.suffix]}\n{text}\n`````\n"


def write(file: Path, text: str) -> None:
    target = OUT / file.relative_to(ROOT)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")


def add(file: Path) -> None:
    """A file that some page links to."""
    if file.is_dir():
        names = "\n".join(f"* `{one.name}`" for one in sorted(file.iterdir()) if not one.name.startswith((".", "_")))
        write(file / "index.md", f"# {file.relative_to(ROOT)}\n\n{names}\n")
    elif as_page(file):
        write(file.with_name(file.name + ".md"), code_page(file))
    elif file.suffix != ".md":
        target = OUT / file.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)


def main() -> None:
    shutil.rmtree(OUT, ignore_errors=True)
    files: set[Path] = set()
    for page in pages():
        text = page.read_text(encoding="utf-8")
        files |= set(linked(page, text))
        write(page, site_text(page, text))
    for file in files:
        add(file)


if __name__ == "__main__":
    main()
