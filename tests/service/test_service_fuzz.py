"""Bad input: whatever schemathesis makes of the service's own description, no answer is a fault of the service.

SCHEMATHESIS_EXAMPLES sets how many examples each operation gets; `make soak` runs more than ten thousand cases.
"""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from service_process import ServiceProcess, store_at

RUN = "from schemathesis.cli import schemathesis; schemathesis()"
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
EXAMPLES = os.environ.get("SCHEMATHESIS_EXAMPLES", "5")


@pytest.mark.slow
def test_schemathesis_finds_no_fault(tmp_path: Path) -> None:
    with ServiceProcess(store_at(tmp_path) + "?synchronous=normal", "--no-access-log") as running:
        command = [
            sys.executable, "-c", RUN, "run", f"{running.url}/v1/openapi.json", "--checks", CHECKS,
            "--phases", "coverage,fuzzing", "--max-examples", EXAMPLES, "--seed", "1", "--no-color",
        ]  # fmt: skip
        found = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
        assert running.get("/v1/health").status_code == 200
    assert found.returncode == 0, found.stdout[-3000:] + found.stderr[-2000:]
    cases = re.search(r"(\d+) generated", found.stdout)
    assert cases is not None
    logging.getLogger(__name__).info("%s cases", cases[1])  # shown by -o log_cli=true -o log_cli_level=INFO
    assert int(cases[1]) > 20 * int(EXAMPLES)
    assert "Traceback" not in "".join(running.lines)
