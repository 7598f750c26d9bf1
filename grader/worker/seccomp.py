"""Build the seccomp filter of a worker: the system calls that no submission needs end with an error.

The filter is a classic BPF program (https://docs.kernel.org/userspace-api/seccomp_filter.html). It kills nothing: a
refused call returns EPERM, as on a machine where the caller lacks a permission. It closes the ways around the other
parts of the sandbox: access to other processes, new namespaces and mounts, sockets, kernel keyrings, io_uring (whose
operations no filter sees), and the second system call tables of x86-64.
"""

from __future__ import annotations

import errno
import platform
import struct

AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # linux/audit.h
X32_BIT = 0x40000000  # set in the numbers of x86-64's table for 32-bit pointers

# Opcodes of linux/bpf_common.h, and actions of linux/seccomp.h.
_LOAD_WORD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
# Offsets in struct seccomp_data. An argument's low word comes first: both machines are little-endian.
_NUMBER, _ARCH, _FIRST_ARGUMENT = 0, 4, 16
# CLONE_NEWNS, _NEWCGROUP, _NEWUTS, _NEWIPC, _NEWUSER, _NEWPID and _NEWNET of linux/sched.h.
_NEW_NAMESPACES = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C  # ioctls that type into a terminal
_AF_UNIX = 1
# A pair of datagram sockets could still send to a named socket; a stream's two ends know only each other.
_SOCK_DGRAM, _SOCK_TYPE_MASK = 2, 0xF

# Name -> (number on x86-64, number on aarch64); None where the machine has no such call.
REFUSED: dict[str, tuple[int | None, int | None]] = {
    # other processes' memory and descriptors
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "pidfd_getfd": (438, 438), "process_madvise": (440, 440),
    # keyrings, tracing and kernel programs
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219), "bpf": (321, 280),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282), "fanotify_init": (300, 262), "lookup_dcookie": (212, 18),
    # io_uring: its operations are not seen by this filter
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    # namespaces and mounts
    "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41),
    "chroot": (161, 51), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265),
    # the machine
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "reboot": (169, 142), "swapon": (167, 224),
    "swapoff": (168, 225), "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
    "quotactl": (179, 60), "quotactl_fd": (443, 443), "syslog": (103, 116), "acct": (163, 89),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "sethostname": (170, 161), "setdomainname": (171, 162),
    "vhangup": (153, 58), "iopl": (172, None), "ioperm": (173, None), "modify_ldt": (154, None),
    # memory and queues that other programs of this user share by number or name
    "shmget": (29, 194), "shmctl": (31, 195), "shmat": (30, 196), "semget": (64, 190), "semctl": (66, 191),
    "semop": (65, 193), "semtimedop": (220, 192), "msgget": (68, 186), "msgctl": (71, 187), "msgrcv": (70, 188),
    "msgsnd": (69, 189), "mq_open": (240, 180), "mq_unlink": (241, 181),
}  # fmt: skip
# What changes another process: the argument that names it must be 0, which is the caller.
OF_CALLER: dict[str, tuple[int, int]] = {
    "prlimit64": (302, 261), "sched_setparam": (142, 118), "sched_setscheduler": (144, 119),
    "sched_setaffinity": (203, 122), "sched_setattr": (314, 274), "migrate_pages": (256, 238), "move_pages": (279, 239),
}  # fmt: skip
# The same with the kind of what the second argument names: PRIO_PROCESS, IOPRIO_WHO_PROCESS.
OF_CALLING_PROCESS = {"setpriority": ((141, 140), 0), "ioprio_set": ((251, 30), 1)}
# Calls that give a file a mode, and the position of the mode: no file may run as its owner. A program left in a folder
# of builds would run as whoever grades.
WITH_MODE: dict[str, tuple[tuple[int | None, int | None], int]] = {
    "chmod": ((90, None), 1), "fchmod": ((91, 52), 1), "fchmodat": ((268, 53), 2), "fchmodat2": ((452, 452), 2),
    "mknod": ((133, None), 1), "mknodat": ((259, 33), 2), "mkdir": ((83, None), 1), "mkdirat": ((258, 34), 2),
    "creat": ((85, None), 1),
}  # fmt: skip
# The same of calls that read the mode only where they make a file: the position of their flags, which precede it.
OPENING: dict[str, tuple[tuple[int | None, int | None], int]] = {"open": ((2, None), 1), "openat": ((257, 56), 2)}
_SET_ID_BITS = 0o6000  # S_ISUID and S_ISGID
_MAKES_FILE = 0o100 | 0o20000000  # O_CREAT, and the bit of O_TMPFILE that is its own
OPENAT2 = (437, 437)  # no filter sees its mode
NETWORK = {"connect": (42, 203), "bind": (49, 200)}
CLONE, CLONE3, IOCTL, SOCKET, SOCKETPAIR = (56, 220), (435, 435), (16, 29), (41, 198), (53, 199)


def is_supported() -> bool:
    """Return whether there is a filter for this machine."""
    return platform.machine() in AUDIT_ARCH


def make_filter(unix_sockets: bool = False, machine: str | None = None) -> bytes:
    """Return the filter as an array of struct sock_filter.

    unix_sockets: allow sockets of AF_UNIX, with which CUDA's driver shares memory between processes. machine: as
    platform.machine() names it; this one if None. Raises KeyError for a machine without a filter.
    """
    machine = machine or platform.machine()
    column = list(AUDIT_ARCH).index(machine)
    program = [_load(_ARCH), *_unless(_JUMP_EQUAL, AUDIT_ARCH[machine], _refuse()), _load(_NUMBER)]
    if machine == "x86_64":
        program += _when(_JUMP_AT_LEAST, X32_BIT, [_refuse()])
    program += _when(_JUMP_EQUAL, CLONE3[column], [_refuse(errno.ENOSYS)])  # the C library then uses clone
    refused = REFUSED if unix_sockets else REFUSED | NETWORK
    for numbers in refused.values():
        number = numbers[column]
        if number is not None:
            program += _when(_JUMP_EQUAL, number, [_refuse()])
    program += _when(_JUMP_EQUAL, OPENAT2[column], [_refuse(errno.ENOSYS)])  # the caller then uses openat
    for calls in _list_rules_on_arguments():
        for numbers, rule in calls:
            if (number := numbers[column]) is not None:
                program += _when(_JUMP_EQUAL, number, rule)
    program += _when(_JUMP_EQUAL, CLONE[column], _refuse_argument(0, _JUMP_ANY_BIT, [_NEW_NAMESPACES]))
    program += _when(_JUMP_EQUAL, IOCTL[column], _refuse_argument(1, _JUMP_EQUAL, [_TIOCSTI, _TIOCLINUX]))
    program += _when(_JUMP_EQUAL, SOCKETPAIR[column], _refuse_argument(1, _JUMP_EQUAL, [_SOCK_DGRAM], _SOCK_TYPE_MASK))
    program += _when(_JUMP_EQUAL, SOCKET[column], _make_socket_rule(unix_sockets))
    return b"".join([*program, _allow()])


def _list_rules_on_arguments() -> list[list[tuple[tuple[int | None, int | None], list[bytes]]]]:
    """Return the numbers of the calls that depend on arguments on every machine, and the instructions for each."""
    return [
        [(numbers, _refuse_unless([(0, 0)])) for numbers in OF_CALLER.values()],
        [(numbers, _refuse_unless([(0, kind), (1, 0)])) for numbers, kind in OF_CALLING_PROCESS.values()],
        [(numbers, _refuse_argument(at, _JUMP_ANY_BIT, [_SET_ID_BITS])) for numbers, at in WITH_MODE.values()],
        [
            (
                numbers,
                [
                    _load_argument(flags),
                    *_when(_JUMP_ANY_BIT, _MAKES_FILE, _refuse_argument(flags + 1, _JUMP_ANY_BIT, [_SET_ID_BITS])),
                    _allow(),
                ],
            )
            for numbers, flags in OPENING.values()
        ],
    ]


def _refuse_unless(wanted: list[tuple[int, int]]) -> list[bytes]:
    """Return instructions that allow a call if each of these arguments, by position, has its value."""
    rule: list[bytes] = []
    for position, value in wanted:
        rule += [_load_argument(position), *_unless(_JUMP_EQUAL, value, _refuse())]
    return [*rule, _allow()]


def _make_socket_rule(unix_sockets: bool) -> list[bytes]:
    if not unix_sockets:
        return [_refuse()]
    return [_load_argument(0), *_when(_JUMP_EQUAL, _AF_UNIX, [_allow()]), _refuse()]


def _refuse_argument(position: int, jump: int, values: list[int], mask: int | None = None) -> list[bytes]:
    """Return instructions that refuse a call by one of its arguments and allow it otherwise."""
    rule = [_load_argument(position)]
    if mask is not None:
        rule.append(_instruction(_AND, value=mask))
    for value in values:
        rule += _when(jump, value, [_refuse()])
    return [*rule, _allow()]


def _when(jump: int, value: int, then: list[bytes]) -> list[bytes]:
    """Return instructions that run `then`, which ends the program, if the comparison holds."""
    return [_instruction(jump, no=len(then), value=value), *then]


def _unless(jump: int, value: int, then: bytes) -> list[bytes]:
    return [_instruction(jump, yes=1, value=value), then]


def _load_argument(position: int) -> bytes:
    return _load(_FIRST_ARGUMENT + 8 * position)


def _load(offset: int) -> bytes:
    return _instruction(_LOAD_WORD, value=offset)


def _refuse(number: int = errno.EPERM) -> bytes:
    return _instruction(_RETURN, value=_ERRNO | number)


def _allow() -> bytes:
    return _instruction(_RETURN, value=_ALLOW)


def _instruction(code: int, yes: int = 0, no: int = 0, value: int = 0) -> bytes:
    return struct.pack("<HBBI", code, yes, no, value)
