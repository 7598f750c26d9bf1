"""GPU memory that two processes share through CUDA IPC: the judge owns it, the worker maps it."""

from __future__ import annotations

import ctypes
import functools
import math

import torch

from grader.worker.channel import ChannelError
from grader.worker.messages import Handle
from grader.worker.values import DTYPES, name_of


class _IpcHandle(ctypes.Structure):
    _fields_ = [("reserved", ctypes.c_char * 64)]


@functools.cache
def _runtime() -> ctypes.CDLL:
    """Return the CUDA runtime that torch has loaded."""
    torch.cuda.init()
    major = (torch.version.cuda or "").split(".")[0]
    library = ctypes.CDLL(f"libcudart.so.{major}")
    library.cudaGetErrorString.restype = ctypes.c_char_p
    return library


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


def _view(pointer: int, dtype: str, shape: list[int]) -> torch.Tensor:
    count = math.prod(shape) * DTYPES[dtype].itemsize
    flat = torch.as_tensor(_Span(pointer, max(count, 16)), device="cuda")
    return flat[:count].view(DTYPES[dtype]).view(shape)


class Shared:
    """GPU memory of the judge that a worker may map: `tensor` in the judge, `handle` for the worker."""

    def __init__(self, dtype: torch.dtype, shape: list[int] | torch.Size):
        self.library = _runtime()
        pointer = ctypes.c_void_p()
        count = max(math.prod(shape) * dtype.itemsize, 16)
        _check(self.library, self.library.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(count)), "GPU memory")
        self.pointer = pointer
        ipc = _IpcHandle()
        _check(self.library, self.library.cudaIpcGetMemHandle(ctypes.byref(ipc), pointer), "CUDA IPC")
        self.handle = Handle(name_of(dtype), list(shape), bytes(bytearray(ipc)))
        self.tensor = _view(pointer.value or 0, self.handle.dtype, self.handle.shape)

    def free(self) -> None:
        """Free the memory. The worker must have unmapped it (Release) or be dead."""
        if self.pointer.value:
            self.library.cudaFree(self.pointer)
            self.pointer = ctypes.c_void_p()


class Mapped:
    """The judge's GPU memory in the worker: maps each handle once."""

    def __init__(self):
        self.pointers: dict[bytes, int] = {}

    def attach(self, handle: Handle) -> torch.Tensor:
        """Return the tensor behind a handle. Raises ChannelError if the driver refuses it."""
        if handle.handle not in self.pointers:
            library, pointer = _runtime(), ctypes.c_void_p()
            library.cudaIpcOpenMemHandle.argtypes = [ctypes.c_void_p, _IpcHandle, ctypes.c_uint]
            ipc = _IpcHandle.from_buffer_copy(handle.handle)
            _check(library, library.cudaIpcOpenMemHandle(ctypes.byref(pointer), ipc, 1), "CUDA IPC")
            self.pointers[handle.handle] = pointer.value or 0
        return _view(self.pointers[handle.handle], handle.dtype, handle.shape)

    def release(self) -> None:
        """Unmap everything."""
        for pointer in self.pointers.values():
            _runtime().cudaIpcCloseMemHandle(ctypes.c_void_p(pointer))
        self.pointers.clear()
