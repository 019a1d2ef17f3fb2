"""Real programs beside mpsbar: `make wild`; five of them in `make test`, five more in `make thorough`."""
