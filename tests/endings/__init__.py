"""Real workers ended in every way, and what mpsbar says about each: `make endings`."""
