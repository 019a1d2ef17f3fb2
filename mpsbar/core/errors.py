"""The error that is shown to the user.

It has a module of its own because every start imports it, and importing dataclasses takes 7 ms.
"""


class UserError(Exception):
    """What happened, why, and what to do next; shown as it is, without a traceback."""
