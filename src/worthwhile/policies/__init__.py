"""The policies: one small file each; `registry` finds them by name."""
