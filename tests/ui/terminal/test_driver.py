"""The driver's input thread: it ends when told to, and leaves other files alone."""

import os
import threading

from worker_kit import wait_for

from mpsbar.ui.terminal.driver import WaitingDriver


class BareDriver(WaitingDriver):
    """Reads a pipe instead of a terminal."""

    def __init__(self, fileno):
        self.fileno, self.exit_event = fileno, threading.Event()
        self._debug = self._mouse = False
        self._key_thread = threading.Thread(target=self.run_input_thread, daemon=True)
        self._key_thread.start()


def test_no_other_file_is_written_to_when_input_is_disabled_twice(tmp_path):
    """As textual does at its end, when threads have opened files since the first time."""
    typed, keyboard = os.pipe()
    driver = BareDriver(typed)
    try:
        wait_for(lambda: hasattr(driver, "_wake"), "the thread")
        number = driver._wake
        driver.disable_input()
        assert not driver._key_thread.is_alive()
        with (tmp_path / "history").open("wb", buffering=0) as file:
            if file.fileno() != number:
                os.dup2(file.fileno(), number)
            driver.disable_input()
            if file.fileno() != number:
                os.close(number)
        assert (tmp_path / "history").read_bytes() == b""
    finally:
        os.close(typed)
        os.close(keyboard)
