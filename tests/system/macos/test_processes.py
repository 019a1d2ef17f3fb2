"""Processes: which are there, since when, what they have mapped, what they cost."""

import ctypes
import errno
import os

import pytest
from system.fakemac.double import LIVES_FOR, READ, STALLS
from system.macos import checks

from mpsbar.agent import last_words
from mpsbar.system.macos import processes

OTHER_USER = os.geteuid() + 1


def test_processes(mac, make_computer):
    checks.check_processes(mac, make_computer)


def test_footprint(mac, make_computer):
    checks.check_footprint(mac, make_computer)


def test_the_size_of_an_address_space(mac, make_computer):
    checks.check_size(mac, make_computer)
    with pytest.raises(ProcessLookupError):
        make_computer().read_size(999)


def test_libraries(mac, make_computer):
    checks.check_libraries(mac, make_computer)


def test_only_this_users_living_processes_are_listed(mac, computer):
    mac.add_process(501)
    mac.add_process(502, uid=OTHER_USER)
    mac.add_process(503, hidden=1)  # a zombie, as the kernel shows it
    mac.add_process(504, status=5)  # one that has become a zombie
    mac.add_process(505, lives_for=0)  # died since the list was made
    assert computer.list_processes() == {501: (1_790_000_000, 250_000)}


@pytest.mark.parametrize("births", [1, 40, 500])
def test_a_growing_list_is_read_whole(mac, computer, births):
    mac.add_process(501)
    mac.c.fake_births(births)
    listed = computer.list_processes()
    mac.c.fake_births(0)
    assert set(listed) == set(computer.list_processes())


def test_a_list_that_never_stops_growing_is_given_up(mac, computer, monkeypatch):
    """It is then as long as the room it was given last."""
    monkeypatch.setattr(processes, "_MAX_PIDS", 30)
    for pid in range(501, 601):
        mac.add_process(pid)
    assert len(computer.list_processes()) == 30


def test_processes_that_cannot_be_listed(mac, computer):
    mac.c.fake_listing_error(errno.EPERM)
    with pytest.raises(PermissionError):
        computer.list_processes()


@pytest.mark.parametrize("read", ["read_libraries", "read_start", "read_details", "read_footprint"])
def test_whom_one_cannot_ask(mac, computer, read):
    mac.add_process(502, uid=OTHER_USER)
    mac.add_process(503, hidden=1)
    with pytest.raises(PermissionError):
        getattr(computer, read)(502)
    for pid in (503, 999):
        with pytest.raises(ProcessLookupError):
            getattr(computer, read)(pid)


def test_a_mapping_as_data_is_not_loaded(mac, computer):
    mac.add_process(4242)
    mac.add_region(4242, 0x2_0000_0000, 0x4000, checks.TORCH, protection=READ)
    assert computer.read_libraries(4242) == {}


def test_a_process_that_maps_nothing(mac, computer):
    mac.add_process(4242)
    assert computer.read_libraries(4242) == {}


def test_a_path_that_is_no_text(mac, computer):
    mac.add_process(4242)
    mac.add_region(4242, 0x1_0000_0000, 0x4000, b"/Users/\xff\xfe/x.dylib")
    mac.add_region(4242, 0x2_0000_0000, 0x4000, b"/Users/\xff\xfe/libtorch.dylib")
    assert computer.read_libraries(4242) == {"torch": "/Users/��/libtorch.dylib"}


def test_a_path_of_full_length_ends_there(mac, computer):
    mac.add_process(4242)
    mac.add_region(4242, 0x1_0000_0000, 0x4000, "/" + "x" * 2000)
    mac.add_region(4242, 0x2_0000_0000, 0x4000, checks.MLX)
    assert computer.read_libraries(4242) == {"mlx": checks.MLX}


def test_a_walk_that_does_not_advance_ends(mac, computer):
    mac.add_process(4242, stalls=1)
    mac.add_region(4242, 0x2_0000_0000, 0x4000, checks.TORCH)
    assert computer.read_libraries(4242) == {"torch": checks.TORCH}
    mac.add_process(4243)
    mac.add_region(4243, 0, 0, checks.TORCH)
    mac.set_process(4243, STALLS, 1)
    assert computer.read_libraries(4243) == {"torch": checks.TORCH}


def test_a_walk_without_end_is_cut(mac, computer, monkeypatch):
    monkeypatch.setattr(processes, "MAX_REGIONS", 3)
    mac.add_process(4242)
    for number in range(6):
        mac.add_region(4242, number << 32, 0x4000, checks.TORCH if number == 5 else "/lib/x.dylib")
    assert computer.read_libraries(4242) == {}


def test_a_walk_stops_once_all_is_known(mac, computer):
    """It is asked three times: whoever dies afterwards is not noticed."""
    mac.add_process(4242)
    for number, path in enumerate([checks.MLX, checks.TORCH, "/lib/x.dylib"]):
        mac.add_region(4242, (number + 1) << 32, 0x4000, path)
    mac.set_process(4242, LIVES_FOR, 2)
    assert computer.read_libraries(4242) == {"mlx": checks.MLX, "torch": checks.TORCH}


def test_a_process_that_dies_during_the_walk(mac, computer):
    mac.add_process(4242)
    for number in range(5):
        mac.add_region(4242, (number + 1) << 32, 0x4000, checks.TORCH)
    mac.set_process(4242, LIVES_FOR, 3)
    with pytest.raises(ProcessLookupError):
        computer.read_libraries(4242)


def test_the_exit_reason_of_a_child_that_nobody_waited_for(mac, computer):
    """A zombie; the code is 64 bits wide."""
    mac.add_process(701, parent=os.getpid(), hidden=1, namespace=1, code=13)
    mac.add_process(702, parent=os.getpid(), hidden=1, namespace=9, code=0x5_0000_0007)
    assert computer.read_exit_reason(701) == (1, 13)
    assert computer.read_exit_reason(702) == (9, 0x5_0000_0007)


def test_a_process_knows_when_it_started_itself(mac):
    """The agent asks the same of its own process, for the record that it leaves."""
    library = ctypes.PyDLL(mac.path)
    assert last_words.read_start(0.0, "darwin", library) is None  # the kernel knows nothing of it
    mac.add_process(os.getpid(), start=(1_790_000_000, 250_000))
    assert last_words.read_start(0.0, "darwin", library) == 1_790_000_000.25
    assert last_words.read_start(0.0, "darwin", object()) is None


def test_no_exit_reason(mac, computer):
    mac.add_process(701, parent=os.getpid(), hidden=1)  # it exited
    mac.add_process(702, parent=1, hidden=1, namespace=1, code=13)  # somebody else's child
    for pid in (701, 702, 999):
        assert computer.read_exit_reason(pid) is None
