"""What an attacker's file may try. Sent to a worker as text, so it imports nothing of this project."""

import ctypes
import errno
import fcntl
import mmap
import os
import platform
import signal
import socket
import struct
import time
from pathlib import Path

libc = ctypes.CDLL(None, use_errno=True)


def attempt(what):
    """Return repr() of what a function returns, or what it raises."""
    try:
        return repr(what())
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, type(error).__name__)
    except Exception as error:
        return type(error).__name__


def syscall(x86, arm, *arguments):
    """Make a system call, given its number on either machine. Raises OSError."""
    number = x86 if platform.machine() == "x86_64" else arm
    result = libc.syscall(ctypes.c_long(number), *arguments)
    if result == -1:
        raise OSError(ctypes.get_errno(), "syscall")
    return "done"


def call_code(code):
    """Run machine code and return its result. An errno comes back as a negative number."""
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    function = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
    return function()


def with_child(what):
    """Call a function with the number of a child process, which sleeps."""
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    try:
        return what(child)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def limit(process):
    """Lower another process's limit of open files with prlimit."""
    return syscall(302, 261, process, 7, struct.pack("QQ", 10, 10), None)


def give_mode(path, mode):
    """Give a new file a mode, in each way that there is; return the last error, or "done" if one worked."""
    result = "done"
    for way in ("chmod", "fchmod", "open"):
        Path(path).unlink(missing_ok=True)
        try:
            made = os.open(path, os.O_CREAT | os.O_WRONLY, mode if way == "open" else 0o700)
            if way != "open":
                getattr(os, way)(path if way == "chmod" else made, mode)
            os.close(made)
            if os.stat(path).st_mode & 0o6000:
                return "done"
        except OSError as error:
            result = errno.errorcode[error.errno or 0]
    if result == "done":
        raise OSError(errno.EPERM, "no way worked")
    raise OSError(getattr(errno, result), "refused")


def trace(child):
    """Attach to a process as a debugger does."""
    PTRACE_SEIZE = 0x4206
    return syscall(101, 117, PTRACE_SEIZE, child, None, None)


def read_memory(process):
    """Read another process's memory with process_vm_readv."""
    here = ctypes.create_string_buffer(8)
    there = ctypes.create_string_buffer(b"deadbeef")
    vectors = [struct.pack("@PN", ctypes.addressof(one), 8) for one in (here, there)]
    return syscall(310, 270, process, vectors[0], ctypes.c_ulong(1), vectors[1], ctypes.c_ulong(1), ctypes.c_ulong(0))


def connect(path):
    """Connect to a path-name socket."""
    with socket.socket(socket.AF_UNIX) as made:
        made.connect(path)
    return "done"


def send_datagram(path):
    """Send to a path-name socket from one end of a pair, which needs no socket()."""
    with socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0] as made:
        made.sendto(b"x", path)
    return "done"


def type_into_terminal():
    """Put a character into a terminal's input, as if the user typed it."""
    fcntl.ioctl(os.open("/dev/tty", os.O_RDWR), 0x5412, b"x")
    return "done"


def start_daemon(mark):
    """Start a process that leaves session, parent and environment behind."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execve("/bin/sleep", ["sleep", "0", mark], {})
        os._exit(0)
    return "done"


def listed(folder):
    """Return how many names a folder has, or raise."""
    return len(os.listdir(folder)) and "done"


def read(path):
    """Read a file."""
    return Path(path).read_bytes()[:0].hex() + "done"


def write(path):
    """Write to a file."""
    with open(path, "ab") as file:
        file.write(b"x")
    return "done"
