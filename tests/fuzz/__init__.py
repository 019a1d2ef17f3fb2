"""Everything that reads what others wrote, given anything at all: make fuzz, and hypothesis in make test."""
