"""Will it work? Throwaways run by somebody's own Python: a crash or a hang is an answer."""
