"""Processes: which are there, what they have mapped, what they cost, how they were started."""

import errno
import os

import pytest
from machine.fakemac.double import (
    ARGUMENTS_ERROR,
    GROWS,
    IS_NEW_AFTER,
    LIVES_FOR,
    READ,
    STALLS,
    STATUS,
    pack_arguments,
)
from machine.macos import checks

from mpsbar.machine.macos import libproc
from mpsbar.machine.macos.arguments import Arguments, parse_arguments
from mpsbar.machine.platform import Details

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


def test_details(mac, make_computer):
    checks.check_details(mac, make_computer)


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
    monkeypatch.setattr(libproc, "_MOST_PIDS", 30)
    for pid in range(501, 601):
        mac.add_process(pid)
    assert len(computer.list_processes()) == 30


def test_processes_that_cannot_be_listed(mac, computer):
    mac.c.fake_listing_error(errno.EPERM)
    with pytest.raises(PermissionError):
        computer.list_processes()


@pytest.mark.parametrize("read", ["read_libraries", "read_details", "read_footprint"])
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
    monkeypatch.setattr(libproc, "MOST_REGIONS", 3)
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


@pytest.mark.parametrize("calls", range(5))
def test_a_process_that_dies_while_its_details_are_read(mac, computer, calls):
    mac.add_process(4242)
    mac.set_arguments(4242, 1, pack_arguments(b"/bin/x", [b"x"], []), executable="/bin/x")
    mac.set_process(4242, LIVES_FOR, calls)
    with pytest.raises(ProcessLookupError):
        computer.read_details(4242)


@pytest.mark.parametrize("calls", range(1, 5))
def test_a_pid_that_is_used_anew_while_its_details_are_read(mac, computer, calls):
    mac.add_process(4242)
    mac.set_arguments(4242, 1, pack_arguments(b"/bin/x", [b"x"], []), executable="/bin/x")
    mac.set_process(4242, IS_NEW_AFTER, calls)
    with pytest.raises(ProcessLookupError, match="has ended"):
        computer.read_details(4242)


def test_a_process_that_has_become_a_zombie_has_ended(mac, computer):
    mac.add_process(4242)
    mac.set_process(4242, STATUS, 5)
    with pytest.raises(ProcessLookupError, match="has ended"):
        computer.read_details(4242)


@pytest.mark.parametrize("code", [errno.EIO, errno.EINVAL])
def test_details_without_a_command(mac, computer, code):
    """In an exec, or not for us to see: the rest is still worth knowing."""
    mac.add_process(4242, parent=7)
    mac.set_arguments(4242, 1, pack_arguments(b"/bin/x", [b"x"], []), executable="/opt/x")
    mac.set_process(4242, ARGUMENTS_ERROR, code)
    details = computer.read_details(4242)
    assert details == Details(1_790_000_000.25, 7, (), "/opt/x", {})


def test_an_exec_between_the_size_and_the_reading(mac, computer):
    """Into too little room the kernel puts the end of what there is."""
    mac.add_process(4242)
    mac.set_arguments(4242, 1, pack_arguments(b"/bin/x", [b"x"], [b"PATH=/bin"]))
    mac.set_process(4242, GROWS, 500)
    details = computer.read_details(4242)
    assert (details.command, details.variables) == ((), {})


def test_the_most_arguments_a_process_can_have(mac, computer):
    mac.add_process(4242)
    data = pack_arguments(b"/bin/x", [b"x", b"y" * ((1 << 20) - 200)], [b"RANK=1"])
    mac.set_arguments(4242, 2, data)
    details = computer.read_details(4242)
    assert details.command == ("x", "y" * 300)
    assert details.variables == {"RANK": "1"}
    assert details.executable == "/bin/x"


COUNT_2 = b"\2\0\0\0"


@pytest.mark.parametrize(
    ("data", "arguments"),
    [
        (b"", Arguments()),
        (b"\2\0", Arguments()),
        (COUNT_2, Arguments()),
        (COUNT_2 + b"/bin/x", Arguments("/bin/x")),
        (COUNT_2 + b"/bin/x\0\0\0", Arguments("/bin/x")),
        (COUNT_2 + b"/bin/x\0\0x\0half", Arguments("/bin/x", ("x", "half"))),
        (COUNT_2 + b"/bin/x\0\0x\0\0RANK=0\0", Arguments("/bin/x", ("x", ""), {"RANK": "0"})),
        (
            COUNT_2 + b"/bin/x\0x\0y\0RANK=0\0PATH=/b",
            Arguments("/bin/x", ("x", "y"), {"RANK": "0"}),
        ),
        (COUNT_2 + b"/bin/x\0x\0y\0\0RANK=0\0", Arguments("/bin/x", ("x", "y"))),
        # The count lies: too many, none, fewer than none.
        (b"\x09\0\0\0/bin/x\0x\0RANK=0\0", Arguments("/bin/x", ("x", "RANK=0"))),
        (b"\0\0\0\0/bin/x\0RANK=0\0", Arguments("/bin/x", (), {"RANK": "0"})),
        (b"\xff\xff\xff\xff/bin/x\0x\0RANK=0\0", Arguments("/bin/x", (), {"RANK": "0"})),
        (COUNT_2 + b"/\xff\0\xff\0\x1b[1m\0", Arguments("/�", ("�", "�[1m"))),
        (COUNT_2 + b"\0x\0y\0", Arguments(None, ("x", "y"))),
    ],
)
def test_arguments(data, arguments):
    assert parse_arguments(data) == arguments


def test_no_more_than_needed_is_kept_of_a_command():
    data = b"\x64\0\0\0/bin/x\0" + b"a" * 500 + b"\0" + b"b\0" * 99 + b"PATH=" + b"c" * 9000 + b"\0"
    arguments = parse_arguments(data)
    assert arguments.command == ("a" * 300, *["b"] * 19)
    assert arguments.variables == {"PATH": "c" * 4096}
