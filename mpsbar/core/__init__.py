"""What we know: values and pure rules; bytes and seconds, None for what could not be read."""
