"""simt/math.h's integer intrinsics against Python's integers."""

from __future__ import annotations

import random

import torch

from tests.simt.kernels_of_expressions import Expressions

kernels = Expressions()


M32, M64 = 2**32 - 1, 2**64 - 1


def _s(x: int, bits: int = 32) -> int:
    x &= 2**bits - 1
    return x - 2**bits if x >> (bits - 1) else x


def _parts(x: int, bits: int) -> list[int]:
    return [x >> at & (2**bits - 1) for at in range(0, 32, bits)]


def _join(parts: list[int], bits: int) -> int:
    return sum((p & (2**bits - 1)) << (i * bits) for i, p in enumerate(parts))


def _clamp(x: int, low: int, high: int) -> int:
    return max(low, min(high, x))


def _fns(mask: int, base: int, offset: int) -> int:
    if offset == 0:
        return base if mask >> base & 1 else M32
    found = [b for b in (range(base, 32) if offset > 0 else range(base, -1, -1)) if mask >> b & 1]
    return found[abs(offset) - 1] if len(found) >= abs(offset) else M32


INTEGER = {
    "__popc(x)": lambda x, y, z: bin(x).count("1"),
    "__clz(x)": lambda x, y, z: 32 - x.bit_length(),
    "__ffs(x)": lambda x, y, z: (x & -x).bit_length(),
    "__brev(x)": lambda x, y, z: int(f"{x:032b}"[::-1], 2),
    "__byte_perm(x, y, z & 0x7777)": lambda x, y, z: _join(
        [(y << 32 | x) >> 8 * (z >> 4 * i & 7) & 255 for i in range(4)], 8
    ),
    "__mul24(x, y)": lambda x, y, z: _s(x, 24) * _s(y, 24),
    "__umul24(x, y)": lambda x, y, z: (x & 0xFFFFFF) * (y & 0xFFFFFF),
    "__mulhi((int)x, (int)y)": lambda x, y, z: _s(x) * _s(y) >> 32,
    "__umulhi(x, y)": lambda x, y, z: x * y >> 32,
    "__sad((int)x, (int)y, z)": lambda x, y, z: abs(_s(x) - _s(y)) + z,
    "__usad(x, y, z)": lambda x, y, z: abs(x - y) + z,
    "__hadd((int)x, (int)y)": lambda x, y, z: (_s(x) + _s(y)) >> 1,
    "__rhadd((int)x, (int)y)": lambda x, y, z: (_s(x) + _s(y) + 1) >> 1,
    "__uhadd(x, y)": lambda x, y, z: (x + y) >> 1,
    "__urhadd(x, y)": lambda x, y, z: (x + y + 1) >> 1,
    "__funnelshift_l(x, y, z)": lambda x, y, z: (y << 32 | x) << (z & 31) >> 32,
    "__funnelshift_lc(x, y, z)": lambda x, y, z: (y << 32 | x) << min(z, 32) >> 32,
    "__funnelshift_r(x, y, z)": lambda x, y, z: (y << 32 | x) >> (z & 31),
    "__funnelshift_rc(x, y, z)": lambda x, y, z: (y << 32 | x) >> min(z, 32),
    "__dp4a((int)x, (int)y, (int)z)": lambda x, y, z: (
        sum(_s(a, 8) * _s(b, 8) for a, b in zip(_parts(x, 8), _parts(y, 8), strict=True)) + z
    ),
    "__dp4a(x, y, z)": lambda x, y, z: sum(a * b for a, b in zip(_parts(x, 8), _parts(y, 8), strict=True)) + z,
    "__dp2a_lo((int)x, (int)y, (int)z)": lambda x, y, z: (
        sum(_s(a, 16) * _s(b, 8) for a, b in zip(_parts(x, 16), _parts(y, 8)[:2], strict=True)) + z
    ),
    "__dp2a_hi(x, y, z)": lambda x, y, z: sum(a * b for a, b in zip(_parts(x, 16), _parts(y, 8)[2:], strict=True)) + z,
    "__fns(x, 0, 5)": lambda x, y, z: _fns(x, 0, 5),
    "__fns(x, 17, -3)": lambda x, y, z: _fns(x, 17, -3),
    "__fns(x, 9, 0)": lambda x, y, z: _fns(x, 9, 0),
    "__vsadu4(x, y)": lambda x, y, z: sum(abs(a - b) for a, b in zip(_parts(x, 8), _parts(y, 8), strict=True)),
    "__vsads2(x, y)": lambda x, y, z: sum(
        abs(_s(a, 16) - _s(b, 16)) for a, b in zip(_parts(x, 16), _parts(y, 16), strict=True)
    ),
    "__float_as_int(__int_as_float(x & 0x7f7fffff))": lambda x, y, z: x & 0x7F7FFFFF,
}
_BY_PART = {
    "vadd": lambda a, b, w: a + b,
    "vsub": lambda a, b, w: a - b,
    "vaddss": lambda a, b, w: _clamp(_s(a, w) + _s(b, w), -(2 ** (w - 1)), 2 ** (w - 1) - 1),
    "vaddus": lambda a, b, w: _clamp(a + b, 0, 2**w - 1),
    "vsubss": lambda a, b, w: _clamp(_s(a, w) - _s(b, w), -(2 ** (w - 1)), 2 ** (w - 1) - 1),
    "vsubus": lambda a, b, w: _clamp(a - b, 0, 2**w - 1),
    "vmaxs": lambda a, b, w: max(_s(a, w), _s(b, w)),
    "vmaxu": lambda a, b, w: max(a, b),
    "vmins": lambda a, b, w: min(_s(a, w), _s(b, w)),
    "vminu": lambda a, b, w: min(a, b),
    "vabsdiffs": lambda a, b, w: abs(_s(a, w) - _s(b, w)),
    "vabsdiffu": lambda a, b, w: abs(a - b),
    "vhaddu": lambda a, b, w: (a + b) >> 1,
    "vavgu": lambda a, b, w: (a + b + 1) >> 1,
    "vcmpeq": lambda a, b, w: -(a == b),
    "vcmpgts": lambda a, b, w: -(_s(a, w) > _s(b, w)),
    "vcmpleu": lambda a, b, w: -(a <= b),
    "vsetne": lambda a, b, w: a != b,
    "vsetltu": lambda a, b, w: a < b,
    "vsetges": lambda a, b, w: _s(a, w) >= _s(b, w),
}
for _name, _part in _BY_PART.items():
    for _n, _w in ((2, 16), (4, 8)):
        INTEGER[f"__{_name}{_n}(x, y)"] = lambda x, y, z, p=_part, w=_w: _join(
            [p(a, b, w) for a, b in zip(_parts(x, w), _parts(y, w), strict=True)], w
        )
for _n, _w in ((2, 16), (4, 8)):
    INTEGER[f"__vneg{_n}(x)"] = lambda x, y, z, w=_w: _join([-a for a in _parts(x, w)], w)
    INTEGER[f"__vabsss{_n}(x)"] = lambda x, y, z, w=_w: _join(
        [min(abs(_s(a, w)), 2 ** (w - 1) - 1) for a in _parts(x, w)], w
    )
    INTEGER[f"__vnegss{_n}(x)"] = lambda x, y, z, w=_w: _join(
        [min(-_s(a, w), 2 ** (w - 1) - 1) for a in _parts(x, w)], w
    )
_integer = kernels.add("unsigned", dict.fromkeys("xyz", "unsigned"), list(INTEGER))

LONG = {
    "__popcll(x)": lambda x, y: bin(x).count("1"),
    "__clzll(x)": lambda x, y: 64 - x.bit_length(),
    "__ffsll(x)": lambda x, y: (x & -x).bit_length(),
    "__brevll(x)": lambda x, y: int(f"{x:064b}"[::-1], 2),
    "__mul64hi((long long)x, (long long)y)": lambda x, y: _s(x, 64) * _s(y, 64) >> 64,
    "__umul64hi(x, y)": lambda x, y: x * y >> 64,
    "__double_as_longlong(__longlong_as_double(x >> 2))": lambda x, y: x >> 2,
    "max(x, y)": lambda x, y: max(x, y),
    "min((long long)x, (long long)y)": lambda x, y: min(_s(x, 64), _s(y, 64)),
}
_long = kernels.add("unsigned long long", {"x": "unsigned long long", "y": "unsigned long long"}, list(LONG))


def _words(bits: int, count: int, seed: int) -> list[int]:
    numbers = random.Random(seed)
    edges = [0, 1, 2**bits - 1, 2 ** (bits - 1), 2 ** (bits - 1) - 1, 0x7F80_80FF & (2**bits - 1)]
    return [numbers.choice(edges) if i % 5 == 0 else numbers.getrandbits(bits) for i in range(count)]


def test_integer_intrinsics():
    """Does every 32-bit intrinsic agree with the same thing said in Python?"""
    columns = [_words(32, 200, seed) for seed in (1, 2, 3)]
    columns[2] = [z % 70 if i % 2 else z for i, z in enumerate(columns[2])]  # shift counts
    got = kernels.run(_integer, *(torch.tensor([_s(v) for v in c], dtype=torch.int32) for c in columns)).tolist()
    for row, (expression, truth) in zip(got, INTEGER.items(), strict=True):
        for result, x, y, z in zip(row, *columns, strict=True):
            assert result & M32 == int(truth(x, y, z)) & M32, (expression, hex(x), hex(y), hex(z))


def test_long_integer_intrinsics():
    """Does every 64-bit intrinsic agree with the same thing said in Python?"""
    columns = [_words(64, 100, seed) for seed in (4, 5)]
    got = kernels.run(_long, *(torch.tensor([_s(v, 64) for v in c]) for c in columns)).tolist()
    for row, (expression, truth) in zip(got, LONG.items(), strict=True):
        for result, x, y in zip(row, *columns, strict=True):
            assert result & M64 == truth(x, y) & M64, (expression, hex(x), hex(y))
