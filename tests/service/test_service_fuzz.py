"""Bad input: whatever schemathesis makes of the service's own description, no answer is a fault of the service.

SCHEMATHESIS_EXAMPLES sets how many examples each operation gets; `make soak` runs more than ten thousand cases.
FUZZED_REQUESTS sets how many raw requests are made up; `make soak` runs a million.
"""

from __future__ import annotations

import logging
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from service_process import ServiceProcess, store_at
from service_raw import ask, broken_request, random_request, send_only
from waiting import wait_until
from worthwhile.live.stores import open_store
from worthwhile.service.tokens import create_token

RUN = "from schemathesis.cli import schemathesis; schemathesis()"
# All checks of single requests but one: that whatever fits its schema is accepted. No schema says that an option was on
# offer, or which policies there are.
CHECKS = ",".join(
    f"{subject}_conformance" for subject in ("status_code", "content_type", "response_headers", "response_schema")
)
CHECKS += ",not_a_server_error,negative_data_rejection,missing_required_header,unsupported_method,ignored_auth"
EXAMPLES = os.environ.get("SCHEMATHESIS_EXAMPLES", "5")
REQUESTS = int(os.environ.get("FUZZED_REQUESTS", "3000"))
AT_ONCE = 20  # requests of one connection, sent without waiting for answers
LAST = b"GET /v1/health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"


@pytest.mark.slow
def test_schemathesis_finds_no_fault(tmp_path: Path) -> None:
    store = open_store(store_at(tmp_path))
    token = create_token(store, "all", ["admin"])
    store.close()
    with ServiceProcess(store_at(tmp_path) + "?synchronous=normal", "--no-access-log") as running:
        command = [
            sys.executable, "-c", RUN, "run", f"{running.url}/v1/openapi.json", "--checks", CHECKS,
            "--phases", "coverage,fuzzing", "--max-examples", EXAMPLES, "--seed", "1", "--no-color",
            "--header", f"Authorization: Bearer {token}",
        ]  # fmt: skip
        found = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
        assert running.get("/v1/health").status_code == 200
    assert found.returncode == 0, found.stdout[-3000:] + found.stderr[-2000:]
    cases = re.search(r"(\d+) generated", found.stdout)
    assert cases is not None
    logging.getLogger(__name__).info("%s cases", cases[1])  # shown by -o log_cli=true -o log_cli_level=INFO
    assert int(cases[1]) > 20 * int(EXAMPLES)
    assert "Traceback" not in "".join(running.lines)


def test_no_request_without_a_token_finds_a_fault(tmp_path: Path) -> None:
    rng, orderly = random.Random(1), 0
    store = open_store(store_at(tmp_path))
    reader = {"authorization": f"Bearer {create_token(store, 'eyes', ['read'])}"}
    store.close()
    with ServiceProcess(store_at(tmp_path), "--no-access-log") as running:
        for _ in range(0, REQUESTS, 2 * AT_ONCE):
            answers = ask(running.port, b"".join(random_request(rng) for _ in range(AT_ONCE)) + LAST)
            orderly += len(re.findall(rb"HTTP/1.1 [2-5]\d\d ", answers)) - 1
            for _ in range(AT_ONCE):
                send_only(running.port, broken_request(rng))
        counts = answers_of(running, reader)
        running.stop()
    logging.getLogger(__name__).info("%s requests, %s of them orderly: answers %s", REQUESTS, orderly, counts)
    assert orderly >= 0.45 * REQUESTS
    assert not [status for status in counts if status >= 500], "".join(running.lines)[-3000:]
    assert "Traceback" not in "".join(running.lines)


def answers_of(running: ServiceProcess, reader: dict[str, str]) -> dict[int, int]:
    """How many answers of which status the service counts, once it has nothing to do any more."""

    def counts() -> dict[int, int]:
        found: dict[int, int] = {}
        text = running.get("/metrics", headers=reader).text
        for route, status, count in re.findall(r'requests_total{.*route="(.*)",status="(\d+)"} (\d+)', text):
            if route != "/metrics":
                found[int(status)] = found.get(int(status), 0) + int(count)
        return found

    seen = [counts()]

    def settled() -> bool:
        seen.append(counts())
        return seen[-1] == seen[-2]

    wait_until(settled, "the service to have answered")
    return seen[-1]
