"""One self-contained HTML page: now, the recorded past, and the dtype table."""
