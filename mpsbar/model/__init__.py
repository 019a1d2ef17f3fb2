"""What we know: immutable values, bytes and seconds, None for what could not be read. Pure."""
