"""The double of macOS's sockets: what kqueue means, by the standard library's own KqueueSelector."""

import os
import socket

import pytest
from mac_sockets import load_selectors


@pytest.fixture
def selectors():
    return load_selectors()


def test_what_is_ready_is_found_and_the_end_too(selectors):
    ours, theirs = socket.socketpair()
    with selectors.DefaultSelector() as selector:
        selector.register(ours, selectors.EVENT_READ | selectors.EVENT_WRITE, "data")
        assert [(key.data, events) for key, events in selector.select(0)] == [("data", 2)]
        theirs.send(b"x")
        assert {events for _, events in selector.select(5)} in ({1, 2}, {3})  # by Python's version
        selector.modify(ours, selectors.EVENT_READ)
        ours.recv(1)
        assert selector.select(0) == []
        theirs.close()
        assert [events for _, events in selector.select(5)] == [1]


def test_a_closed_descriptor_is_watched_no_longer_nor_what_gets_its_number(selectors):
    """epoll would go on with a copy of it, poll() with whatever has the number now."""
    ours, theirs = socket.socketpair()
    other, sender = socket.socketpair()
    copy = ours.dup()
    with selectors.DefaultSelector() as selector:
        selector.register(ours, selectors.EVENT_READ)
        number = ours.fileno()
        theirs.send(b"x")
        ours.close()
        assert selector.select(0) == []
        os.dup2(other.fileno(), number)
        sender.send(b"x")
        assert selector.select(0) == []
        os.close(number)
    for each in (copy, theirs, other, sender):
        each.close()


def test_a_descriptor_that_is_closed_cannot_be_watched(selectors):
    ours, theirs = socket.socketpair()
    number = ours.fileno()
    ours.close()
    with selectors.DefaultSelector() as selector, pytest.raises(OSError, match="Bad file"):
        selector.register(number, selectors.EVENT_READ)
    theirs.close()


def test_a_forked_child_does_not_have_it(selectors):
    ours, theirs = socket.socketpair()
    with selectors.DefaultSelector() as selector:
        selector.register(ours, selectors.EVENT_READ)
        child = os.fork()
        if child == 0:
            try:
                selector.select(0)
            except OSError:
                os._exit(7)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    ours.close()
    theirs.close()
