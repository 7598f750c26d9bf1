"""Does the filter refuse what it lists, on each machine, and allow everything else?"""

import errno
import struct

import pytest

from grader.worker import seccomp

ALLOW, EPERM, ENOSYS = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
I386 = 0x40000003
READ_WRITE_OPEN_MMAP_FORK_EXEC = {"x86_64": (0, 1, 257, 9, 57, 59, 22, 202), "aarch64": (63, 64, 56, 222, 221, 98, 59)}
machines = pytest.mark.parametrize("machine", list(seccomp.AUDIT_ARCH))


def run(program: bytes, machine: str, number: int, *arguments: int, arch: int | None = None) -> int:
    """Interpret the filter for one system call, as the kernel does."""
    architecture = seccomp.AUDIT_ARCH[machine] if arch is None else arch
    data = struct.pack("<IIQ6Q", number, architecture, 0, *(*arguments, 0, 0, 0, 0, 0, 0)[:6])
    instructions = [struct.unpack_from("<HBBI", program, at) for at in range(0, len(program), 8)]
    accumulator = at = 0
    while True:
        code, yes, no, value = instructions[at]
        at += 1
        if code == 0x06:
            return value
        if code == 0x20:
            accumulator = struct.unpack_from("<I", data, value)[0]
        elif code == 0x54:
            accumulator &= value
        else:
            holds = {0x15: accumulator == value, 0x35: accumulator >= value, 0x45: bool(accumulator & value)}[code]
            at += yes if holds else no


@machines
def test_listed_calls(machine):
    """Is each listed call refused, and everything that programs need allowed?"""
    program, column = seccomp.make_filter(machine=machine), list(seccomp.AUDIT_ARCH).index(machine)
    assert len(program) // 8 <= 4096  # the kernel's limit
    for numbers in (seccomp.REFUSED | seccomp.NETWORK).values():
        number = numbers[column]
        assert number is None or run(program, machine, number) == EPERM
    for number in READ_WRITE_OPEN_MMAP_FORK_EXEC[machine]:
        assert run(program, machine, number) == ALLOW
    assert run(program, machine, seccomp.CLONE3[column]) == ENOSYS


@machines
def test_no_number_is_listed_twice(machine):
    """Is each call listed under its own number?"""
    column = list(seccomp.AUDIT_ARCH).index(machine)
    single = [seccomp.CLONE, seccomp.CLONE3, seccomp.IOCTL, seccomp.SOCKET, seccomp.SOCKETPAIR, seccomp.OPENAT2]
    pairs = (seccomp.OF_CALLING_PROCESS, seccomp.WITH_MODE, seccomp.OPENING)
    single += [*seccomp.OF_CALLER.values(), *(pair[0] for table in pairs for pair in table.values())]
    numbers = [one[column] for one in (*seccomp.REFUSED.values(), *seccomp.NETWORK.values(), *single)]
    known = [number for number in numbers if number is not None]
    assert len(known) == len(set(known))


@machines
def test_calls_that_depend_on_an_argument(machine):
    """Are threads, stream pairs and most ioctls allowed, new namespaces, datagram pairs and typing refused?"""
    program, column = seccomp.make_filter(machine=machine), list(seccomp.AUDIT_ARCH).index(machine)
    clone, ioctl, pair = seccomp.CLONE[column], seccomp.IOCTL[column], seccomp.SOCKETPAIR[column]
    assert run(program, machine, clone, 0x3D0F00) == ALLOW  # a thread
    assert run(program, machine, clone, 0x01200011) == ALLOW  # fork()
    for flag in (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
        assert run(program, machine, clone, flag | 17) == EPERM
    assert run(program, machine, ioctl, 0, 0x5401) == ALLOW
    assert run(program, machine, ioctl, 0, 0x5412) == run(program, machine, ioctl, 0, 0x541C) == EPERM
    assert run(program, machine, ioctl, 0, 1 << 32 | 0x5412) == EPERM  # the kernel reads the low word alone
    assert run(program, machine, pair, 1, 1) == run(program, machine, pair, 1, 0o2000000 | 1) == ALLOW
    assert run(program, machine, pair, 1, 2) == run(program, machine, pair, 1, 0o2000000 | 2) == EPERM


@machines
def test_calls_that_name_a_process(machine):
    """May a process change its own limits and priority, and those of no other one?"""
    program, column = seccomp.make_filter(machine=machine), list(seccomp.AUDIT_ARCH).index(machine)
    for numbers in seccomp.OF_CALLER.values():
        assert run(program, machine, numbers[column], 0) == ALLOW
        assert (
            run(program, machine, numbers[column], 4711) == run(program, machine, numbers[column], 2**32 - 1) == EPERM
        )
    priority, io = (seccomp.OF_CALLING_PROCESS[name][0][column] for name in ("setpriority", "ioprio_set"))
    assert run(program, machine, priority, 0, 0, 5) == run(program, machine, io, 1, 0, 5) == ALLOW
    for which, who in ((0, 1), (1, 0), (2, 0), (2, 1000)):  # another process, a group, all of a user
        assert run(program, machine, priority, which, who, 5) == run(program, machine, io, which + 1, who, 5) == EPERM


@machines
def test_modes_of_files(machine):
    """May a file get any mode but one with which it runs as its owner?"""
    program, column = seccomp.make_filter(machine=machine), list(seccomp.AUDIT_ARCH).index(machine)
    calls = [(numbers[column], at) for numbers, at in seccomp.WITH_MODE.values()]
    calls += [(numbers[column], flags + 1) for numbers, flags in seccomp.OPENING.values()]
    for number, at in [(number, at) for number, at in calls if number is not None]:
        creating = [0] * (at - 1) + [0o101]  # where there are flags: O_WRONLY | O_CREAT
        for mode, result in ((0o755, ALLOW), (0o1777, ALLOW), (0o4755, EPERM), (0o2755, EPERM), (0o6000, EPERM)):
            assert run(program, machine, number, *creating, mode) == result, number
    for numbers, at in seccomp.OPENING.values():
        number = numbers[column]
        if number is not None:
            assert run(program, machine, number, *[0] * at, 0, 0o4755) == ALLOW  # nothing is made: the mode is not read
            assert run(program, machine, number, *[0] * at, 0o20200002, 0o4755) == EPERM  # O_TMPFILE | O_RDWR
    assert run(program, machine, seccomp.OPENAT2[column]) == ENOSYS


@machines
def test_sockets(machine):
    """Are they refused, and with the switch for CUDA those of AF_UNIX alone allowed?"""
    column = list(seccomp.AUDIT_ARCH).index(machine)
    socket, connect = seccomp.SOCKET[column], seccomp.NETWORK["connect"][column]
    without, with_unix = seccomp.make_filter(machine=machine), seccomp.make_filter(True, machine)
    assert run(without, machine, socket, 1) == run(without, machine, connect) == EPERM
    assert run(with_unix, machine, socket, 1) == run(with_unix, machine, connect) == ALLOW
    assert run(with_unix, machine, socket, 2) == run(with_unix, machine, socket, 16) == EPERM


@machines
def test_other_tables(machine):
    """Is every call by another table of system calls refused?"""
    program = seccomp.make_filter(machine=machine)
    assert run(program, machine, 20, arch=I386) == EPERM
    if machine == "x86_64":
        assert run(program, machine, seccomp.X32_BIT | 39) == EPERM
