"""Proof of a gain: what two groups of tasks tell of each other, and how sure that makes one."""
