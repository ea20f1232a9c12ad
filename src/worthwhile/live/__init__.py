"""The parts of the live scheduler: names → turns → batch → replica → fold, on a store."""
