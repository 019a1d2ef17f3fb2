"""Will it work? The dtype probe: its operations, the process that runs them, verdicts and text."""
