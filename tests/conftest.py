"""How the tests draw their examples: the same ones in every run, so that a red test is red for everyone."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "worthwhile",
    deadline=None,
    max_examples=25,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("soak", parent=settings.get_profile("worthwhile"), max_examples=2_000, derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "worthwhile"))
