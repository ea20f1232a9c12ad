"""The conformance kit: does a policy, environment or store of your own keep the rules that all else relies on?

`check_policy`, `check_environment` and `check_store` say nothing if all is well. Otherwise they raise `BrokenRule`,
which names the rule and shows the values that break it.
"""

from worthwhile.testing.environments import check_environment
from worthwhile.testing.policies import check_policy
from worthwhile.testing.stores import check_store

__all__ = ["check_environment", "check_policy", "check_store"]
