"""GPU memory that two processes share through CUDA IPC: one owns it, the other maps it.

The judge owns inputs and buffers, which the worker maps. While a submission is timed, the judge maps the results where
the worker has left them.
"""

from __future__ import annotations

import ctypes
import functools
import math

import torch

from grader.worker.channel import ChannelError
from grader.worker.layout import count_covered, lay_out
from grader.worker.messages import HANDLE_BYTES, Handle, Location
from grader.worker.values import DTYPES, is_shape, name_of

IPC = "CUDA IPC"


class _IpcHandle(ctypes.Structure):
    _fields_ = [("reserved", ctypes.c_char * HANDLE_BYTES)]


@functools.cache
def _runtime() -> ctypes.CDLL:
    """Return the CUDA runtime that torch has loaded."""
    torch.cuda.init()
    major = (torch.version.cuda or "").split(".")[0]
    library = ctypes.CDLL(f"libcudart.so.{major}")
    library.cudaGetErrorString.restype = ctypes.c_char_p
    return library


@functools.cache
def _driver() -> ctypes.CDLL:
    """Return the CUDA driver, which torch has started."""
    torch.cuda.init()
    return ctypes.CDLL("libcuda.so.1")


def _find_allocation(pointer: int) -> tuple[int, int]:
    """Return the address and the bytes of the allocation that holds an address; (0, 0) if no allocation does."""
    base, size = ctypes.c_uint64(), ctypes.c_size_t()
    code = _driver().cuMemGetAddressRange_v2(ctypes.byref(base), ctypes.byref(size), ctypes.c_uint64(pointer))
    return (0, 0) if code else (base.value, size.value)


def last_error() -> str:
    """Return the text of the pending CUDA error and clear it; an empty string if there is none."""
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
    """Device bytes that torch can view without owning them."""

    def __init__(self, pointer: int, count: int):
        self.__cuda_array_interface__ = {"shape": (count,), "typestr": "|u1", "data": (pointer, False), "version": 2}


def _view(pointer: int, dtype: str, shape: list[int], strides: list[int] | None = None) -> torch.Tensor:
    count = _count_bytes(DTYPES[dtype], shape, strides)
    flat = torch.as_tensor(_Span(pointer, max(count, 16)), device="cuda")
    return lay_out(flat[:count].view(DTYPES[dtype]), shape, strides)


def _count_bytes(dtype: torch.dtype, shape: list[int] | torch.Size, strides: list[int] | None) -> int:
    return (math.prod(shape) if strides is None else count_covered(shape, strides)) * dtype.itemsize


class Shared:
    """GPU memory of the judge that a worker may map: `tensor` in the judge, `handle` for the worker."""

    def __init__(self, dtype: torch.dtype, shape: list[int] | torch.Size, strides: list[int] | None = None):
        self.library = _runtime()
        pointer = ctypes.c_void_p()
        count = max(_count_bytes(dtype, shape, strides), 16)
        _check(self.library, self.library.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(count)), "GPU memory")
        self.pointer = pointer
        ipc = _IpcHandle()
        _check(self.library, self.library.cudaIpcGetMemHandle(ctypes.byref(ipc), pointer), IPC)
        self.handle = Handle(name_of(dtype), list(shape), bytes(bytearray(ipc)), strides)
        self.tensor = _view(pointer.value or 0, self.handle.dtype, self.handle.shape, strides)

    def free(self) -> None:
        """Free the memory. The worker must have unmapped it (Release) or be dead."""
        if self.pointer.value:
            self.library.cudaFree(self.pointer)
            self.pointer = ctypes.c_void_p()


BUFFER_ID = 7  # CU_POINTER_ATTRIBUTE_BUFFER_ID: no two allocations of a process have the same
_shared: dict[int, tuple[int, bytes] | None] = {}  # address and handle of allocations by it; None: cannot be shared


def locate(tensor: torch.Tensor) -> Location | None:
    """Return where a tensor of this process lies; None if that memory cannot be shared."""
    if not tensor.is_cuda or tensor.layout is not torch.strided:
        return None
    pointer, buffer = tensor.data_ptr(), ctypes.c_uint64()
    if _driver().cuPointerGetAttribute(ctypes.byref(buffer), BUFFER_ID, ctypes.c_uint64(pointer)):
        return None
    if buffer.value not in _shared:
        _shared[buffer.value] = _share(pointer)
    shared = _shared[buffer.value]
    if shared is None:
        return None
    base, handle = shared
    return Location(name_of(tensor.dtype), list(tensor.shape), list(tensor.stride()), handle, pointer - base)


def _share(pointer: int) -> tuple[int, bytes] | None:
    """Return the address and the handle of the allocation that holds an address; None if it cannot be shared."""
    library, ipc = _runtime(), _IpcHandle()
    base, _ = _find_allocation(pointer)
    if not base or library.cudaIpcGetMemHandle(ctypes.byref(ipc), ctypes.c_void_p(base)):
        library.cudaGetLastError()
        return None
    return base, bytes(bytearray(ipc))


def _open(handle: bytes) -> int:
    """Map the memory of another process; return its address here. Raises ChannelError if the driver refuses it."""
    library, pointer = _runtime(), ctypes.c_void_p()
    library.cudaIpcOpenMemHandle.argtypes = [ctypes.c_void_p, _IpcHandle, ctypes.c_uint]
    _check(library, library.cudaIpcOpenMemHandle(ctypes.byref(pointer), _IpcHandle.from_buffer_copy(handle), 1), IPC)
    return pointer.value or 0


class Foreign:
    """A worker's GPU memory in the judge: maps each allocation once. What the worker says of it is checked."""

    def __init__(self):
        self.pointers: dict[bytes, int] = {}
        self.views: dict[tuple[bytes, int, str], torch.Tensor] = {}

    def view(self, location: Location) -> torch.Tensor:
        """Return the tensor at a location, without a copy.

        Raises ChannelError where there can be no such tensor.
        """
        shape, strides = location.shape, location.strides
        if location.dtype not in DTYPES or not is_shape(shape) or len(strides) != len(shape):
            raise ChannelError("a result's location makes no sense")
        dtype = DTYPES[location.dtype]
        if not math.prod(shape):
            return torch.empty(shape, dtype=dtype, device="cuda")
        covered = count_covered(shape, strides)
        return self._flat(location, covered * dtype.itemsize)[:covered].as_strided(shape, strides)

    def _flat(self, location: Location, least: int) -> torch.Tensor:
        """Return the allocation from the offset on as one dimension; it must have at least so many bytes."""
        if location.handle not in self.pointers:
            self.pointers[location.handle] = _open(location.handle)
        pointer, dtype = self.pointers[location.handle], DTYPES[location.dtype]
        key = location.handle, location.offset, location.dtype
        if key not in self.views:
            base, size = _find_allocation(pointer)
            left = base + size - pointer - location.offset if base else 0
            if left <= 0 or location.offset % dtype.itemsize:
                raise ChannelError("a result lies outside its memory")
            flat = torch.as_tensor(
                _Span(pointer + location.offset, left // dtype.itemsize * dtype.itemsize), device="cuda"
            )
            self.views[key] = flat.view(dtype)
        if self.views[key].numel() * dtype.itemsize < least:
            raise ChannelError("a result is larger than its memory")
        return self.views[key]

    def release(self) -> None:
        """Unmap everything."""
        self.views.clear()
        for pointer in self.pointers.values():
            _runtime().cudaIpcCloseMemHandle(ctypes.c_void_p(pointer))
        self.pointers.clear()


class Mapped:
    """The judge's GPU memory in the worker: maps each handle once."""

    def __init__(self):
        self.pointers: dict[bytes, int] = {}

    def attach(self, handle: Handle) -> torch.Tensor:
        """Return the tensor behind a handle. Raises ChannelError if the driver refuses it."""
        if handle.handle not in self.pointers:
            self.pointers[handle.handle] = _open(handle.handle)
        return _view(self.pointers[handle.handle], handle.dtype, handle.shape, handle.strides)

    def release(self) -> None:
        """Unmap everything."""
        for pointer in self.pointers.values():
            _runtime().cudaIpcCloseMemHandle(ctypes.c_void_p(pointer))
        self.pointers.clear()
