"""Describe the machine that a figure comes from: date, processor or GPU, and versions."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess


def describe_machine() -> dict[str, str]:
    """Return date, processor, versions and, if there is one, the GPU, for the head of a data file."""
    import torch

    described = {
        "date": datetime.date.today().isoformat(),
        "processor": f"{len(os.sched_getaffinity(0))} cores, {_read_processor()}",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "compiler": _read_output_line(["g++", "--version"], 0),
    }
    if torch.cuda.is_available():
        described["gpu"] = torch.cuda.get_device_name()
        described["cuda"] = str(torch.version.cuda)
        described["nvcc"] = _read_output_line(["nvcc", "--version"], -1)
    return described


def _read_processor() -> str:
    with open("/proc/cpuinfo") as lines:
        names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _read_output_line(command: list[str], line: int) -> str:
    """Return a line of the command's output, or "none" if it fails."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip().splitlines()[line]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "none"
