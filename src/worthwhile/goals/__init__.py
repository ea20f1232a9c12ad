"""Goals: what to aim at, the frontier of what can be had at which cost, and suggestions where the ratio is no use."""
