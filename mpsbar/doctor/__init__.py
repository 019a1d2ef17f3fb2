"""Is it set up well? One Python's torch looked at from a child process, judged and described."""
