"""Our end of the wire: poll workers, ask them to free memory, connect environments."""
