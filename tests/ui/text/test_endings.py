"""Every sentence about an end, and what it rests on, as people read them."""

from typing import get_args

import pytest
from samples import GB

from mpsbar.core.endings import EndEvidence, ExitStatus, Unreadable
from mpsbar.core.verdicts import (
    Basis,
    EndCode,
    EndVerdict,
    build_verdict_json,
    judge_end,
    parse_verdict_json,
)
from mpsbar.ui.text.endings import say_basis, say_briefly, say_signal, say_verdict

METAL = "Caused GPU Hang Error"
ENDS = [
    (EndVerdict("finished", "known", {"code": 0}),
     "finished",
     "train.py finished (exit code 0)"),
    (EndVerdict("exited", "known"),
     "exited, exit code unknown",
     "train.py exited; its exit code is unknown"),
    (EndVerdict("exit_code", "known", {"code": 3}),
     "exit code 3",
     "train.py ended with exit code 3"),
    (EndVerdict("exception", "known", {"type": "ValueError", "text": "bad", "where": "train.py:3"}),
     "ValueError",
     "train.py ended with ValueError: bad at train.py:3"),
    (EndVerdict("exception", "known", {"type": "KeyError", "text": "", "where": ""}),
     "KeyError",
     "train.py ended with KeyError"),
    (EndVerdict("exception", "likely", {"type": "ValueError", "text": "bad", "where": "train.py:3"}),
     "most likely ValueError",
     "train.py failed; the last error that Python printed was ValueError: bad at train.py:3"),
    (EndVerdict("out_of_memory", "known", {"allocated": 20 * GB, "other": GB, "limit": 27 * GB, "tried": 8 * GB, "at": 21 * GB}),
     "out of memory at 21.0 GB",
     "train.py ran out of memory: 20.0 GB allocated, 1.0 GB other, 27.0 GB allowed; it asked for 8.0 GB more"),
    (EndVerdict("out_of_memory", "known", {"limit": 8 * GB, "tried": 9 * GB, "at": 3 * GB}),
     "out of memory at 3.0 GB",
     "train.py ran out of memory: at most 8.0 GB are allowed in one buffer; it asked for 9.0 GB more"),
    (EndVerdict("out_of_memory", "likely", {"at": 3 * GB}, ("exit_status", "last_words")),
     "most likely out of memory at 3.0 GB",
     "train.py ran out of memory at 3.0 GB (the last error that Python printed)"),
    (EndVerdict("out_of_memory", "known"),
     "out of memory",
     "train.py ran out of memory"),
    (EndVerdict("killed_for_memory", "known", {"signal": 9, "reason": "low-swap"}),
     "killed by the system for lack of memory",
     "train.py was killed by the system for lack of memory (low-swap)"),
    (EndVerdict("killed_for_memory", "likely", {"signal": 9}),
     "killed, most likely for lack of memory",
     "train.py was killed (SIGKILL), most likely by the system for lack of memory"),
    (EndVerdict("killed", "known", {"signal": 9}),
     "killed (SIGKILL)",
     "train.py was killed (SIGKILL); whether by a user or by the system is unknown"),
    (EndVerdict("stopped", "known", {"signal": 2}),
     "stopped by mpsbar",
     "train.py was stopped by mpsbar"),
    (EndVerdict("stopped", "likely", {"code": 0}),
     "most likely stopped by mpsbar",
     "train.py ended after mpsbar asked it to stop"),
    (EndVerdict("interrupted", "known", {"signal": 2}),
     "interrupted",
     "train.py was interrupted (Ctrl-C)"),
    (EndVerdict("interrupted", "likely", {}, ("exit_status", "last_words")),
     "most likely interrupted",
     "train.py was interrupted (Ctrl-C) (the last error that Python printed)"),
    (EndVerdict("terminated", "known", {"signal": 15}),
     "ended by SIGTERM",
     "train.py was ended by a signal (SIGTERM)"),
    (EndVerdict("terminated", "known", {"signal": 24}),
     "ended by SIGXCPU",
     "train.py was ended by a signal (SIGXCPU)"),
    (EndVerdict("other_rank", "likely", {"signal": 15, "rank": "train.py rank 1 of 4 (9)"}),
     "most likely ended by its launcher",
     "train.py was most likely ended by its launcher after train.py rank 1 of 4 (9) failed"),
    (EndVerdict("crashed", "known", {"signal": 11}),
     "crashed (SIGSEGV)",
     "train.py crashed in native code (SIGSEGV)"),
    (EndVerdict("crashed", "known", {"signal": 6, "library": "libmlx.dylib", "sentence": "a.mm:3: failed assertion"}),
     "crashed in libmlx.dylib (SIGABRT)",
     "train.py crashed in native code in libmlx.dylib (SIGABRT): a.mm:3: failed assertion"),
    (EndVerdict("metal_timeout", "known", {"text": METAL}),
     "GPU timeout",
     "The GPU took too long for train.py, and macOS ended its work: Caused GPU Hang Error"),
    (EndVerdict("metal_timeout", "likely", {"text": METAL}, ("exit_status", "last_words")),
     "most likely GPU timeout",
     "The GPU took too long for train.py, and macOS ended its work: Caused GPU Hang Error (the last error that Python printed)"),
    (EndVerdict("interactivity", "known", {"text": METAL}),
     "GPU work ended by macOS to keep the screen responsive",
     "macOS ended long GPU work of train.py to keep the screen responsive: Caused GPU Hang Error"),
    (EndVerdict("submissions_ignored", "known", {"text": METAL}),
     "GPU work refused after repeated errors",
     "macOS refused the GPU work of train.py after repeated errors: Caused GPU Hang Error"),
    (EndVerdict("gpu_fault", "known", {"text": METAL}),
     "GPU memory fault",
     "The GPU work of train.py accessed invalid memory: Caused GPU Hang Error"),
    (EndVerdict("gpu_reset", "known", {"text": METAL}),
     "GPU reset",
     "The GPU was reset while train.py was using it: Caused GPU Hang Error"),
    (EndVerdict("gpu_reset", "likely", {"text": METAL}, ("exit_status", "last_words")),
     "ended when the GPU was reset",
     "The GPU was reset while train.py was using it: Caused GPU Hang Error (the last error that Python printed)"),
    (EndVerdict("gpu_reset", "likely", {"signal": 6}),
     "ended when the GPU was reset",
     "train.py ended (SIGABRT) when the GPU was reset, most likely because of it"),
    (EndVerdict("code_signing", "known", {"signal": 9}),
     "killed by macOS: its code was changed",
     "macOS killed train.py because its signed code was changed"),
    (EndVerdict("panic", "likely", {"reason": "watchdog timeout", "task": ""}),
     "most likely kernel panic",
     "The computer restarted after a kernel panic, most likely while train.py ran: watchdog timeout"),
    (EndVerdict("restarted", "likely"),
     "the computer restarted",
     "The computer was restarted while train.py was running, as far as mpsbar knows"),
    (EndVerdict("replaced", "known"),
     "became another program",
     "train.py replaced itself with another program, which is still running"),
    (EndVerdict("unknown", "unknown"),
     "exit code unknown",
     "train.py ended; the reason is unknown"),
]  # fmt: skip


@pytest.mark.parametrize(("verdict", "briefly", "sentence"), ENDS)
def test_an_end_in_words(verdict, briefly, sentence):
    assert say_briefly(verdict) == briefly
    assert say_verdict(verdict, "train.py") == sentence


def test_every_end_has_its_literal_here():
    assert {verdict.code for verdict, *_ in ENDS} == set(get_args(EndCode))


def test_what_is_only_likely_is_never_told_as_a_fact():
    """But that the computer, or the GPU, was restarted at that time is one."""
    hedges = ("most likely", "last error", "as far as", "after mpsbar asked")
    for verdict, briefly, sentence in ENDS:
        if verdict.sure == "likely":
            assert any(hedge in sentence for hedge in hedges), sentence
            assert "most likely" in briefly or " restarted" in briefly or " reset" in briefly


BASIS = {
    "exit_status": "the kernel's exit status: SIGKILL",
    "last_words": "the exit record written by its agent",
    "no_last_words": "no exit record from its agent: Python did not exit normally",
    "crash_report": "macOS's crash report about this process",
    "jetsam_report": "macOS's jetsam report, which names this process",
    "kernel_log": "the kernel's log, which names this process",
    "cgroup": "its cgroup counted a kill for memory at that time",
    "pressure": "memory pressure was critical in the minute before",
    "swap": "swap grew by 3.0 GB in the minute before",
    "stop_asked": "Stop was chosen in mpsbar",
    "gpu_recovery": "the GPU's reset counter increased at that time",
    "gpu_event": "a GPU event from that time that names Chrome (lockup)",
    "panic_report": "macOS's panic report",
    "restart": "the computer was restarted after the process was last seen",
    "still_running": "the process is still running, with a different command line",
    "other_rank": "another process of the same launcher failed just before",
    "exit_reason": "the kernel's own exit reason",
}


def test_every_kind_of_evidence_is_said():
    assert set(BASIS) == set(get_args(Basis))
    values = {"signal": 9, "swap": 3 * GB, "named": "Chrome", "reason": "lockup"}
    unreadable = get_args(Unreadable)
    verdict = EndVerdict("killed", "known", values, tuple(BASIS), unreadable)
    assert say_basis(verdict) == [
        *BASIS.values(),
        "not read: /Library/Logs/DiagnosticReports (only administrators may)",
        "not read: ~/Library/Logs/DiagnosticReports",
        "not read: the kernel's log (only administrators may)",
    ]
    assert say_basis(EndVerdict("exit_code", "known", {"code": 3}, ("exit_status",))) == [
        "the kernel's exit status: code 3"
    ]


def test_names_of_signals():
    assert [say_signal({"signal": number}) for number in (15, 7, 10, 40, None)] == [
        "SIGTERM", "signal 7", "signal 10", "signal 40", "?",
    ]  # fmt: skip
    assert say_signal({}) == "?"


@pytest.mark.parametrize(
    ("number", "is_mac", "name"),
    [(10, False, "SIGUSR1"), (10, True, "SIGBUS"), (7, False, "SIGBUS"), (12, True, "SIGSYS"), (35, False, "signal 35")],
)  # fmt: skip
def test_a_signal_has_its_name_on_the_system_that_the_process_ran_on(number, is_mac, name):
    verdict = judge_end(EndEvidence(status=ExitStatus(signal=number), is_mac=is_mac))
    assert say_signal(parse_verdict_json(build_verdict_json(verdict)).values) == name
