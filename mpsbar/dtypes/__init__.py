"""The dtype probe: its operations, the processes that run them, verdicts, text; compare()."""
