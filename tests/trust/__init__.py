"""Attacks on mpsbar with their figures: make doors, make faults, make soak. Each prints what it tried."""
