"""The error that is shown to the user, and the reason that an error of the system gives.

They have a module of their own because every start imports them, and importing dataclasses takes
7 ms.
"""


class UserError(Exception):
    """What happened, why, and what to do next; shown as it is, without a traceback."""


def reason_of(error: BaseException) -> str:
    """Returns why it failed, without the number and the file that str() of an OSError adds."""
    return getattr(error, "strerror", None) or str(error)
