"""Tasks that run: decided, executed in processes of this machine or on a cluster, metered and reported."""
