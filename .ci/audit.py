"""Does a dependency have a known vulnerability? `make audit` asks pip-audit and says what its answer is worth.

pip-audit ends with 0 when it could look nothing up, as behind a mirror that has packages and no advisories, and with 1
when it crashes: neither says anything about the packages, so its report is read, not its exit code.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

OWN = "worthwhile"  # not a dependency
AWAY = re.compile(r"network|connect|timeout|timed out|resolve|offline|failed to fetch|HTTPError", re.IGNORECASE)


def report_of(command: list[str]) -> dict[str, Any]:
    """What pip-audit found; its last words if it could not ask."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "audit.json"
        ended = subprocess.run(
            [*command, "--format", "json", "--output", str(file)], stderr=subprocess.PIPE, text=True, check=False
        )
        if file.exists():
            return dict(json.loads(file.read_text(encoding="utf-8")))
    lines = ended.stderr.strip().splitlines() or [f"pip-audit ended with {ended.returncode}"]
    return {"dependencies": [], "trouble": lines[-1]}


def verdict(report: dict[str, Any]) -> tuple[int, str]:
    """The exit code, and why: a database that is away is no failure, since nobody here can mend it."""
    trouble = report.get("trouble", "")
    if trouble and not AWAY.search(trouble):
        return 2, f"NOT AUDITED: pip-audit did not run: {trouble}"
    packages = [package for package in report["dependencies"] if package["name"] != OWN]
    skipped = [package["name"] for package in packages if "skip_reason" in package]
    looked_up = len(packages) - len(skipped)
    found = [
        f"{package['name']} {package['version']}: {advisory['id']}, "
        f"mended in {', '.join(advisory['fix_versions']) or 'no version yet'}"
        for package in packages
        for advisory in package.get("vulns", [])
    ]
    if found:
        return 1, "\n".join(["Known vulnerabilities:", *found])
    if not looked_up:
        seen = trouble or f"none of {len(skipped)} packages could be looked up"
        return 0, f"NOT AUDITED: the advisory database was not reached from here ({seen})."
    unknown = f" Not looked up: {', '.join(skipped)}." if skipped else ""
    return 0, f"No known vulnerability in {looked_up} packages.{unknown}"


if __name__ == "__main__":
    code, text = verdict(report_of(sys.argv[1:]))
    sys.stdout.write(text + "\n")
    sys.exit(code)
