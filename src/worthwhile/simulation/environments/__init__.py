"""The worlds that policies are tried in."""

from worthwhile.simulation.environments.base import Drift, Environment, World
from worthwhile.simulation.environments.replay import replay
from worthwhile.simulation.environments.synthetic import drifting, synthetic

__all__ = ["Drift", "Environment", "World", "drifting", "replay", "synthetic"]
