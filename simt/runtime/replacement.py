"""Replace torch's load_inline by simt's: on a CPU, and where it is asked for on a GPU."""

from __future__ import annotations

from simt.runtime import extension, torch_device
from simt.runtime.extension import stock_load, stock_load_inline
from simt.runtime.torch_extension import cpp_extension


def replace_load_inline() -> bool:
    """Replace torch's load_inline and load by simt's if there is no GPU. Return whether they were replaced."""
    if torch_device.has_gpu():
        return False
    cpp_extension.load_inline, cpp_extension.load = extension.load_inline, extension.load
    return True


def enable(cuda_device: bool = False, gpu: bool = False) -> bool:
    """Let a program that needs CUDA run without a GPU. Return whether there is none.

    torch.utils.cpp_extension's load_inline and load are replaced by simt's. cuda_device: the device "cuda" means this
    CPU, too, in the thread that calls this and in those that it starts (simt/runtime/torch_device.py). Every tensor
    says then that it lies there.
    If there is a GPU, nothing changes; with gpu=True load_inline is replaced there, too, by the one that compiles host
    and device code apart for this GPU, which takes seconds (simt/runtime/gpu_extension.py).
    """
    if not replace_load_inline():
        if gpu:
            replace_load_inline_on_gpu()
        return False
    if cuda_device:
        torch_device.enable()
    return True


def replace_load_inline_on_gpu() -> None:
    """Replace torch's load_inline by the one for a GPU that compiles host and device code apart."""
    from simt.runtime import gpu_extension

    cpp_extension.load_inline = gpu_extension.load_inline


def disable() -> None:
    """Restore torch's own load_inline and load, and its device "cuda"."""
    torch_device.disable()
    cpp_extension.load_inline, cpp_extension.load = stock_load_inline, stock_load
