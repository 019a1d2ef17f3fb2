"""What went wrong as one sentence for the person who asked: no fault of the program."""


class UserError(Exception):
    """What happened, why, and what next; shown as it stands, without a traceback."""
