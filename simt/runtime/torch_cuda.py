"""Define torch.cuda's functions where "cuda" means this CPU: its figures are those of the GPU whose limits apply."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import sys
from collections.abc import Callable

import torch
from torch.cuda.amp import common

from simt.devices import Device
from simt.errors import NoGpu
from simt.runtime import library, torch_graphs, torch_streams
from simt.runtime.torch_replaced import choose, has_gpu, is_on, replace, to_cpu


@dataclasses.dataclass(frozen=True)
class Properties:
    """What torch.cuda.get_device_properties() returns."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    max_threads_per_multi_processor: int
    regs_per_multiprocessor: int
    shared_memory_per_block: int
    shared_memory_per_block_optin: int
    shared_memory_per_multiprocessor: int
    L2_cache_size: int
    clock_rate: int
    gcnArchName: str
    warp_size: int = 32
    max_threads_per_block: int = 1024
    is_integrated: int = 0
    is_multi_gpu_board: int = 0


def _modeled() -> Device:
    return library.options.find_device()


def get_device_properties(device=None) -> Properties:
    """Return the figures of the GPU whose limits apply to launches."""
    gpu = _modeled()
    return Properties(
        name=gpu.name,
        major=gpu.major,
        minor=gpu.minor,
        total_memory=gpu.global_bytes,
        multi_processor_count=gpu.multiprocessors,
        max_threads_per_multi_processor=gpu.threads_per_multiprocessor,
        regs_per_multiprocessor=gpu.registers_per_multiprocessor,
        shared_memory_per_block=gpu.shared_per_block,
        shared_memory_per_block_optin=gpu.shared_per_block_optin,
        shared_memory_per_multiprocessor=gpu.shared_per_multiprocessor,
        L2_cache_size=gpu.l2_bytes,
        clock_rate=gpu.clock_khz,
        gcnArchName=gpu.name,
    )


def set_device(device) -> None:
    """Accept the one device. Raises RuntimeError for another."""
    if not isinstance(device, int):
        to_cpu(device)
    elif device > 0:
        to_cpu(f"cuda:{device}")


class _OneDevice:
    """The context managers torch.cuda.device and device_of."""

    def __init__(self, device=None):
        if not isinstance(device, torch.Tensor):
            set_device(device)

    def __enter__(self):
        return None

    def __exit__(self, *error):
        return False


def _make_is_available(own: Callable[[], bool]) -> Callable[[], bool]:
    """Return torch.cuda.is_available: true for a program where "cuda" means the CPU, as on the machine that it is for.

    torch's own modules, which would call the driver or generate code for a GPU, are answered truly.
    """

    @functools.wraps(own)
    def is_available() -> bool:
        caller = str(sys._getframe(1).f_globals.get("__name__", ""))
        return has_gpu() or (is_on() and caller.partition(".")[0] != "torch")

    return is_available


def _lazy_init() -> None:
    raise NoGpu('This use of the device "cuda"')


def _seed(seed: int) -> None:
    torch.default_generator.manual_seed(int(seed))


def _nothing(*args, **kwargs) -> None:
    """Do nothing."""


def _always(value: object) -> Callable:
    return lambda *args, **kwargs: value


_FUNCTIONS: dict[str, Callable] = {
    "is_initialized": _always(True),
    "device_count": _always(1),
    "current_device": _always(0),
    "get_device_properties": get_device_properties,
    "get_device_name": lambda device=None: _modeled().name,
    "get_device_capability": lambda device=None: (_modeled().major, _modeled().minor),
    "is_bf16_supported": lambda including_emulation=True: _modeled().major >= 8 or including_emulation,
    "is_tf32_supported": lambda: _modeled().major >= 8,
    "get_arch_list": lambda: [f"sm_{_modeled().major}{_modeled().minor}"],
    "can_device_access_peer": _always(False),
    "set_device": set_device,
    "mem_get_info": lambda device=None: (_modeled().global_bytes, _modeled().global_bytes),
    "memory_stats": lambda device=None: {},
    "memory_summary": _always("Without a GPU, memory is not counted."),
    "get_rng_state": lambda device="cuda": torch.default_generator.get_state(),
    "get_rng_state_all": lambda: [torch.default_generator.get_state()],
    "set_rng_state": lambda new_state, device="cuda": torch.default_generator.set_state(new_state) and None,
    "set_rng_state_all": lambda new_states: torch.default_generator.set_state(new_states[0]) and None,
    "initial_seed": lambda: torch.default_generator.initial_seed(),
    "manual_seed": _seed,
    "manual_seed_all": _seed,
    "is_current_stream_capturing": torch_streams.is_capturing,
    "graph_pool_handle": _always((0, 0)),
    "set_stream": torch_streams.set_stream,
    "current_stream": torch_streams.current_stream,
    "default_stream": torch_streams.default_stream,
    "get_stream_from_external": lambda data_ptr, device=None: torch_streams.ExternalStream(data_ptr),
    "get_sync_debug_mode": _always(0),
    "get_per_process_memory_fraction": _always(1.0),
    **dict.fromkeys(
        "init synchronize empty_cache ipc_collect seed seed_all set_sync_debug_mode _sleep".split(), _nothing
    ),
    **dict.fromkeys(
        "reset_peak_memory_stats reset_accumulated_memory_stats reset_max_memory_allocated reset_max_memory_cached "
        "set_per_process_memory_fraction reset_peak_host_memory_stats reset_accumulated_host_memory_stats".split(),
        _nothing,
    ),
    **dict.fromkeys(
        "memory_allocated max_memory_allocated memory_reserved max_memory_reserved memory_cached max_memory_cached "
        "device_memory_used".split(),
        _always(0),
    ),
    "_lazy_init": _lazy_init,
}
_CLASSES = {
    "Stream": torch_streams.Stream,
    "ExternalStream": torch_streams.ExternalStream,
    "StreamContext": torch_streams.StreamContext,
    "stream": torch_streams.StreamContext,
    "Event": torch_streams.Event,
    "CUDAGraph": torch_graphs.CUDAGraph,
    "graph": torch_graphs.graph,
    "device": _OneDevice,
    "device_of": _OneDevice,
}
_REFUSED = (
    "caching_allocator_alloc caching_allocator_delete cudart current_blas_handle current_solver_handle "
    "make_graphed_callables memory_snapshot list_gpu_processes memory_usage temperature power_draw clock_rate "
    "utilization change_current_allocator CUDAPluggableAllocator MemPool use_mem_pool GreenContext check_error"
).split()


def _refuse(name: str) -> Callable:
    def refuse(*args, **kwargs):
        raise NoGpu(f"torch.cuda.{name}")

    return refuse


def install() -> None:
    """Replace torch.cuda's functions and classes."""
    cuda = torch.cuda
    replace(cuda, "is_available", _make_is_available(cuda.is_available))
    for name, stand_in in _FUNCTIONS.items():
        if hasattr(cuda, name):
            own = getattr(cuda, name)
            replace(cuda, name, choose(stand_in, own))
            for module in (cuda.memory, cuda.random):  # where its own functions find it
                if vars(module).get(name) is own:
                    replace(module, name, choose(stand_in, own))
    for name, stand_in in _CLASSES.items():
        replace(cuda, name, stand_in)
        for module in (cuda.streams, cuda.graphs):
            if name in vars(module):
                replace(module, name, stand_in)
    for name in _REFUSED:
        if hasattr(cuda, name):
            replace(cuda, name, choose(_refuse(name), getattr(cuda, name)))
    for name in [name for name in cuda.__all__ if name.endswith(("Tensor", "Storage"))]:
        if hasattr(torch, name):
            replace(cuda, name, getattr(torch, name))
    replace(cuda, "default_generators", (torch.default_generator,))
    _install_others()


def _install_others() -> None:
    """Replace what other modules of torch offer for the GPU."""
    nvtx, profiler, accelerator = torch.cuda.nvtx, torch.cuda.profiler, torch.accelerator
    for name in ("range_push", "range_pop", "range_start", "range_end", "mark"):
        replace(nvtx, name, choose(_always(0), getattr(nvtx, name)))
    for name in ("start", "stop"):
        replace(profiler, name, choose(_nothing, getattr(profiler, name)))
    replace(profiler, "profile", choose(contextlib.nullcontext, profiler.profile))
    replace(accelerator, "synchronize", choose(_nothing, accelerator.synchronize))
    replace(accelerator, "current_stream", choose(torch_streams.current_stream, accelerator.current_stream))
    # as torch does without a GPU, autocast and the scaler of gradients for "cuda" warn and are off
    for name, stand_in in (("Stream", torch_streams.Stream), ("Event", torch_streams.DeviceEvent)):
        replace(torch, name, stand_in)
    replace(common, "amp_definitely_not_available", choose(_always(True), common.amp_definitely_not_available))
