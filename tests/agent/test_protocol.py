"""The wire's messages: what is taken, what is refused, and that nothing else can come out."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpsbar.agent import protocol


def test_a_request_is_one_line_of_json_rpc():
    line = protocol.request(7, "stats", {"gpu_client": True})
    assert line == b'{"jsonrpc":"2.0","id":7,"method":"stats","params":{"gpu_client":true}}\n'
    assert protocol.parse_request(line) == (7, "stats", {"gpu_client": True})


def test_result_and_error_carry_the_id():
    assert protocol.decode(protocol.result("a", [1]))["id"] == "a"
    answer = protocol.decode(protocol.error(None, protocol.PARSE_ERROR, "x" * 1000))
    assert answer["error"] == {"code": -32700, "message": "x" * 500}


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"", protocol.PARSE_ERROR),
        (b"GET / HTTP/1.1", protocol.PARSE_ERROR),
        (b"\xff\xfe", protocol.PARSE_ERROR),
        (b'{"a": NaN}', protocol.PARSE_ERROR),
        (b"[" * 60000, protocol.PARSE_ERROR),
        (b"9" * 60000, protocol.PARSE_ERROR),
        (b"[]", protocol.INVALID_REQUEST),
        (b'[{"jsonrpc":"2.0","id":1,"method":"stats"}]', protocol.INVALID_REQUEST),
        (b"{}", protocol.INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","method":"stats"}', protocol.INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":true,"method":"stats"}', protocol.INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"stats"}', protocol.INVALID_REQUEST),
        (b'{"jsonrpc":"1.0","id":1,"method":"stats"}', protocol.INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":1,"method":["stats"]}', protocol.INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":1,"method":"stats","params":[1]}', protocol.INVALID_PARAMS),
    ],
)
def test_what_is_not_a_request_is_refused(line, code):
    with pytest.raises(protocol.ProtocolError) as refusal:
        protocol.parse_request(line)
    # Before 3.11 a long row of digits is a number, and then it is no object.
    assert refusal.value.code in (code, protocol.INVALID_REQUEST)


@given(st.binary(max_size=200))
def test_no_bytes_can_raise_anything_but_a_protocol_error(line):
    try:
        protocol.parse_request(line)
    except protocol.ProtocolError:
        pass


@given(st.lists(st.binary(max_size=30).filter(lambda b: b"\n" not in b)), st.data())
def test_lines_come_out_whole_however_they_arrive(lines, data):
    stream, buffer, found = b"".join(line + b"\n" for line in lines), bytearray(), []
    while stream:
        cut = data.draw(st.integers(1, len(stream)))
        buffer += stream[:cut]
        stream = stream[cut:]
        found += protocol.split_lines(buffer)
    assert found == lines
    assert not buffer


def test_a_line_without_an_end_is_refused_at_the_cap():
    buffer = bytearray(b"x" * protocol.MAX_LINE)
    assert protocol.split_lines(buffer) == []
    buffer += b"x"
    with pytest.raises(protocol.LineTooLongError):
        protocol.split_lines(buffer)
    with pytest.raises(protocol.LineTooLongError):
        protocol.split_lines(bytearray(b"x" * protocol.MAX_LINE + b"\n"))


def test_an_answer_over_the_cap_is_never_sent():
    with pytest.raises(protocol.LineTooLongError):
        protocol.result(1, "x" * protocol.MAX_LINE)
    assert len(protocol.result(1, "x" * 60000)) < protocol.MAX_LINE
    assert json.loads(protocol.result(1, "\n"))["result"] == "\n"
