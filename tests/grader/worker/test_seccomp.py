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
    single = (seccomp.CLONE, seccomp.CLONE3, seccomp.IOCTL, seccomp.SOCKET, seccomp.SOCKETPAIR)
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
