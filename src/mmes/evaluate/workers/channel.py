"""Messages between the run and a worker, over a socket that never blocks the run.

`multiprocessing.connection.Connection` blocks until a message is complete; a worker that was
stopped in the middle of one would block the run, past every time limit.
"""

from __future__ import annotations

import os
import pickle
import struct
from collections import deque
from multiprocessing.connection import Connection
from typing import Any

_LENGTH = struct.Struct("<Q")
_CHUNK = 2**20
# No worker answers with more; a longer one is what a confused objective wrote into the socket.
_LARGEST = 2**40


class Channel:
    """The run's side: sends what the socket accepts, keeps the rest, reads what has arrived.

    It has one end of a pipe; the other end is given to `Line`. `ended` says whether the other side
    has ended, or sent something that is not a message.
    """

    def __init__(self, connection: Connection):
        self.ended = False
        self._connection = connection
        self._out: deque[memoryview] = deque()
        self._in = bytearray()
        os.set_blocking(connection.fileno(), False)

    def fileno(self) -> int:
        """Return the file descriptor to wait on."""
        return self._connection.fileno()

    @property
    def unsent(self) -> bool:
        """Whether something is left for `flush`."""
        return bool(self._out)

    def send(self, message: Any) -> None:
        """Send a message, now or with later calls of `flush`."""
        data = pickle.dumps(message)
        self._out += [memoryview(_LENGTH.pack(len(data))), memoryview(data)]
        self.flush()

    def flush(self) -> None:
        """Send what the socket accepts."""
        try:
            while self._out:
                sent = os.write(self.fileno(), self._out[0][:_CHUNK])
                self._out[0] = self._out[0][sent:]
                if not self._out[0]:
                    self._out.popleft()
        except BlockingIOError:
            return
        except OSError:
            self._end()

    def messages(self) -> list[Any]:
        """Return the messages that have arrived in full."""
        try:
            while not self.ended:
                data = os.read(self.fileno(), _CHUNK)
                self._in += data
                if not data:
                    self._end()
        except BlockingIOError:
            pass
        except OSError:
            self._end()
        found = []
        while (data := self._next()) is not None:
            try:
                found.append(pickle.loads(data))  # what our own worker wrote
            except Exception:
                self._end()
                break
        return found

    def close(self) -> None:
        """Close the socket."""
        self._end()
        self._connection.close()

    def _next(self) -> bytes | None:
        if len(self._in) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self._in)
        if length > _LARGEST:
            self._in.clear()
            self._end()
            return None
        end = _LENGTH.size + length
        if len(self._in) < end:
            return None
        data = bytes(self._in[_LENGTH.size : end])
        del self._in[:end]
        return data

    def _end(self) -> None:
        self.ended = True
        self._out.clear()


class Line:
    """The worker's side of the pipe, which has nothing better to do than wait."""

    def __init__(self, connection: Connection):
        self._connection = connection

    def send(self, message: Any) -> None:
        """Send a message; OSError if the run has gone."""
        data = pickle.dumps(message)
        for part in (_LENGTH.pack(len(data)), data):
            rest = memoryview(part)
            while rest:
                rest = rest[os.write(self._connection.fileno(), rest) :]

    def receive(self) -> Any:
        """Wait for a message and return it; EOFError if the run has gone."""
        (length,) = _LENGTH.unpack(self._exactly(_LENGTH.size))
        return pickle.loads(self._exactly(length))  # what our own process wrote

    def _exactly(self, count: int) -> bytearray:
        data = bytearray()
        while len(data) < count:
            part = os.read(self._connection.fileno(), min(count - len(data), _CHUNK))
            if not part:
                raise EOFError
            data += part
        return data
