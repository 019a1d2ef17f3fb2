"""The figures of the README, measured anew: `make bench`. Printed, never asserted."""
