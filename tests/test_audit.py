"""Faces: an audit that could not look anything up does not pass for a clean one, nor for a vulnerability."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path
from typing import Any

AUDIT = runpy.run_path(str(Path(__file__).parents[1] / ".ci" / "audit.py"))
WRITE = "import sys, pathlib; pathlib.Path(sys.argv[-1]).write_text({!r}); sys.exit({})"
CLEAN = {"name": "numpy", "version": "2.0.0", "vulns": []}
SKIPPED = {"name": "apsw", "skip_reason": "Dependency not found on PyPI and could not be audited: apsw (3.51.3.0)"}
ADVISORY = {"id": "CVE-2023-50447", "fix_versions": ["10.2.0"], "aliases": [], "description": ""}
VULNERABLE = {"name": "pillow", "version": "10.0.0", "vulns": [ADVISORY]}


def audit(*packages: dict[str, Any], exit_code: int = 0) -> tuple[int, str]:
    """The verdict on what a program in pip-audit's place writes."""
    text = json.dumps({"dependencies": packages, "fixes": []})
    answer: tuple[int, str] = AUDIT["verdict"](
        AUDIT["report_of"]([sys.executable, "-c", WRITE.format(text, exit_code)])
    )
    return answer


def test_a_vulnerability_fails_the_audit_and_is_named_with_its_remedy() -> None:
    code, text = audit(CLEAN, SKIPPED, VULNERABLE, exit_code=1)
    assert (code, text.splitlines()[1:]) == (1, ["pillow 10.0.0: CVE-2023-50447, mended in 10.2.0"])


def test_an_audit_says_what_it_could_not_look_up() -> None:
    assert audit(CLEAN) == (0, "No known vulnerability in 1 packages.")
    assert audit(CLEAN, SKIPPED) == (0, "No known vulnerability in 1 packages. Not looked up: apsw.")


def test_an_index_without_advisories_is_no_clean_audit() -> None:
    own = {"name": "worthwhile", "skip_reason": "Dependency not found on PyPI"}
    code, text = audit(SKIPPED, own)
    assert code == 0
    assert text.startswith("NOT AUDITED: the advisory database was not reached from here (none of 1 packages")


def test_a_database_that_is_away_is_named_and_fails_nothing() -> None:
    report = AUDIT["report_of"]([sys.executable, "-c", "raise ConnectionError('no such host')"])
    code, text = AUDIT["verdict"](report)
    assert code == 0
    assert text.startswith("NOT AUDITED: ")
    assert "ConnectionError: no such host" in text


def test_a_pip_audit_that_does_not_run_fails_the_audit() -> None:
    report = AUDIT["report_of"]([sys.executable, "-c", "import sys; sys.exit('error: unrecognized arguments')"])
    assert AUDIT["verdict"](report) == (2, "NOT AUDITED: pip-audit did not run: error: unrecognized arguments")
