"""The parts of the live scheduler, in the order in which a call passes them.

scheduler → validation → requests → transactor, a group commit → batch → replica → fold, by an engine → stores.
"""
