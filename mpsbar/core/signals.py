"""The names of signals on Linux and on a Mac, which number some of them differently. Pure."""

# By both.
_NAMES = {
    1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT", 8: "SIGFPE",
    9: "SIGKILL", 11: "SIGSEGV", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM", 21: "SIGTTIN",
    22: "SIGTTOU", 24: "SIGXCPU", 25: "SIGXFSZ", 26: "SIGVTALRM", 27: "SIGPROF", 28: "SIGWINCH",
}  # fmt: skip
_LINUX_NAMES = _NAMES | {
    7: "SIGBUS", 10: "SIGUSR1", 12: "SIGUSR2", 16: "SIGSTKFLT", 17: "SIGCHLD", 18: "SIGCONT",
    19: "SIGSTOP", 20: "SIGTSTP", 23: "SIGURG", 29: "SIGIO", 30: "SIGPWR", 31: "SIGSYS",
}  # fmt: skip
_MAC_NAMES = _NAMES | {
    7: "SIGEMT", 10: "SIGBUS", 12: "SIGSYS", 16: "SIGURG", 17: "SIGSTOP", 18: "SIGTSTP",
    19: "SIGCONT", 20: "SIGCHLD", 23: "SIGIO", 29: "SIGINFO", 30: "SIGUSR1", 31: "SIGUSR2",
}  # fmt: skip
# What a process that crashes ends by.
CRASHES = ("SIGQUIT", "SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE", "SIGSEGV")


def name_signal(number: int, is_mac: bool | None) -> str | None:
    """Returns its name on the system that the process ran on.

    Returns None if it has none, or if that depends on the system, which is not known.
    """
    names = _NAMES if is_mac is None else _MAC_NAMES if is_mac else _LINUX_NAMES
    return names.get(number)


def name_exit(code: int, platform: str) -> str:
    """Returns how a child process ended, such as SIGSEGV, signal 40 or exit code 3."""
    if code >= 0:
        return f"exit code {code}"
    return name_signal(-code, platform == "darwin") or f"signal {-code}"
