"""The command line: one file per command; a command imports its feature only when it is called."""
