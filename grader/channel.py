"""Messages between judge and worker: framed, bounded, decoded strictly against a schema, never unpickled.

A frame is the four bytes of MAGIC, the length as eight bytes little endian, and one msgpack message. Tensors travel as
(dtype, shape, bytes) on the CPU. On a GPU they stay where they are: the judge allocates them and sends a CUDA IPC
handle, the worker maps it.
"""

from __future__ import annotations

import ctypes
import functools
import math
import select
import socket
import time
from collections.abc import Callable
from typing import Union

import msgspec
import torch

MAGIC = b"GRD1"
HEADER = len(MAGIC) + 8
MIB = 1 << 20
MAX_COMMAND = 8 << 30  # bytes; the judge is trusted, this only catches a torn stream
MAX_TEXT = 20_000  # characters of one message from the worker
MAX_SOURCE = 200_000  # characters of one source told to the judge, and of all items of a list
LOST = 74  # exit status of a worker that can no longer talk to its judge

DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        *(torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16),
        *(torch.int8, torch.uint8, torch.bool, torch.complex64, torch.complex128),
    )
}


class ChannelError(Exception):
    """The other side sent something that is no message, or broke the connection off."""


class ChannelTimeout(ChannelError):
    """The other side did not answer in time."""


# --- values ----------------------------------------------------------------------------------------------------------


class Array(msgspec.Struct, tag="array", forbid_unknown_fields=True):
    """A CPU tensor: dtype by name, shape, elements in row-major order."""

    dtype: str
    shape: list[int]
    data: bytes


class Handle(msgspec.Struct, tag="handle", forbid_unknown_fields=True):
    """A tensor in GPU memory that the judge owns: 64 bytes of CUDA IPC handle."""

    dtype: str
    shape: list[int]
    handle: bytes


class Items(msgspec.Struct, tag="items", forbid_unknown_fields=True):
    """A list or a tuple; a dict is kind "dict" with keys and values in turn."""

    kind: str
    values: list["Value"]


class Named(msgspec.Struct, tag="named", forbid_unknown_fields=True):
    """A torch.dtype or torch.device by its name, e.g. ("dtype", "float32")."""

    kind: str
    name: str


Value = Union[None, bool, int, float, str, Array, Handle, Items, Named]


# --- commands, judge to worker ---------------------------------------------------------------------------------------


class Build(msgspec.Struct, tag="build", forbid_unknown_fields=True):
    """Import the submission. seconds: after how long the worker writes down where it hangs.

    instead: CUDA sources that load_inline is to be given in place of the submission's own (see grader.mutants)."""

    source: str
    path: str
    seconds: float
    instead: dict[str, str] = {}


class Construct(msgspec.Struct, tag="construct", forbid_unknown_fields=True):
    """ModelNew(*args, **kwargs), then the weights. model_source: for ModelNew.load_reference."""

    args: Value
    kwargs: Value
    state: dict[str, Value]
    model_source: str
    model_path: str
    overrides: Value
    guard: str | None
    seconds: float


class Forward(msgspec.Struct, tag="forward", forbid_unknown_fields=True):
    """Run forward once for each list in `batches`, all results kept until the last is done.

    outputs: for each batch the judge's own buffers to copy the results into (GPU), else empty: results travel as
    bytes, at most max_bytes of them. kernel_seconds: limit for one kernel; seconds: for the whole command.
    check: run with all of simt's checks on, and tell what they found; a fault is then one of the findings.
    mutant: which edit of the CUDA sources is in force, of those that Build.instead makes possible.
    """

    batches: list[list[Value]]
    outputs: list[list[Handle]]
    schedule: str | int
    guard: str | None
    kernel_seconds: float
    seconds: float
    max_bytes: int
    check: bool = False
    mutant: int = 0


class Gradient(msgspec.Struct, tag="gradient", forbid_unknown_fields=True):
    """Run forward and its backward once, with gradients wanted for these inputs and parameters.

    differentiable: numbers of inputs; parameters: names of weights. upstream: the gradient of each floating output.
    strided: hand it over so that it does not lie in memory in one piece. other: inputs of a second call of forward, made
    between the first and its backward; empty for none. outputs: the judge's buffers for the gradients (GPU), else empty.
    check, mutant: as of Forward.
    """

    inputs: list[Value]
    differentiable: list[int]
    parameters: list[str]
    upstream: list[Value]
    strided: bool
    other: list[Value]
    outputs: list[Handle]
    schedule: str | int
    guard: str | None
    kernel_seconds: float
    seconds: float
    max_bytes: int
    check: bool = False
    mutant: int = 0


class Prepare(msgspec.Struct, tag="prepare", forbid_unknown_fields=True):
    """Map these inputs for Batch commands to come; index into them there.

    upstream: the gradient of each floating output, if Batch is to run backward too; differentiable, parameters: whose gradients it makes.
    """

    batches: list[list[Value]]
    upstream: list[Value] = []
    differentiable: list[int] = []
    parameters: list[str] = []


class Batch(msgspec.Struct, tag="batch", forbid_unknown_fields=True):
    """Run forward (and backward) on the prepared inputs of these indices, keep the results (the gradients), wait for the device. Answered by Done."""

    indices: list[int]
    seconds: float


class Collect(msgspec.Struct, tag="collect", forbid_unknown_fields=True):
    """Copy the results of the last Batch's run number `position` into the judge's buffers."""

    position: int
    outputs: list[Handle]


class Release(msgspec.Struct, tag="release", forbid_unknown_fields=True):
    """Let go of everything that maps the judge's memory."""


Command = Union[Build, Construct, Forward, Gradient, Prepare, Batch, Collect, Release]


class Order(msgspec.Struct, forbid_unknown_fields=True):
    """A command with its number, which every answer to it repeats."""

    number: int
    command: Command


# --- answers, worker to judge ----------------------------------------------------------------------------------------


class Ready(msgspec.Struct, tag="ready", forbid_unknown_fields=True):
    """The worker is up. versions: e.g. torch."""

    versions: dict[str, str]


class Building(msgspec.Struct, tag="building", forbid_unknown_fields=True):
    """A compiler runs now for the extension of this name."""

    name: str


class Built(msgspec.Struct, tag="built", forbid_unknown_fields=True):
    """It is done after so many seconds. sources: the student's strings, e.g. {"cuda_sources": "...",
    "cuda_sources[0]": "..."}: one string, or where a list was given each item too."""

    name: str
    seconds: float
    sources: dict[str, str]


class Done(msgspec.Struct, tag="done", forbid_unknown_fields=True):
    """The command was carried out."""


class Result(msgspec.Struct, forbid_unknown_fields=True):
    """One returned tensor as it is; data is None if it stays on the GPU or does not fit."""

    dtype: str
    shape: list[int]
    device: str
    data: bytes | None


class Launch(msgspec.Struct, forbid_unknown_fields=True):
    """A kernel's launch; grid and block as (x, y, z)."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]


class Run(msgspec.Struct, forbid_unknown_fields=True):
    """One call of forward. kind: what it returned; modified, aliases: indices of inputs; reuses: an earlier output.

    launches: on a CPU the kernels of this call, oldest first, of many the last ones."""

    kind: str
    results: list[Result]
    modified: list[int]
    aliases: list[int]
    reuses: bool
    launches: list[Launch] = []


class Found(msgspec.Struct, forbid_unknown_fields=True):
    """What simt's checks found at one place of a kernel, an error. check: e.g. "race"; line: in the student's own string."""

    check: str
    message: str
    kernel: str
    source: str
    line: int
    block: list[int] | None
    thread: list[int] | None


class Outputs(msgspec.Struct, tag="outputs", forbid_unknown_fields=True):
    """What a Forward command's calls returned, in order; found: the one to mend first leads. A fault ends the runs early."""

    runs: list[Run]
    found: list[Found] = []


class Gradients(msgspec.Struct, tag="gradients", forbid_unknown_fields=True):
    """What a Gradient command gave. graph: whether forward's result carries a gradient at all; the rest is empty if not.

    results: a gradient for each wanted input, then for each wanted parameter; None where there is none. unknown: numbers
    in that list of parameters that ModelNew does not have. modified: what backward wrote to, by numbers that go through
    the wanted inputs, the parameters, the upstream gradients and forward's results. found: as of Outputs. launches: backward's, as of Run.
    """

    graph: bool
    results: list[Result | None] = []
    unknown: list[int] = []
    modified: list[int] = []
    found: list[Found] = []
    launches: list[Launch] = []


class Note(msgspec.Struct, forbid_unknown_fields=True):
    """One compiler message: source e.g. "cuda_sources", line from 1 in the student's own string."""

    source: str
    line: int | None
    severity: str
    message: str
    text: str


class Failure(msgspec.Struct, tag="failure", forbid_unknown_fields=True, omit_defaults=True):
    """The submission raised. reason: a Reason's name; kind: the exception's type; line: of the submission's file."""

    reason: str
    kind: str
    message: str
    line: int | None = None
    notes: list[Note] = []
    kernel: str | None = None
    source: str | None = None
    source_line: int | None = None
    block: list[int] | None = None
    thread: list[int] | None = None
    broken: bool = False  # the process is of no further use (a sticky CUDA error)


Reply = Union[Ready, Building, Built, Done, Outputs, Gradients, Failure]


class Answer(msgspec.Struct, forbid_unknown_fields=True):
    """A reply with the number of the order it answers (0 for Ready)."""

    number: int
    reply: Reply


_encode = msgspec.msgpack.Encoder().encode
_orders = msgspec.msgpack.Decoder(Order, strict=True)
_answers = msgspec.msgpack.Decoder(Answer, strict=True)


# --- frames ----------------------------------------------------------------------------------------------------------


class Channel:
    """One end of the connection. `alive` says whether the other side still runs; None if only the socket can tell."""

    def __init__(self, sock: socket.socket, alive: Callable[[], bool] | None = None):
        self.sock = sock
        self.alive = alive

    def send(self, message: Order | Answer, seconds: float | None = None) -> None:
        """Send one message. ChannelTimeout if the other side does not take it in time, ChannelError if it is gone."""
        data = _encode(message)
        frame = MAGIC + len(data).to_bytes(8, "little")
        deadline = None if seconds is None else time.monotonic() + seconds
        try:
            self.sock.settimeout(None)
            for part in (frame, data):
                view = memoryview(part)
                while view:
                    self._wait(deadline, write=True)
                    view = view[self.sock.send(view[: 4 * MIB], socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL) :]
        except BlockingIOError:
            raise ChannelTimeout("the connection is full") from None
        except OSError as error:
            raise ChannelError(f"the connection is broken ({error.strerror})") from None

    def order(self) -> Order:
        """Wait for the judge's next command (worker's side). ChannelError when the judge has hung up."""
        return self._decode(_orders, self._frame(MAX_COMMAND, None))

    def answer(self, limit: int, deadline: float) -> Answer:
        """The worker's next message (judge's side), of at most `limit` bytes, before time.monotonic() is `deadline`."""
        return self._decode(_answers, self._frame(limit, deadline))

    def _decode(self, decoder: msgspec.msgpack.Decoder, data: bytearray):
        try:
            return decoder.decode(data)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise ChannelError(f"a message does not follow the protocol ({error})") from None

    def _frame(self, limit: int, deadline: float | None) -> bytearray:
        header = self._exactly(HEADER, deadline)
        if header[: len(MAGIC)] != MAGIC:
            raise ChannelError("something other than a message was written into the connection")
        length = int.from_bytes(header[len(MAGIC) :], "little")
        if length > limit:
            raise ChannelError(f"a message of {length} bytes was announced, more than the {limit} allowed")
        return self._exactly(length, deadline)

    def _exactly(self, count: int, deadline: float | None) -> bytearray:
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
        """Until the socket is ready. A dead worker whose children hold the socket open is noticed by `alive`."""
        poller = select.poll()
        poller.register(self.sock.fileno(), select.POLLOUT if write else select.POLLIN)
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


# --- tensors ---------------------------------------------------------------------------------------------------------


def raw(tensor: torch.Tensor) -> bytes:
    """A CPU tensor's elements in row-major order."""
    tensor = tensor.detach().resolve_conj().resolve_neg().contiguous()
    return ctypes.string_at(tensor.data_ptr(), tensor.numel() * tensor.element_size()) if tensor.numel() else b""


def unraw(dtype: str, shape: list[int], data: bytes) -> torch.Tensor:
    """A new CPU tensor of these elements. ChannelError if they do not add up."""
    if dtype not in DTYPES:
        raise ChannelError(f"the dtype {dtype!r} cannot be sent")
    if len(shape) > 64 or any(size < 0 for size in shape):
        raise ChannelError(f"{shape} is no shape")
    if math.prod(shape) * DTYPES[dtype].itemsize != len(data):
        raise ChannelError(f"{len(data)} bytes do not fill a tensor of {dtype} {shape}")
    tensor = torch.empty(shape, dtype=DTYPES[dtype])
    if data:
        ctypes.memmove(tensor.data_ptr(), data, len(data))
    return tensor


def name_of(dtype: torch.dtype) -> str:
    """"float32" for torch.float32."""
    return str(dtype).removeprefix("torch.")


def overlap(a: object, b: object) -> bool:
    """Whether two tensors share a byte."""
    if not (isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)) or not a.numel() or not b.numel():
        return False
    if a.device != b.device or a.layout is not torch.strided or b.layout is not torch.strided:
        return False
    (start_a, end_a), (start_b, end_b) = _extent(a), _extent(b)
    return start_a < end_b and start_b < end_a


def _extent(tensor: torch.Tensor) -> tuple[int, int]:
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
    return tensor.data_ptr(), tensor.data_ptr() + (last + 1) * tensor.element_size()


def unfit(value: object) -> str:
    """What in a value has no form on the wire, in a few words, such as "a ndarray"; empty if all of it can be sent."""
    if isinstance(value, torch.Tensor):
        if value.layout is not torch.strided or value.is_nested:
            return "a tensor that is not dense"
        return "" if name_of(value.dtype) in DTYPES else f"a tensor of dtype {name_of(value.dtype)}"
    if isinstance(value, dict):
        value = [part for pair in value.items() for part in pair]
    if isinstance(value, (list, tuple)):
        return next(filter(None, map(unfit, value)), "")
    if value is None or isinstance(value, (torch.dtype, torch.device)):
        return ""
    if isinstance(value, (bool, int, float, str)):
        try:
            _encode(value)
            return ""
        except OverflowError:
            return "an integer of more than 64 bits"
        except (TypeError, UnicodeEncodeError):  # numpy's numbers are Python's too
            pass
    return f"a {type(value).__name__}"


def pack(value: object, share: Callable[[torch.Tensor], Handle] | None = None) -> Value:
    """A Python value for the wire. share makes a handle of a tensor (GPU); without it tensors go as bytes.

    Raises TypeError for a value that has no form there.
    """
    if isinstance(value, torch.Tensor):
        if share is not None:
            return share(value)
        return Array(name_of(value.dtype), list(value.shape), raw(value.cpu()))
    if isinstance(value, (list, tuple)):  # torch.Size and named tuples become plain tuples
        return Items("list" if isinstance(value, list) else "tuple", [pack(item, share) for item in value])
    if isinstance(value, dict):
        flat = [part for pair in value.items() for part in pair]
        return Items("dict", [pack(item, share) for item in flat])
    if isinstance(value, (torch.dtype, torch.device)):
        return Named("dtype" if isinstance(value, torch.dtype) else "device", str(value).removeprefix("torch."))
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"a {type(value).__name__} cannot be handed to a submission")


def unpack(value: Value, attach: Callable[[Handle], torch.Tensor] | None = None) -> object:
    """The Python value again, tensors newly allocated, or mapped by `attach`."""
    if isinstance(value, Array):
        return unraw(value.dtype, value.shape, value.data)
    if isinstance(value, Handle):
        if attach is None:
            raise ChannelError("a GPU tensor was sent to a process without a GPU")
        return attach(value)
    if isinstance(value, Named):
        return getattr(torch, value.name) if value.kind == "dtype" else torch.device(value.name)
    if isinstance(value, Items):
        items = [unpack(item, attach) for item in value.values]
        if value.kind == "dict":
            return dict(zip(items[::2], items[1::2]))
        return items if value.kind == "list" else tuple(items)
    return value


# --- what forward returns --------------------------------------------------------------------------------------------


def tensors(output: object, device: str = "cpu") -> list:
    """What is compared of a result, the same for Model and ModelNew: its ends in order, without None; a number is a tensor on the device.

    What is neither stays as it is.
    """
    ends = [end for end in leaves(output) if end is not None]
    return [torch.tensor(end, device=device) if isinstance(end, (bool, int, float, complex)) else end for end in ends]


def leaves(output: object, depth: int = 0) -> list:
    """What stands at the ends of a nest of tuples, lists and dicts; at most 1000."""
    if isinstance(output, dict):
        output = list(output.values())
    if isinstance(output, (tuple, list)) and depth < 8:
        return [leaf for item in output[:1000] for leaf in leaves(item, depth + 1)][:1000]
    return [output]


def kind_of(output: object) -> str:
    """"Tensor", "tuple of 2 tensors", or the name of what forward returned instead."""
    if isinstance(output, torch.Tensor):
        return "sparse tensor" if output.layout is not torch.strided else "Tensor"
    name = type(output).__name__[:100].encode("utf-8", "replace").decode()
    if isinstance(output, (tuple, list, dict)):
        ends = leaves(output)
        only = all(isinstance(leaf, torch.Tensor) for leaf in ends)
        return f"{name} of {len(ends)} {'tensor' if only else 'thing'}{'' if len(ends) == 1 else 's'}"
    return name


# --- GPU memory that two processes share -----------------------------------------------------------------------------


class _IpcHandle(ctypes.Structure):
    _fields_ = [("reserved", ctypes.c_char * 64)]


@functools.cache
def _runtime() -> ctypes.CDLL:
    """The CUDA runtime that torch has loaded."""
    torch.cuda.init()
    major = (torch.version.cuda or "").split(".")[0]
    library = ctypes.CDLL(f"libcudart.so.{major}")
    library.cudaGetErrorString.restype = ctypes.c_char_p
    return library


def last_error() -> str:
    """The CUDA error that nobody has looked at yet, in words, or an empty string; it is then forgotten."""
    library = _runtime()
    code = library.cudaGetLastError()
    return library.cudaGetErrorString(code).decode(errors="replace") if code else ""


def _check(library: ctypes.CDLL, code: int, what: str) -> None:
    if code:
        library.cudaGetLastError()  # else torch reports it a second time
        text = library.cudaGetErrorString(code).decode(errors="replace")
        kind = torch.OutOfMemoryError if code == 2 else ChannelError
        raise kind(f"{what}: {text}")


class _Span:
    """Device bytes that torch can look at without owning them."""

    def __init__(self, pointer: int, count: int):
        self.__cuda_array_interface__ = {"shape": (count,), "typestr": "|u1", "data": (pointer, False), "version": 2}


def _view(pointer: int, dtype: str, shape: list[int]) -> torch.Tensor:
    count = math.prod(shape) * DTYPES[dtype].itemsize
    flat = torch.as_tensor(_Span(pointer, max(count, 16)), device="cuda")
    return flat[:count].view(DTYPES[dtype]).view(shape)


class Shared:
    """GPU memory of the judge that a worker may map: `tensor` on this side, `handle` for the other."""

    def __init__(self, dtype: torch.dtype, shape: list[int] | torch.Size):
        self.library = _runtime()
        pointer = ctypes.c_void_p()
        count = max(math.prod(shape) * dtype.itemsize, 16)
        _check(self.library, self.library.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(count)), "GPU memory")
        self.pointer = pointer
        ipc = _IpcHandle()
        _check(self.library, self.library.cudaIpcGetMemHandle(ctypes.byref(ipc), pointer), "CUDA IPC")
        self.handle = Handle(name_of(dtype), list(shape), bytes(bytearray(ipc)))
        self.tensor = _view(pointer.value, self.handle.dtype, self.handle.shape)

    def free(self) -> None:
        """Give the memory back. The worker must have let go of it (Release) or be dead."""
        if self.pointer.value:
            self.library.cudaFree(self.pointer)
            self.pointer = ctypes.c_void_p()


class Mapped:
    """The judge's GPU memory as seen from the worker: maps each handle once."""

    def __init__(self):
        self.pointers: dict[bytes, int] = {}

    def attach(self, handle: Handle) -> torch.Tensor:
        """The tensor behind a handle. ChannelError if the driver refuses it."""
        if handle.handle not in self.pointers:
            library, pointer = _runtime(), ctypes.c_void_p()
            library.cudaIpcOpenMemHandle.argtypes = [ctypes.c_void_p, _IpcHandle, ctypes.c_uint]
            ipc = _IpcHandle.from_buffer_copy(handle.handle)
            _check(library, library.cudaIpcOpenMemHandle(ctypes.byref(pointer), ipc, 1), "CUDA IPC")
            self.pointers[handle.handle] = pointer.value
        return _view(self.pointers[handle.handle], handle.dtype, handle.shape)

    def release(self) -> None:
        """Unmap everything."""
        for pointer in self.pointers.values():
            _runtime().cudaIpcCloseMemHandle(ctypes.c_void_p(pointer))
        self.pointers.clear()
