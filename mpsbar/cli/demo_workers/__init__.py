"""Small real workers for `mpsbar demo`: scripts, each run in a process of its own."""
