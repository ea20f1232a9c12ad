"""The `worthwhile` command."""
