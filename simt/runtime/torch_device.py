"""Make torch's device "cuda" mean this CPU where there is no GPU: in factories, for tensors, and in torch.cuda.

`cuda_on_cpu()` does so for the with-block and for the threads that are started in it, `enable()` for this thread until
`disable()`. Elsewhere the replaced functions call torch's own. Tensors report is_cuda and device "cuda:0", as they do
in C++ under simt, where is_cuda() is true of every tensor. Functions and properties are replaced rather than watched by
a TorchFunctionMode, because torch turns modes off while a backward or an operator of the program runs.
"""

from __future__ import annotations

import functools
import threading
import types
from collections.abc import Callable

import torch
from torch.jit._builtins import _find_builtin, _register_builtin
from torch.utils import _device

from simt.runtime import torch_cuda
from simt.runtime.torch_replaced import (
    MISSING,
    choose,
    has_gpu,
    is_on,
    refuse_second,
    replace,
    replaced,
    state,
    suspended,
    to_cpu,
)

_GPU = torch.device("cuda", 0)
# Those that torch's own list of factories lacks, because set_default_device() does not concern them.
_MORE_FACTORIES = "empty_like full_like ones_like rand_like randint_like randn_like zeros_like normal".split()
_FUNCTION_TYPES = (types.BuiltinFunctionType, types.FunctionType)
_METHODS = "to new_empty new_empty_strided new_full new_ones new_tensor new_zeros".split()
_base = torch._C.TensorBase
_get_device = _base.device.__get__
_lock = threading.Lock()


class cuda_on_cpu:
    """Let "cuda" mean this CPU in the with-block. Nothing changes on a machine with a GPU.

    A class rather than a generator, because contextlib assigns to an exception that passes through a generator.
    """

    def __enter__(self) -> None:
        self.here = not has_gpu()
        if self.here:
            _install()
            state.on += 1

    def __exit__(self, *error: object) -> None:
        if self.here:
            state.on = max(state.on - 1, 0)  # the block may have called disable()


def enable() -> None:
    """Let "cuda" mean this CPU in this thread from now on. Nothing changes on a machine with a GPU."""
    if not has_gpu():
        _install()
        state.on = max(state.on, 1)


def disable() -> None:
    """Restore torch's functions."""
    state.on = 0
    with _lock:
        while replaced:
            owner, name, before = replaced.pop()
            if before is MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, before)


def _install() -> None:
    with _lock:
        if replaced:
            return
        _replace_factories()
        _replace_methods()
        _replace_threads()
        torch_cuda.install()


@functools.cache  # kept, as torch.jit knows them by their identity
def _convert(function: Callable) -> Callable:
    """Return a factory that takes the GPU's name for the CPU's."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        if state.on:
            if kwargs.get("device") is not None:
                place = kwargs["device"]
                kwargs["device"] = to_cpu(f"cuda:{place}" if isinstance(place, int) else place)
            kwargs.pop("pin_memory", None)
        return function(*args, **kwargs)

    operator = _find_builtin(function)
    if operator:  # torch.jit.script looks for the function, by its identity
        _register_builtin(call, operator)
    return call


def _replace_factories() -> None:
    factories = _device._device_constructors()  # cached: torch looks for its own functions in it
    for owner in (torch, torch.fft, torch.nested):
        for name, value in list(vars(owner).items()):
            if name in _MORE_FACTORIES or (isinstance(value, _FUNCTION_TYPES) and value in factories):
                replace(owner, name, _convert(value))
    begin = _device.DeviceContext.__init__
    replace(_device.DeviceContext, "__init__", lambda self, device: begin(self, to_cpu(device) if state.on else device))
    load = torch.load

    @functools.wraps(load)
    def load_on_cpu(f, map_location=None, *args, **kwargs):
        if state.on:
            map_location = "cpu" if map_location is None else to_cpu(map_location)
        return load(f, map_location, *args, **kwargs)

    replace(torch, "load", load_on_cpu)
    replace(torch, "Generator", _Generator)


class _AnyGenerator(type(torch._C.Generator)):
    """Takes every generator for an instance."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, torch._C.Generator)


class _Generator(torch._C.Generator, metaclass=_AnyGenerator):
    """torch.Generator, whose device "cuda" is the CPU."""

    def __new__(cls, device="cpu"):
        return torch._C.Generator.__new__(cls, to_cpu(device) if state.on else device)  # pyright: ignore[reportCallIssue]


# ---- tensors ----


def _is_here(tensor: torch.Tensor) -> bool:
    """Return whether a tensor is on the CPU and "cuda" means it."""
    return is_on() and _get_device(tensor).type == "cpu"


def _replace_methods() -> None:
    tensor = torch.Tensor
    for name in _METHODS:
        replace(tensor, name, _convert_method(name))
    for name, stand_in in (("cuda", _cuda), ("cpu", _cpu), ("type", _type)):
        replace(tensor, name, choose(stand_in, getattr(_base, name)))
    for name, result in (("get_device", lambda x: 0), ("pin_memory", lambda x, device=None: x)):
        replace(tensor, name, choose(result, getattr(_base, name)))
    replace(tensor, "is_pinned", choose(lambda x, device=None: True, _base.is_pinned))
    replace(tensor, "record_stream", choose(lambda x, stream: None, _base.record_stream))
    for name, here in (("is_cuda", True), ("is_cpu", False), ("device", _GPU)):
        replace(tensor, name, _make_property(getattr(_base, name), here))
    show = tensor.__repr__

    @functools.wraps(show)
    def show_as_torch(self, **kwargs):
        with suspended():  # else each shows a device
            return show(self, **kwargs)

    replace(tensor, "__repr__", show_as_torch)


def _make_property(own, here: object) -> property:
    get = own.__get__
    return property(lambda self: here if _is_here(self) else get(self), doc=own.__doc__)


def _convert_method(name: str) -> Callable:
    own = getattr(_base, name)

    @functools.wraps(own)
    def call(self, *args, **kwargs):
        if not state.on:
            return own(self, *args, **kwargs)
        if args and isinstance(args[0], int) and name == "to":
            args = (f"cuda:{args[0]}", *args[1:])
        if isinstance(kwargs.get("device"), int):
            kwargs["device"] = f"cuda:{kwargs['device']}"
        wants_cpu = any(isinstance(v, (str, torch.device)) and str(v) == "cpu" for v in (*args, *kwargs.values()))
        result = own(self, *map(to_cpu, args), **{key: to_cpu(value) for key, value in kwargs.items()})
        return result.clone() if result is self and wants_cpu else result  # a GPU's tensor would be copied

    return call


def _cuda(self: torch.Tensor, device=None, non_blocking=False, memory_format=torch.preserve_format) -> torch.Tensor:
    if isinstance(device, int) and device:
        refuse_second(f"cuda:{device}")
    to_cpu(device)
    if memory_format is torch.preserve_format:
        return self
    return _base.to(self, "cpu", memory_format=memory_format)


def _cpu(self: torch.Tensor, memory_format=torch.preserve_format) -> torch.Tensor:
    result = _base.cpu(self, memory_format=memory_format)
    return result.clone() if result is self else result


def _type(self: torch.Tensor, dtype=None, non_blocking=False, **kwargs):
    if isinstance(dtype, str):
        dtype = dtype.replace("torch.cuda.", "torch.")
    found = _base.type(self, dtype, non_blocking, **kwargs) if dtype is not None else _base.type(self)
    return found.replace("torch.", "torch.cuda.") if isinstance(found, str) else found


# ---- threads ----


def _replace_threads() -> None:
    """Let a thread begin with what the thread has that starts it."""
    start = threading.Thread.start

    @functools.wraps(start)
    def start_alike(self):
        if state.on:
            run = self.run

            def run_with():
                state.on = 1
                run()

            self.run = run_with
        start(self)

    replace(threading.Thread, "start", start_alike)
