"""The error of a person's request, apart from all else: dataclasses would cost each start 7 ms."""


class UserError(Exception):
    """What happened, why, and what to do next; shown as it is, without a traceback."""
