"""Who is at the other end: the kernel's structs, and the same check on a real socket pair."""

import os
import socket
import struct

import pytest

from mpsbar.agent import peer


def test_this_kernel_names_this_user():
    one, other = socket.socketpair(socket.AF_UNIX)
    with one, other:
        assert peer.read_uid(one) == os.geteuid()


def test_this_kernel_names_the_process_that_listens():
    one, other = socket.socketpair(socket.AF_UNIX)
    with one, other:
        assert peer.read_pid(one) == os.getpid()


@pytest.mark.parametrize(("said", "pid"), [(77, 77), (0, None), (OSError("no"), None)])
def test_macos_is_asked_for_its_pid(monkeypatch, said, pid):
    class Darwin:
        def getsockopt(self, level, option):
            assert (level, option) == (0, 2)  # SOL_LOCAL, LOCAL_PEERPID
            if isinstance(said, OSError):
                raise said
            return said

    monkeypatch.setattr(peer.sys, "platform", "darwin")
    assert peer.read_pid(Darwin()) == pid


def test_xucred_is_read_at_apples_offsets():
    # struct xucred: cr_version @0, cr_uid @4, cr_ngroups @8, cr_groups[16] @12; 76 bytes.
    raw = bytearray(76)
    struct.pack_into("=I", raw, 4, 501)
    struct.pack_into("=h", raw, 8, 2)
    struct.pack_into("=II", raw, 12, 20, 12)
    assert peer.parse_xucred(bytes(raw)) == 501
    struct.pack_into("=I", raw, 0, 1)
    with pytest.raises(OSError, match="unknown version 1"):
        peer.parse_xucred(bytes(raw))


def test_macos_is_asked_for_its_own_option(monkeypatch):
    asked = []

    class Darwin:
        def getsockopt(self, level, option, size):
            asked.append((level, option, size))
            return struct.pack("=IIh2x16I", 0, 502, 1, *range(16))

    monkeypatch.setattr(peer.sys, "platform", "darwin")
    assert peer.read_uid(Darwin()) == 502
    assert asked == [(0, 1, 76)]  # SOL_LOCAL, LOCAL_PEERCRED, sizeof(struct xucred)
