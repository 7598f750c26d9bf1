"""What a figure must come with: when, on what, with which versions."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess

import torch


def machine() -> dict[str, str]:
    """Date, processor or GPU, and versions, for the head of a data file."""
    described = {
        "date": datetime.date.today().isoformat(),
        "processor": f"{len(os.sched_getaffinity(0))} cores, {_processor()}",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "compiler": _first_line(["g++", "--version"]),
    }
    if torch.cuda.is_available():
        described["gpu"] = torch.cuda.get_device_name()
        described["cuda"] = str(torch.version.cuda)
        described["nvcc"] = _first_line(["nvcc", "--version"], -1)
    return described


def _processor() -> str:
    with open("/proc/cpuinfo") as lines:
        names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _first_line(command: list[str], line: int = 0) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip().splitlines()[line]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "none"
