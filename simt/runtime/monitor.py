"""Monitor a process that runs kernels from another one: give its runtime orders, read its report, lend it inputs.

The other process maps two pages that this one makes (struct Orders and struct Report in simt/src/run/monitor.h). It
cannot write its orders, and no code outside the runtime's C++ can reach its report through a descriptor. Without torch.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import mmap
import os
import struct
from typing import Annotated

import msgspec
from msgspec import Meta

MAGIC = b"SIMTMON1"
ORDERS = struct.Struct("<8sQqqQdqqqqq")
ORDERS_BYTES = 4096
_NUMBER_AT = 8
HEAD = struct.Struct("<12Q")
WRITE = struct.Struct("<QI3I3I220s")
RECORD = struct.Struct("<4Q")
BY_KERNEL, MEANWHILE = 1, 2
WRITES_AT, TEXT_AT, DATA_AT = 4096, 512 << 10, 1 << 20
DATA_BYTES = 192 << 20
MOST_WRITES = (TEXT_AT - WRITES_AT) // WRITE.size
# Address space alone is taken until something is lent; where a limit forbids so much, less.
INPUT_BYTES = (16 << 30, 1 << 30)
SCHEDULES = {"forward": 0, "reverse": 1}
GUARDS = {None: 0, "end": 1, "front": 2}
ALIGNMENT = 16  # as simt/src/run/memory.cpp places a tensor before a fence
POISON = bytes.fromhex("c67fc67f")
# linux/fcntl.h: the last one is not in Python's module before 3.13
_ADD_SEALS, _SEAL_SEAL, _SEAL_SHRINK, _SEAL_GROW, _SEAL_FUTURE_WRITE = 1033, 1, 2, 4, 16

Text = Annotated[str, Meta(max_length=8192)]
Number = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Position = tuple[Number, Number, Number]


@dataclasses.dataclass(frozen=True)
class Orders:
    """How the other process runs kernels until the next orders; as simt.run's options.

    check, count: with all checks on, or with counters. record: report who writes which bytes, in elements of so many
    bytes; 0: nobody does. least: bytes of the smallest block whose bytes written by the host are reported. watch:
    report torch's operators on tensors of at least so many elements; 0: none.
    """

    check: bool = False
    count: bool = False
    schedule: str | int = "forward"
    guard: str | None = None
    seconds: float = 30.0
    idle: bool = False
    record: int = 0
    least: int = 1
    watch: int = 0


class Finding(msgspec.Struct):
    """An error or a warning of the checks as the runtime found it (struct Finding in simt/src/check/checker.h)."""

    check: Text
    what: Text
    space: Text
    array: Text
    type: Text
    index: Number
    elements: Number
    element: Number
    kernel: Text
    file: Text
    line: Number
    column: Number
    block: Position | None
    thread: Position | None
    other: tuple[Text, Position, Position, tuple[Text, Number] | None] | None
    warning: bool
    message: Text
    count: Number
    first: Number


class _Written(msgspec.Struct):
    launches: Annotated[list[tuple[Text, Position, Position, Number]], Meta(max_length=256)]
    more: bool
    operators: Annotated[list[tuple[Text, Number]], Meta(max_length=256)]
    findings: Annotated[list[Finding], Meta(max_length=64)]


@dataclasses.dataclass(frozen=True)
class Write:
    """The first write to an input. offset: of the input. kernel, block, thread: empty and None for the host's code."""

    offset: int
    kernel: str
    block: Position | None
    thread: Position | None


@dataclasses.dataclass(frozen=True)
class Recorded:
    """Bytes of one block of memory. by_kernel: those elements that a launch changed; else the whole block, which the
    host changed before the launch. launch: its number, from 1. meanwhile: those elements that changed during a launch
    with the checks on, although none of its threads wrote them.
    """

    by_kernel: bool
    launch: int
    data: memoryview
    meanwhile: bool = False


@dataclasses.dataclass
class Report:
    """What the runtime did since the last orders.

    launches, idle, checked: numbers of launches. kinds: how often each (kernel, grid, block) was launched; complete
    unless `more`. unprobed: calls of functions that were not built for the checks that were ordered. leaks: allocations
    of programs that are left. errors: how many the checks found; findings: the first of them, and warnings. overflow:
    `recorded` is not complete.
    """

    launches: int = 0
    idle: int = 0
    checked: int = 0
    unprobed: int = 0
    leaks: int = 0
    errors: int = 0
    kinds: dict[tuple[str, Position, Position], int] = dataclasses.field(default_factory=dict)
    more: bool = False
    operators: dict[str, int] = dataclasses.field(default_factory=dict)
    findings: list[Finding] = dataclasses.field(default_factory=list)
    writes: list[Write] = dataclasses.field(default_factory=list)
    recorded: list[Recorded] = dataclasses.field(default_factory=list)
    overflow: bool = False


class ReportError(Exception):
    """The report makes no sense: something other than the runtime has written it."""


class Monitor:
    """Pages and memory for one process, which inherits the descriptors and passes them to library.obey_monitor().

    Everything that it reads was written by the other process, and nothing of it raises but ReportError.
    """

    def __init__(self) -> None:
        self.number = 0
        self.used = 0
        self._orders = _make_memory("simt-orders", ORDERS_BYTES)
        self._report = _make_memory("simt-report", DATA_AT + DATA_BYTES)
        self._inputs = next(filter(None, map(_try_memory, INPUT_BYTES)), None) or _make_memory("simt-inputs", 1 << 28)
        for memory in (self._orders, self._inputs):
            memory.seal(_SEAL_FUTURE_WRITE)
        self._readable = [os.open(f"/proc/self/fd/{m.descriptor}", os.O_RDONLY) for m in (self._orders, self._inputs)]
        self._orders.map[: len(MAGIC)] = MAGIC
        self.order(Orders())

    @property
    def descriptors(self) -> tuple[int, int, int]:
        """Return what the other process inherits: orders, report, inputs. It can write to the report alone."""
        return self._readable[0], self._report.descriptor, self._readable[1]

    def close_descriptors(self) -> None:
        """Close what the other process has inherited by now."""
        for descriptor in self._readable:
            os.close(descriptor)
        self._readable = []

    def is_obeyed(self) -> bool:
        """Return whether the other process has mapped the pages and taken over the first orders."""
        return HEAD.unpack_from(self._report.map)[0] > 0

    def lock(self) -> None:
        """Forbid further writable mappings of the report, once the other process has made its own."""
        self._report.seal(_SEAL_FUTURE_WRITE)

    def order(self, orders: Orders) -> None:
        """Give new orders, which begin a new report."""
        if self._orders.descriptor < 0:
            return  # closed: the other process has ended
        self.number += 1
        kind = SCHEDULES.get(str(orders.schedule), 2)
        seed = int(orders.schedule) % 2**64 if kind == 2 else 0
        mode = 1 if orders.check else 2 if orders.count else 0
        fields = (mode, kind, seed, orders.seconds, GUARDS["end" if orders.check else orders.guard])
        rest = (int(orders.idle), orders.record, orders.least, orders.watch)
        packed = ORDERS.pack(MAGIC, self.number, *fields, *rest)
        at = _NUMBER_AT + 8
        self._orders.map[at : ORDERS.size] = packed[at:]
        self._orders.map[_NUMBER_AT:at] = packed[_NUMBER_AT:at]

    # -- inputs --

    def lend(self, data: bytes | memoryview, guard: str | None) -> int | None:
        """Copy an input to where the other process can read it; return its offset, or None if there is no room.

        guard: which end of it lies at a page's end, behind which the other process cannot read.
        """
        size = len(data)
        room = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        padded = -(-size // ALIGNMENT) * ALIGNMENT
        if not size or self._inputs.descriptor < 0 or self.used + room > len(self._inputs.map):
            return None
        offset = self.used + (room - padded if guard == "end" else 0)
        view = self._inputs.map
        view[self.used : self.used + mmap.PAGESIZE] = POISON * (mmap.PAGESIZE // 4)
        view[self.used + room - mmap.PAGESIZE : self.used + room] = POISON * (mmap.PAGESIZE // 4)
        view[offset : offset + size] = data
        self.used += room
        return offset

    def take_back(self) -> None:
        """Let what is lent from now on overwrite what was lent before."""
        self.used = 0

    # -- report --

    def read(self) -> Report:
        """Return the report on the current orders. Raises ReportError."""
        if self._report.descriptor < 0:
            return Report()
        page = self._report.map
        head = HEAD.unpack_from(page)
        number, launches, idle, checked, unprobed, writes, overflow, leaks, text, data, _, errors = head
        if number != self.number:
            return Report()  # the runtime has not looked for orders since: no kernel ran
        if writes > MOST_WRITES or text > DATA_AT - TEXT_AT or data > DATA_BYTES:
            raise ReportError("a size is impossible")
        report = Report(launches, idle, checked, unprobed, leaks % 2**63, errors, overflow=bool(overflow))
        report.writes = [_read_write(page, n) for n in range(writes)]
        report.recorded = _read_records(memoryview(bytes(page[DATA_AT : DATA_AT + data])))
        if text:
            try:
                written = msgspec.json.decode(
                    bytes(page[TEXT_AT : TEXT_AT + text]).decode("utf-8", "replace"), type=_Written, strict=True
                )
            except (msgspec.DecodeError, RecursionError) as error:
                raise ReportError(str(error)) from None
            report.kinds = {(kernel, grid, block): count for kernel, grid, block, count in written.launches}
            report.more, report.findings, report.operators = written.more, written.findings, dict(written.operators)
        return report

    def close(self) -> None:
        """Unmap everything."""
        self.close_descriptors()
        for memory in (self._orders, self._report, self._inputs):
            memory.close()


def _read_write(page: mmap.mmap, number: int) -> Write:
    offset, in_kernel, *numbers, name = WRITE.unpack_from(page, WRITES_AT + number * WRITE.size)
    if not in_kernel:
        return Write(offset, "", None, None)
    kernel = name.partition(b"\0")[0].decode("utf-8", "replace")
    return Write(offset, kernel, (numbers[0], numbers[1], numbers[2]), (numbers[3], numbers[4], numbers[5]))


def _read_records(data: memoryview) -> list[Recorded]:
    found, at = [], 0
    while at + RECORD.size <= len(data):
        writer, launch, size, _ = RECORD.unpack_from(data, at)
        at += RECORD.size
        if size > len(data) - at:
            raise ReportError("a record is longer than the report")
        found.append(Recorded(writer == BY_KERNEL, launch, data[at : at + size], writer == MEANWHILE))
        at += -(-size // 8) * 8
    return found


class _Memory:
    """Anonymous memory with a descriptor, mapped here for reading and writing."""

    def __init__(self, name: str, size: int):
        self.descriptor = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(self.descriptor, size)
            self.map = mmap.mmap(self.descriptor, size)
        except (OSError, ValueError):
            os.close(self.descriptor)
            raise
        self.seal(_SEAL_SHRINK | _SEAL_GROW)  # or a process could make reading it here a fault

    def seal(self, seals: int) -> None:
        with contextlib.suppress(OSError):  # Linux before 5.1 has fewer seals
            fcntl.fcntl(self.descriptor, _ADD_SEALS, seals)

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1
            self.map.close()


def _make_memory(name: str, size: int) -> _Memory:
    return _Memory(name, size)


def _try_memory(size: int) -> _Memory | None:
    try:
        return _Memory("simt-inputs", size)
    except (OSError, ValueError):
        return None
