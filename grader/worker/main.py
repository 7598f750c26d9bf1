"""The worker process: limits itself, then imports the submission and runs what the judge sends.

Started by bootstrap.py with FD MEMORY_BYTES and, on the CPU, the descriptors of simt's monitor, which is the judge. Of
this project it imports the worker's own modules and simt, nothing of the judge.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import os
import resource
import socket
import sys
import traceback
from pathlib import Path

import torch

import simt
from grader.worker import protocol
from grader.worker.channel import Channel, ChannelError
from grader.worker.device import has_simt
from grader.worker.worker import Worker
from simt.runtime import extension, library, replacement

GIB = 1 << 30
MAX_FILE, MAX_PROCESSES = 4 * GIB, 8192
MAX_TORCH_THREADS = 16  # each maps 72 MB of stack and malloc's area, whatever it computes
ERROR_STATUS = 70


def limit_resources(memory: int) -> None:
    """Limit memory (0: no limit, as CUDA needs), file size and processes; write no core file.

    memory: bytes of address space beside what Python and torch have mapped so far, which is 1 GB or, with CUDA's
    libraries, several.
    """
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_FSIZE, MAX_FILE)
    _lower(resource.RLIMIT_NPROC, MAX_PROCESSES)
    if memory:
        _lower(resource.RLIMIT_AS, memory + _measure_address_space())
        torch.set_num_threads(min(torch.get_num_threads(), MAX_TORCH_THREADS))


def _measure_address_space() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    return pages * resource.getpagesize()


def _lower(which: int, value: int) -> None:
    hard = resource.getrlimit(which)[1]
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(which, (value, value))


def main(arguments: list[str]) -> None:
    """Serve the judge at the other end of the inherited socket."""
    descriptor, memory, *monitor = (int(argument) for argument in arguments)
    limit_resources(memory)
    os.set_inheritable(descriptor, False)  # compilers must not hold the connection open
    faulthandler.enable()
    sys.dont_write_bytecode = True
    gpu = torch.cuda.is_available()
    worker = Worker(Channel(socket.socket(fileno=descriptor)), gpu)
    _report_builds(worker, gpu)
    if monitor:
        _obey(monitor)
    gc.freeze()  # bootstrap.py has disabled collection; later ones exclude the imported modules
    gc.enable()
    worker.serve()


def _obey(monitor: list[int]) -> None:
    """Have simt's runtime obey the judge and report to it, before any of the submission's code runs."""
    if not has_simt():  # no kernel can be built, and the judge expects no report
        for descriptor in monitor:
            os.close(descriptor)
        return
    library.obey_monitor(*monitor)
    extension.load_binder().report_torch()
    # Nothing in Python has to stop what watches the operators, and so nothing in Python can.
    for module in (torch.autograd, sys.modules["torch._C._autograd"]):
        for name in ("_enable_record_function", "_clear_callbacks"):
            setattr(module, name, lambda *_: None)


def _report_builds(worker: Worker, gpu: bool) -> None:
    """Have torch's and simt's load_inline report to the judge. Simt's replaces torch's: without a GPU the one for the
    CPU, with one the one that compiles host and device code apart.
    """
    from simt.runtime.torch_extension import cpp_extension

    if not gpu:
        has_simt()  # builds simt's runtime now, so that the first submission on a machine does not pay for it
        replacement.replace_load_inline()
        setattr(simt, "load_inline", worker.builds.wrap(simt.load_inline))  # noqa: B010 - simt loads its names lazily
        simt.runtime.extension.around_variant = worker.builds.report_variant
        # for stage "safe": on a second core this build is done by the time that stage begins
        simt.runtime.extension.build_ahead = ("check",)
    else:
        replacement.replace_load_inline_on_gpu()
    cpp_extension.load_inline = worker.builds.wrap(cpp_extension.load_inline)
    cpp_extension.load = worker.builds.wrap(cpp_extension.load)
    torch.compile = worker.builds.wrap_compile(torch.compile)


if __name__ == "__main__":
    status = ERROR_STATUS
    try:
        main(sys.argv[1:])
    except ChannelError:
        status = protocol.LOST  # the judge has closed the connection, or the submission has closed our socket
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)  # threads and exit handlers of the submission cannot delay this
