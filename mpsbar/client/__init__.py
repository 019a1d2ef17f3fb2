"""Our end of the wire: poll workers and ask them to free their caches."""
