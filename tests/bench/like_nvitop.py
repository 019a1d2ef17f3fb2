"""SECONDS PID…: a monitor as nvitop is built, for `make bench`: psutil reads the processes of the GPU
(here the named ones) and the host, curses draws them."""

import curses
import sys
import time

import psutil


def main(screen: "curses.window", seconds: float, pids: list[int]) -> None:
    curses.curs_set(0)
    screen.timeout(int(seconds * 1000))
    known = {pid: psutil.Process(pid) for pid in pids}
    while True:
        draw(screen, read_host(), [read(process) for process in known.values()])
        if screen.getch() == ord("q"):
            return


def read_host() -> str:
    memory, swap = psutil.virtual_memory(), psutil.swap_memory()
    load = " ".join(f"{part:.2f}" for part in psutil.getloadavg())
    return f"CPU {psutil.cpu_percent():5.1f}%  MEM {memory.percent:5.1f}%  SWP {swap.percent:5.1f}%  load {load}"


def read(process: psutil.Process) -> str:
    try:
        with process.oneshot():
            words = (
                f"{process.pid:8}", process.username()[:8].ljust(8), f"{process.cpu_percent():6.1f}",
                f"{process.memory_info().rss >> 20:8} MiB", f"{process.memory_percent():5.1f}",
                f"{time.time() - process.create_time():8.0f}", " ".join(process.cmdline()),
            )  # fmt: skip
    except psutil.NoSuchProcess:
        return f"{process.pid:8} ended"
    return " ".join(words)


def draw(screen: "curses.window", host: str, lines: list[str]) -> None:
    height, width = screen.getmaxyx()
    screen.erase()
    head = "     PID USER       %CPU      MEM      %MEM     TIME COMMAND"
    for number, line in enumerate([time.strftime("%c"), host, "", head, *lines][: height - 1]):
        screen.addnstr(number, 0, line, width - 1)
    screen.refresh()


if __name__ == "__main__":
    curses.wrapper(main, float(sys.argv[1]), [int(pid) for pid in sys.argv[2:]])
