import time

from worthwhile import Outcome


def train(kind, option, payload):
    """Whatever a task does; its option says how much of it."""
    time.sleep(0.001 * option)
    return 1 - 0.5**option  # the reward; the cost is measured


def train_and_look(kind, option, payload):
    """The same; what it saw on the way is what the shorter options would have brought."""
    seen = {epochs: (1 - 0.5**epochs, 0.001 * epochs) for epochs in (1, 5) if epochs < option}
    return Outcome(reward=1 - 0.5**option, cost=0.001 * option, observed=seen)


def prepare():
    """What the first task of a process would pay for: imports, compilation, models to load, caches to fill."""
    time.sleep(0.01)
