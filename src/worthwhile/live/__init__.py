"""The parts of the live scheduler: names → turns → batch → mirror → fold, on a store."""
