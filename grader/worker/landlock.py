"""Restrict this process and its children with Landlock: files by an allow-list, no TCP, no signals to others.

Landlock (https://docs.kernel.org/userspace-api/landlock.html) needs no namespaces and no privileges. It restricts
neither changes of file modes and times, which another user number does, nor the look at names and sizes.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import stat
import struct
import sys

_libc = ctypes.CDLL(None, use_errno=True)

# System call numbers, the same on every machine (include/uapi/asm-generic/unistd.h).
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_CREATE_RULESET_VERSION = 1  # flag of the first: return the version and create nothing
_RULE_PATH_BENEATH = 1
_PR_SET_NO_NEW_PRIVS = 38

# LANDLOCK_ACCESS_FS_* of linux/landlock.h, and the version that has all rights up to a bit.
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
MAKE_CHAR, MAKE_BLOCK, REFER, TRUNCATE, IOCTL_DEV = 1 << 6, 1 << 11, 1 << 13, 1 << 14, 1 << 15
_RIGHTS_OF_VERSION = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}  # version -> number of rights
_NET_VERSION, _NET_RIGHTS = 4, 3  # LANDLOCK_ACCESS_NET_BIND_TCP and _CONNECT_TCP
_SCOPE_VERSION, _SCOPES = 6, 3  # LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET and _SIGNAL
_OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV  # the others concern folders

READ = EXECUTE | READ_FILE | READ_DIR
USE_DEVICE = READ_FILE | WRITE_FILE | TRUNCATE | IOCTL_DEV


def find_version() -> int:
    """Return the version of Landlock's interface, 0 where the kernel has none or it is not enabled."""
    if sys.platform != "linux":  # the number means another system call
        return 0
    version = _libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_CREATE_RULESET_VERSION))
    return max(version, 0)


def open_ruleset(
    readable: list[str], writable: list[str], devices: list[str], listable: list[str], opened: list[int]
) -> int:
    """Return a ruleset that allows these files and folders and no others. Raises OSError.

    opened: descriptors of files that may be read; their paths are not looked at.

    A path that does not exist is left out. Everything below a folder has the folder's rights. listable: folders whose
    names can be read, but no file.
    """
    version = find_version()
    handled = (1 << _RIGHTS_OF_VERSION[min(version, max(_RIGHTS_OF_VERSION))]) - 1
    attributes = struct.pack("=Q", handled)
    if version >= _NET_VERSION:
        attributes += struct.pack("=Q", _NET_RIGHTS)
    if version >= _SCOPE_VERSION:
        attributes += struct.pack("=Q", _SCOPES)
    ruleset = _libc.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0))
    if ruleset < 0:
        raise OSError(ctypes.get_errno(), "landlock_create_ruleset")
    write = handled & ~(MAKE_CHAR | MAKE_BLOCK | IOCTL_DEV)
    for paths, rights in ((readable, READ), (devices, USE_DEVICE), (writable, write), (listable, READ_DIR)):
        for path in paths:
            with contextlib.suppress(FileNotFoundError):
                descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
                try:
                    _allow(ruleset, descriptor, rights & handled)
                finally:
                    os.close(descriptor)
    for descriptor in opened:
        _allow(ruleset, descriptor, READ & handled)
    return ruleset


def _allow(ruleset: int, descriptor: int, rights: int) -> None:
    """Allow what an open file or folder is, wherever its path leads by then. Raises OSError."""
    if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
        rights &= _OF_FILES
    # struct landlock_path_beneath_attr is packed
    rule = struct.pack("=Qi", rights, descriptor)
    if _libc.syscall(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, rule, ctypes.c_uint32(0)):
        raise OSError(ctypes.get_errno(), "landlock_add_rule")


def restrict(ruleset: int) -> None:
    """Restrict the calling thread and what it starts from now on, and close the ruleset. Raises OSError."""
    set_no_new_privileges()
    if _libc.syscall(_RESTRICT_SELF, ruleset, ctypes.c_uint32(0)):
        raise OSError(ctypes.get_errno(), "landlock_restrict_self")
    os.close(ruleset)


def set_no_new_privileges() -> None:
    """Make set-user-ID programs start with the caller's rights. Raises OSError."""
    if _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "PR_SET_NO_NEW_PRIVS")
