"""The agent's protocol: JSON-RPC 2.0 without batches, one message per line. Pure."""

import json
from typing import Any, Optional

PROTOCOL = 1
MAX_LINE = 64 * 1024
# Of an id, which each answer repeats; and the numbers that every JSON reader has exactly.
MAX_ID_CHARACTERS = 100
MAX_NUMBER = 2**53

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

Message = dict[str, Any]
JobAnswer = dict[str, Any]  # the result of free, tensors or limit, or a part of it


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


# Made once: json.dumps and json.loads make one for each call with such options.
_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


class ProtocolError(Exception):
    """What the other end sent is not a message; `code` is JSON-RPC's."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class LineTooLongError(ProtocolError):
    """No line end within MAX_LINE: nothing that follows can be trusted."""

    def __init__(self) -> None:
        super().__init__(INVALID_REQUEST, f"a line is longer than {MAX_LINE} bytes")


def encode(message: Message) -> bytes:
    line = _ENCODER.encode(message).encode() + b"\n"
    if len(line) > MAX_LINE:
        raise LineTooLongError
    return line


def request(number: int, method: str, params: Optional[Message] = None) -> bytes:
    message: Message = {"jsonrpc": "2.0", "id": number, "method": method}
    if params:
        message["params"] = params
    return encode(message)


def result(number: Any, value: Any) -> bytes:
    return encode({"jsonrpc": "2.0", "id": number, "result": value})


def error(number: Any, code: int, text: str) -> bytes:
    return encode({"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": text[:500]}})


def decode(line: bytes) -> Message:
    """Decodes one JSON object; anything else is a ProtocolError."""
    try:
        message = _DECODER.decode(line.decode())
    except (ValueError, RecursionError) as problem:
        raise ProtocolError(PARSE_ERROR, f"not JSON: {str(problem)[:100]}") from None
    if not isinstance(message, dict):
        raise ProtocolError(INVALID_REQUEST, "not an object")
    return message


def parse_request(line: bytes) -> "tuple[Any, str, Message]":
    """Returns (id, method, params) of a request."""
    message = decode(line)
    number, method, params = message.get("id"), message.get("method"), message.get("params", {})
    if message.get("jsonrpc") != "2.0" or not isinstance(method, str):
        raise ProtocolError(INVALID_REQUEST, "not a JSON-RPC 2.0 request")
    if isinstance(number, bool) or not isinstance(number, (int, str)):
        raise ProtocolError(INVALID_REQUEST, "the id must be a number or a string")
    if len(number) > MAX_ID_CHARACTERS if isinstance(number, str) else abs(number) > MAX_NUMBER:
        raise ProtocolError(
            INVALID_REQUEST, f"the id is longer than {MAX_ID_CHARACTERS} characters"
        )
    if not isinstance(params, dict):
        raise ProtocolError(INVALID_PARAMS, "params must be an object")
    return number, method, params


def split_lines(buffer: bytearray) -> "list[bytes]":
    """Takes the complete lines out of `buffer`; what is left must still fit one line."""
    end = buffer.rfind(b"\n") + 1
    lines = bytes(buffer[:end]).split(b"\n")[:-1]
    del buffer[:end]
    if len(buffer) > MAX_LINE or any(len(line) >= MAX_LINE for line in lines):
        raise LineTooLongError
    return lines
