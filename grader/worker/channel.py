"""The connection between judge and worker: messages in frames, bounded in size and time.

A frame is the four bytes of MAGIC, the length as eight bytes little endian, and one msgpack message.
"""

from __future__ import annotations

import math
import select
import socket
import threading
import time
from collections.abc import Callable
from typing import TypeVar

import msgspec

from grader.worker.messages import Answer, Order

MAGIC = b"GRD1"
MAX_REASON = 200  # characters of why a message is no message
HEADER = len(MAGIC) + 8
MIB = 1 << 20
MAX_COMMAND = 8 << 30  # bytes; the judge is trusted, so this only catches a torn stream
LOST = 74  # exit status of a worker that can no longer reach its judge

Message = TypeVar("Message", Order, Answer)


class ChannelError(Exception):
    """The peer sent something that is not a message, or closed the connection."""


class ChannelTimeout(ChannelError):
    """The peer did not answer in time."""


_encode = msgspec.msgpack.Encoder().encode
_orders = msgspec.msgpack.Decoder(Order, strict=True)
_answers = msgspec.msgpack.Decoder(Answer, strict=True)


class Channel:
    """One end of the connection. `alive` returns whether the peer still runs; None: only the socket tells.

    Threads may send at the same time: a submission may build two extensions at once, and each build is reported.
    spin_seconds: for so long it waits for a message without sleeping, which notices the message sooner.
    """

    def __init__(self, sock: socket.socket, alive: Callable[[], bool] | None = None):
        self.sock = sock
        self.alive = alive
        self.sending = threading.Lock()
        self.spin_seconds = 0.0

    def send(self, message: Order | Answer, seconds: float | None = None) -> None:
        """Send one message. ChannelTimeout if the peer does not take it in time, ChannelError if it is gone."""
        data = _encode(message)
        frame = MAGIC + len(data).to_bytes(8, "little")
        deadline = None if seconds is None else time.monotonic() + seconds
        try:
            with self.sending:
                self._write(frame, deadline)
                self._write(data, deadline)
        except BlockingIOError:
            raise ChannelTimeout("the connection is full") from None
        except OSError as error:
            raise ChannelError(f"the connection is broken ({error.strerror})") from None

    def _write(self, data: bytes, deadline: float | None) -> None:
        self.sock.settimeout(None)
        view = memoryview(data)
        while view:
            self._wait(deadline, write=True)
            view = view[self.sock.send(view[: 4 * MIB], socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL) :]

    def order(self) -> Order:
        """Wait for the judge's next command and return it (worker's side). ChannelError once the judge has closed."""
        return self._decode(_orders, self._read_frame(MAX_COMMAND, None))

    def answer(self, limit: int, deadline: float) -> Answer:
        """Wait for the worker's next message and return it (judge's side).

        Raises ChannelTimeout if it is not there when time.monotonic() is `deadline`, and ChannelError if it has more
        than `limit` bytes or does not follow the schema.
        """
        return self._decode(_answers, self._read_frame(limit, deadline))

    def _decode(self, decoder: msgspec.msgpack.Decoder[Message], data: bytearray) -> Message:
        try:
            return decoder.decode(data)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError, MemoryError) as error:
            # msgspec quotes what it does not know, however long it is
            why = " ".join(str(error).split())[:MAX_REASON]
            raise ChannelError(f"a message does not follow the protocol ({why})") from None

    def _read_frame(self, limit: int, deadline: float | None) -> bytearray:
        header = self._read_exactly(HEADER, deadline)
        if bytes(header[: len(MAGIC)]) != MAGIC:
            raise ChannelError("something other than a message was written into the connection")
        length = int.from_bytes(header[len(MAGIC) :], "little")
        if length > limit:
            raise ChannelError(f"a message of {length} bytes was announced, more than the {limit} allowed")
        return self._read_exactly(length, deadline)

    def _read_exactly(self, count: int, deadline: float | None) -> bytearray:
        data = bytearray(count)
        view = memoryview(data)
        while view:
            self._wait(deadline, write=False)
            try:
                got = self.sock.recv_into(view, 0, socket.MSG_DONTWAIT)
            except BlockingIOError:
                continue
            except OSError as error:
                raise ChannelError(f"the connection is broken ({error.strerror})") from None
            if got == 0:
                raise ChannelError("the connection was closed")
            view = view[got:]
        return data

    def _wait(self, deadline: float | None, write: bool) -> None:
        """Wait until the socket is ready. Only `alive` notices a dead worker whose children hold the socket open."""
        poller = select.poll()
        poller.register(self.sock.fileno(), select.POLLOUT if write else select.POLLIN)
        spun = time.monotonic() + self.spin_seconds
        while self.spin_seconds and time.monotonic() < spun:
            if poller.poll(0):
                return
        while True:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise ChannelTimeout("no answer in time")
            step = left if self.alive is None else min(0.1, left if left is not None else 0.1)
            gone = self.alive is not None and not self.alive()
            if poller.poll(None if step is None else math.ceil(1000 * step)):
                return
            if gone:
                raise ChannelError("the process ended")
