"""The conformance kit: does a policy or an environment of your own keep the rules that everything else relies on?

`check_policy` and `check_environment` say nothing if all is well. Otherwise they raise `BrokenRule`, which names the
rule and shows the values that break it.
"""

from worthwhile.testing.environments import check_environment
from worthwhile.testing.policies import check_policy

__all__ = ["check_environment", "check_policy"]
