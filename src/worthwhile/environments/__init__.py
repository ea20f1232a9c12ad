"""The worlds that policies are tried in."""

from worthwhile.environments.base import Drift, Environment, World
from worthwhile.environments.replay import read_table, replay
from worthwhile.environments.synthetic import drifting, synthetic

__all__ = ["Drift", "Environment", "World", "drifting", "read_table", "replay", "synthetic"]
