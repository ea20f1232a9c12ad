"""Schedulers inside of other libraries: a module for each, with an extra of its own. Nothing of ours imports them."""
