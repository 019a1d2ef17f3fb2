"""Real programs beside mpsbar: `make wild`; ten of them in `make test`."""
