"""What the host set in Python stays as it set it, while it is polled and freed and afterwards.

One exception: inside a short stretch of its own the agent may use other thresholds of the collector.
"""

import interpreters
import pytest
from host_kit import CANARIES, Load, ask_for_report, start_host
from thorough import two_sizes

each_kind_of_python = pytest.mark.parametrize("version", interpreters.EACH_KIND)

START = (
    CANARIES
    + """
import torch, mpsbar
torch.work = lambda: time.sleep(0.002)  # real torch gives the GIL away in empty_cache
def my_hook(info): print("unraisable", info, file=sys.__stderr__)
sys.unraisablehook = my_hook
sys.setrecursionlimit(1234)
sys.setswitchinterval(0.003)
usual_excepthook = threading.excepthook
third = gc.get_threshold()[2]  # 0 in 3.14.0 to 3.14.4, whatever is set
def settings():
    return [sys.getswitchinterval(), sys.getrecursionlimit(), sys.unraisablehook is my_hook,
        sys.gettrace() is None, sys.getprofile() is None, threading.excepthook is usual_excepthook,
        gc.callbacks == [], gc.get_debug(), gc.get_freeze_count(), gc.isenabled(), gc.get_threshold()]
stopping, setters, faults = [], [], []
looks = itertools.count()
def work(number):
    for _ in range(300): pass
    if number % 3 == 0: event.wait(0.0003)
def await_threshold(wanted):
    # Another one is allowed while the agent works; the time is for busy cores.
    end = time.monotonic() + 60
    while (found := gc.get_threshold()) != wanted and time.monotonic() < end: time.sleep(0.001)
    if found != wanted: faults.append(f"threshold {found}, not {wanted}")
def toggle():
    while not stopping:
        number = next(looks)
        gc.disable()
        work(number)
        if gc.isenabled(): faults.append("enabled")
        gc.enable()
        work(number + 1)
        if not gc.isenabled(): faults.append("disabled")
        event.wait(0.0003)
def set_thresholds():
    while not stopping:
        number = next(looks)
        wanted = (700 + number % 50, 10, third)
        gc.set_threshold(*wanted)
        work(number)
        await_threshold(wanted)
        event.wait(0.0003)
def wait():
    while True:
        drop_cycles()
        event.wait(0.002)
def on_a_thread(target):
    setters.append(threading.Thread(target=lambda: (join_host(), target()), daemon=True))
    setters[0].start()
    wait()
def is_enough(): return number(looks) > 20
def report():
    stopping.append(True)
    for setter in setters: setter.join(60)
    gc.enable()
    gc.set_threshold(*at_start[-1])
    await_threshold(at_start[-1])
    end = time.monotonic() + 60
    while settings() != at_start and time.monotonic() < end: time.sleep(0.01)
    return {"looks": number(looks), "faults": sorted(set(faults)), "count": len(faults),
        "changed": [(a, b) for a, b in zip(at_start, settings()) if a != b]}
at_start = settings()
assert mpsbar.attach()
"""
)
SETTERS = {
    "isenabled, on a thread": "on_a_thread(toggle)",
    "isenabled, on main": "start(wait); toggle()",
    "thresholds, on a thread": "on_a_thread(set_thresholds)",
    "thresholds, on main": "start(wait); set_thresholds()",
    "thresholds, switching often": "on_a_thread(set_thresholds)",
    "isenabled, switching often": "on_a_thread(toggle)",
}


@each_kind_of_python
@pytest.mark.parametrize("setter", SETTERS)
def test_the_host_finds_its_settings_as_it_set_them(workers, version, setter):
    start = START
    if (
        "switching often" in setter
    ):  # set before there is an agent, whose own settings it would meet
        start = START.replace("setswitchinterval(0.003)", "setswitchinterval(1e-5)")
    worker = start_host(workers, start + SETTERS[setter], version)
    with Load(worker) as load:
        for _ in range(4):
            load.poll(200)
            load.free(8, seconds=0.2)
            load.count_tensors(1)
        load.free_until_done()
    found = ask_for_report(worker, when_enough=True)
    assert found.pop("looks") > 20, found
    assert found == {"faults": [], "count": 0, "changed": []}


@each_kind_of_python
@two_sizes("polls", small=[1_000], whole=[2_000])
def test_the_hosts_garbage_is_collected_as_ever_while_it_is_polled(workers, version, polls):
    worker = start_host(workers, CANARIES + """
import torch, mpsbar
most = 0
def count(): return sum(generation["collections"] for generation in gc.get_stats())
def is_enough():
    so_far = number(made)
    return so_far > 10_000 and most < so_far / 3 and count() - before > so_far / (7 * threshold)
def report():
    found = {"made": number(made), "most": most, "collections": count() - before}
    return dict(found, threshold=threshold)
threshold = gc.get_threshold()[0]  # 700; from 3.13 on 2,000
before = count()
assert mpsbar.attach()
while True:
    drop_cycles(20)
    most = max(most, number(made) - number(ran))
""", version)  # fmt: skip
    with Load(worker) as load:
        load.poll(polls)
        load.poll_slowly(polls / 4_000)
        load.free(polls // 400)
    found = ask_for_report(worker, when_enough=True)
    # Alone it has some hundred at most, and a collection for every few hundred made. Beside an agent
    # that waits for a core in its midst, it goes on without one meanwhile, and makes up for it later.
    assert found["made"] > 10_000
    assert found["most"] < found["made"] / 3, found
    assert found["collections"] > found["made"] / (7 * found["threshold"]), found
