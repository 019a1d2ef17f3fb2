"""How many files and sockets this process may have open: one connection for each worker is kept."""

import resource

# macOS starts programs with 256. More than this no machine has workers, and select() in some
# library may not like high numbers.
WANTED = 4096
# For scanning, the history, the log, actions and what a user interface opens.
RESERVE = 64


def raise_limit() -> int:
    """Raises the soft limit as far as it is useful and allowed; returns what it is now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = WANTED if hard == resource.RLIM_INFINITY else min(WANTED, hard)
    if soft == resource.RLIM_INFINITY or soft >= most:
        return WANTED if soft == resource.RLIM_INFINITY else soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    except (OSError, ValueError):  # a sandbox
        return soft
    return most
