"""Text from other processes made fit to be shown: names, arguments and paths are hostile."""

REPLACED = "\N{REPLACEMENT CHARACTER}"


def printable(text: str, most: int = 300) -> str:
    """One line: no control characters, no terminal escapes, no end-of-line tricks."""
    if text.isprintable():
        return text[:most]
    return "".join(c if c.isprintable() else REPLACED for c in text[:most])
