"""simt/half.h and simt/bfloat16.h against exact fractions, bit for bit."""

from __future__ import annotations

import math
import random
import struct
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import pytest
import torch

from tests.simt.kernels_of_expressions import Expressions


@cache
def _value(format: Format, bits: int) -> Fraction | float:
    sign, exponent, fraction = (
        -1 if bits >> 15 else 1,
        (bits & 0x7FFF) >> (format.digits - 1),
        bits & ((1 << (format.digits - 1)) - 1),
    )
    if exponent == format.infinity >> (format.digits - 1):
        return math.nan if fraction else sign * math.inf
    if exponent:
        fraction += 1 << (format.digits - 1)
    return sign * fraction * Fraction(2) ** (max(exponent, 1) - 1 + format.least - (format.digits - 1))


@dataclass(frozen=True)
class Format:
    """A 16-bit floating point format, with what CUDA calls it."""

    type: str
    name: str
    digits: int
    least: int  # exponent of the least normal number

    @property
    def infinity(self) -> int:
        return 0x8000 - (1 << (self.digits - 1))

    def value(self, bits: int) -> Fraction | float:
        """The number that the bits stand for, by the definition of the format."""
        return _value(self, bits)

    def nearest(self, exact: Fraction | float, negative: bool = False, mode: str = "rn") -> int:
        """The bits of the exact number, rounded once; found by bisecting the ordered bit patterns."""
        if isinstance(exact, float) and math.isnan(exact):
            return 0x7FFF
        sign = 0x8000 if exact < 0 or (exact == 0 and negative) else 0
        size = abs(exact)
        if size == math.inf:
            return sign | self.infinity
        low, high = 0, self.infinity  # value(low) <= size < value(high), infinity standing for the next power of two
        limit = Fraction(2) ** (2 - self.least)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.value(middle) <= size else (low, middle)
        below, above = self.value(low), limit if high == self.infinity else self.value(high)
        if below == size:
            return sign | low
        if mode != "rn":
            away = mode != "rz" and (mode == "ru") != bool(sign)
            return sign | (high if away else low)
        if size - below == above - size:
            return sign | (low if low % 2 == 0 else high)
        return sign | (low if size - below < above - size else high)


HALF = Format("__half", "half", 11, -14)
BFLOAT16 = Format("__nv_bfloat16", "bfloat16", 8, -126)
FORMATS = [HALF, BFLOAT16]
each_format = pytest.mark.parametrize("format", FORMATS, ids=lambda f: f.name)

_MODES = ("rn", "rz", "ru", "rd")
kernels = Expressions()
_set = {}
for _f in FORMATS:
    _read = {"x": "unsigned short", "y": "unsigned short", "z": "unsigned short"}

    def _as(name, f=_f):
        return f"__ushort_as_{f.name}({name})"

    def _bits(e, f=_f):
        return f"__{f.name}_as_ushort({e})"

    _a, _b, _c = _as("x"), _as("y"), _as("z")
    _pair = f"__halves2{'half2' if _f is HALF else 'bfloat162'}"
    _set[_f, "widen"] = kernels.add("float", _read, [f"__{_f.name}2float({_a})", f"(float){_a}"])
    _set[_f, "narrow"] = kernels.add(
        "unsigned short",
        {"x": "float"},
        [_bits(f"__float2{_f.name}_{m}(x)") for m in _MODES] + [_bits(f"{_f.type}(x)")],
    )
    _set[_f, "narrow double"] = kernels.add("unsigned short", {"x": "double"}, [_bits(f"__double2{_f.name}(x)")])
    _set[_f, "arithmetic"] = kernels.add(
        "unsigned short",
        _read,
        [
            *(_bits(f"{_a} {op} {_b}") for op in "+-*/"),
            *(_bits(f"__h{op}({_a}, {_b})") for op in ("add", "sub", "mul", "div")),
            _bits(f"__hfma({_a}, {_b}, {_c})"),
            _bits(f"(__low2{_f.name}(__hfma2({_pair}({_a}, {_b}), {_pair}({_b}, {_c}), {_pair}({_c}, {_a}))))"),
            _bits(f"(__high2{_f.name}(__hadd2({_pair}({_a}, {_b}), {_pair}({_b}, {_c}))))"),
            _bits(f"(__low2{_f.name}({_pair}({_a}, {_b}) * {_pair}({_b}, {_c})))"),
        ],
    )
    _set[_f, "signs"] = kernels.add(
        "unsigned short",
        _read,
        [
            _bits(f"-{_a}"),
            _bits(f"__hneg({_a})"),
            _bits(f"__habs({_a})"),
            _bits(f"__hmax({_a}, {_b})"),
            _bits(f"__hmin({_a}, {_b})"),
            _bits(f"__hmax_nan({_a}, {_b})"),
            _bits(f"__hadd_sat({_a}, {_b})"),
            _bits(f"hsqrt({_a})"),
        ],
    )
    _set[_f, "compare"] = kernels.add(
        "int",
        _read,
        [
            f"{_a} == {_b}",
            f"{_a} != {_b}",
            f"{_a} < {_b}",
            f"{_a} >= {_b}",
            f"__hne({_a}, {_b})",
            f"__hltu({_a}, {_b})",
            f"__hgt({_a}, {_b})",
            f"__hisnan({_a})",
            f"__hisinf({_a})",
            f"(int)__low2float(__hle2({_pair}({_a}, {_b}), {_pair}({_b}, {_a})))",
            f"__hbge2({_pair}({_a}, {_b}), {_pair}({_b}, {_a}))",
            f"{_a} ? 1 : 0",
        ],
    )
    _set[_f, "integers"] = kernels.add(
        "long long",
        _read,
        [
            *(f"__{_f.name}2{i}_{m}({_a})" for i in ("short", "ushort", "int", "uint", "ll", "ull") for m in _MODES),
            f"(int){_a}",
        ],
    )
    _set[_f, "from integers"] = kernels.add(
        "unsigned short",
        {"x": "long long"},
        [
            *(_bits(f"__ll2{_f.name}_{m}(x)") for m in _MODES),
            _bits(f"__int2{_f.name}_rn((int)x)"),
            _bits(f"{_f.type}((short)x)"),
        ],
    )
    _set[_f, "functions"] = kernels.add(
        "unsigned short",
        _read,
        [
            _bits(f"h{n}({_a})")
            for n in ("exp", "log", "sin", "cos", "tanh", "rsqrt", "rcp", "exp2", "log2", "floor", "rint")
        ],
    )

EVERY = torch.arange(65536, dtype=torch.int32).to(torch.int16)


def _u16(t: torch.Tensor) -> list[int]:
    return (t.to(torch.int32) & 0xFFFF).flatten().tolist()


def _bits_of(numbers: list[int]) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.int32).to(torch.int16)


@pytest.mark.slow
@each_format
def test_every_pattern_widens(format):
    """Does each of the 65,536 patterns become the float that it stands for?"""
    for row in kernels.run(_set[format, "widen"], EVERY, EVERY, EVERY).tolist():
        for bits, got in enumerate(row):
            wanted = format.value(bits)
            assert got == wanted or (math.isnan(got) and math.isnan(wanted)), hex(bits)
            assert math.isnan(got) or math.copysign(1, got) == (-1 if bits >> 15 else 1)


@pytest.mark.slow
def test_every_half_widens_as_struct_does():
    """Does Python's own half format agree?"""
    got = kernels.run(_set[HALF, "widen"], EVERY, EVERY, EVERY)[0].tolist()
    for bits, value in enumerate(got):
        wanted = struct.unpack("<e", struct.pack("<H", bits))[0]
        assert value == wanted or math.isnan(wanted), hex(bits)


def _floats_around(format: Format) -> list[float]:
    """Every representable number of a sample, the midpoint to the next, and the floats beside both."""
    numbers = random.Random(11)
    patterns = sorted(
        {0, 1, 2, 3, format.infinity - 1, format.infinity - 2, 1 << (format.digits - 1), (1 << (format.digits - 1)) - 1}
        | {numbers.randrange(format.infinity) for _ in range(150)}
    )
    floats = []
    for bits in patterns:
        low = format.value(bits)
        high = format.value(bits + 1) if bits + 1 < format.infinity else Fraction(2) ** (1 - format.least + 1)
        for exact in (low, (low + high) / 2):
            if exact > Fraction(2) ** 127:
                continue
            middle = torch.tensor(float(exact), dtype=torch.float32)
            floats += [torch.nextafter(middle, torch.tensor(s * math.inf)).item() for s in (1, -1)] + [middle.item()]
    return (
        floats
        + [-f for f in floats]
        + [0.0, -0.0, math.inf, -math.inf, math.nan, 3.4e38, 1e-45, 65519.996, 65520.0, 65535.0, 1e5]
    )


@each_format
def test_float_narrows(format):
    """Is a float rounded once, to nearest even or in the named direction, at midpoints, subnormals and the top too?"""
    floats = torch.tensor(_floats_around(format))
    got = kernels.run(_set[format, "narrow"], floats)
    for mode, row in zip((*_MODES, "rn"), got, strict=True):
        for f, bits in zip(floats.tolist(), _u16(row), strict=True):
            exact = Fraction(f) if math.isfinite(f) else f
            assert bits == format.nearest(exact, math.copysign(1, f) < 0, mode), (mode, f)


@each_format
def test_double_narrows_in_one_step(format):
    """Is a double just above a midpoint rounded up, although as a float it would be the midpoint?"""
    middle = (format.value(0x3C00) + format.value(0x3C01)) / 2
    doubles = [float(middle * (1 + s * Fraction(2) ** -40)) for s in (-1, 0, 1)] + [1e-300, -1e300, 1e9]
    got = _u16(kernels.run(_set[format, "narrow double"], torch.tensor(doubles, dtype=torch.float64)))
    assert got == [format.nearest(Fraction(d), d < 0) for d in doubles]


def _operands(format: Format, count: int, seed: int) -> list[int]:
    numbers = random.Random(seed)
    one = format.nearest(Fraction(1))
    special = [
        0,
        0x8000,
        1,
        0x8001,
        format.infinity,
        format.infinity | 0x8000,
        0x7FFF,
        format.infinity - 1,
        one,
        one + 1,
        one | 0x8000,
    ]

    def near_one():
        around = max(0, one + numbers.randrange(-6 << (format.digits - 1), 6 << (format.digits - 1)))
        return around | numbers.choice([0, 0x8000])

    return [
        numbers.choice(special) if i % 9 == 0 else near_one() if i % 3 else numbers.getrandbits(16)
        for i in range(count)
    ]


def _float(v: Fraction | float) -> float:
    return v if isinstance(v, float) else float(v)


def _calculate(operator: str, format: Format, x: int, y: int) -> int:
    """The bits of x op y; infinities, NaN and signed zeros as IEEE 754 has them, by Python's own float."""
    a, b = format.value(x), format.value(y)
    negative_a, negative_b = bool(x >> 15), bool(y >> 15)
    special = any(isinstance(v, float) for v in (a, b))
    if operator == "-":
        b, negative_b, operator = -b, not negative_b, "+"
    if operator == "+":
        if special:
            return format.nearest(_float(a) + _float(b))
        return format.nearest(a + b, negative_a and negative_b)
    negative = negative_a != negative_b
    if operator == "*":
        if special:
            return format.nearest(math.nan if 0 in (a, b) else _float(a) * _float(b))
        return format.nearest(a * b, negative)
    if isinstance(b, float):
        result = math.nan if isinstance(a, float) or math.isnan(b) else 0.0
        return format.nearest(result if math.isnan(result) else Fraction(0), negative)
    if b == 0 or isinstance(a, float):
        result = (
            math.nan if a == 0 or (isinstance(a, float) and math.isnan(a)) else (-math.inf if negative else math.inf)
        )
        return format.nearest(result)
    return format.nearest(a / b, negative)


def _fused(format: Format, x: int, y: int, z: int) -> int:
    a, b, c = (format.value(v) for v in (x, y, z))
    if any(isinstance(v, float) for v in (a, b, c)):
        product = (
            math.nan
            if any(isinstance(v, float) and math.isnan(v) for v in (a, b))
            or (0 in (a, b) and math.inf in (abs(a), abs(b)))
            else 0.0
        )
        if not math.isnan(product) and any(isinstance(v, float) for v in (a, b)):
            product = -math.inf if (x ^ y) >> 15 else math.inf
        return format.nearest(product + (c if isinstance(c, float) else 0.0))
    return format.nearest(a * b + c, bool((x ^ y) >> 15) and bool(z >> 15))


@each_format
def test_arithmetic(format):
    """Is + - * / and the fused multiply-add the exact result, rounded once, alone and in pairs?"""
    xs, ys, zs = (_operands(format, 600, seed) for seed in (1, 2, 3))
    got = [_u16(row) for row in kernels.run(_set[format, "arithmetic"], *(_bits_of(v) for v in (xs, ys, zs)))]

    def of(op, a, b):
        return _calculate(op, format, a, b)

    for i, (x, y, z) in enumerate(zip(xs, ys, zs, strict=True)):
        four = [of(op, x, y) for op in "+-*/"]
        wanted = [*four, *four, _fused(format, x, y, z), _fused(format, x, y, z), of("+", y, z), of("*", x, y)]
        assert [row[i] for row in got] == wanted, (hex(x), hex(y), hex(z))


@each_format
def test_fused_add_just_beside_a_midpoint(format):
    """Does a last bit far below the product decide a tie, as in one rounding it must?"""
    one, tiny = format.nearest(Fraction(1)), 1
    odd = format.nearest(1 + Fraction(3, 2 ** (format.digits - 1)))
    # x·y is a midpoint between two numbers; z is the least number there is.
    half_step = format.nearest(1 + Fraction(1, 2 ** (format.digits // 2)))
    xs, ys, zs = zip(
        *[
            (x, y, z)
            for x in (half_step, odd, one + 1)
            for y in (half_step, odd, one + 1)
            for z in (tiny, tiny | 0x8000, 0)
        ],
        strict=True,
    )
    got = _u16(kernels.run(_set[format, "arithmetic"], *(_bits_of(list(v)) for v in (xs, ys, zs)))[8])
    assert got == [_fused(format, *t) for t in zip(xs, ys, zs, strict=True)]


@each_format
def test_signs_extremes_and_saturation(format):
    """Do sign changes keep all other bits, NaN lose against numbers, and sums saturate to 0…1?"""
    xs, ys = (_operands(format, 600, seed) for seed in (4, 5))
    got = [_u16(row) for row in kernels.run(_set[format, "signs"], _bits_of(xs), _bits_of(ys), _bits_of(xs))]

    def nan(v):
        return isinstance(format.value(v), float) and math.isnan(format.value(v))

    def key(v):  # orders -0 below +0
        return format.value(v), not v >> 15

    for i, (x, y) in enumerate(zip(xs, ys, strict=True)):
        minus, negated, size, most, least, most_nan, saturated, root = (row[i] for row in got)
        if not nan(x):
            assert (minus, negated, size) == (x ^ 0x8000, x ^ 0x8000, x & 0x7FFF)
        numbers = [v for v in (x, y) if not nan(v)]
        assert most == (max(numbers, key=key) if numbers else 0x7FFF)
        assert least == (min(numbers, key=key) if numbers else 0x7FFF)
        assert most_nan == (0x7FFF if len(numbers) < 2 else max(numbers, key=key))
        total = _calculate("+", format, x, y)
        assert saturated == (
            0 if nan(total) or format.value(total) <= 0 else min(total, format.nearest(Fraction(1)))
        ) or (saturated == 0x8000 and total == 0x8000)
        value = format.value(x)
        if not nan(x) and value >= 0 and value != math.inf:
            assert abs(format.value(root) ** 2 - value) <= value * Fraction(2) ** (2 - format.digits)


@each_format
def test_comparison(format):
    """Are comparisons those of the numbers, the unordered ones true with NaN and the others false?"""
    xs, ys = (_operands(format, 800, seed) for seed in (6, 7))
    ys = [x if i % 4 == 0 else y for i, (x, y) in enumerate(zip(xs, ys, strict=True))]
    got = kernels.run(_set[format, "compare"], _bits_of(xs), _bits_of(ys), _bits_of(ys)).tolist()
    for i, (x, y) in enumerate(zip(xs, ys, strict=True)):
        a, b = format.value(x), format.value(y)
        nan = a != a or b != b
        wanted = [
            a == b,
            a != b,
            a < b,
            a >= b,
            a != b and not nan,
            a < b or nan,
            a > b,
            a != a,
            0 if not isinstance(a, float) or a != a else (1 if a > 0 else -1),
            a <= b,
            a >= b and b >= a,
            a != 0,
        ]
        assert [row[i] for row in got] == [int(w) for w in wanted], (hex(x), hex(y))


@each_format
def test_to_integers(format):
    """Does every pattern become the integer that its rounding and its type's range say?"""
    got = kernels.run(_set[format, "integers"], EVERY, EVERY, EVERY).tolist()
    ranges = [
        (-(2**15), 2**15 - 1),
        (0, 2**16 - 1),
        (-(2**31), 2**31 - 1),
        (0, 2**32 - 1),
        (-(2**63), 2**63 - 1),
        (0, 2**64 - 1),
    ]
    rounding = [round, math.trunc, math.ceil, math.floor]
    for bits in range(0, 65536, 11):
        value = format.value(bits)
        if isinstance(value, float) and math.isnan(value):
            continue
        for row in range(24):
            low, high = ranges[row // 4]
            wanted = (
                (high if value > 0 else low)
                if isinstance(value, float)
                else min(max(rounding[row % 4](value), low), high)
            )
            assert (got[row][bits] - wanted) % 2**64 == 0, (hex(bits), row)
        assert got[24][bits] == got[9][bits]


@each_format
def test_from_integers(format):
    """Is an integer of 64 bits rounded once, although neither float nor double can hold it?"""
    middle = 2**62 + 2 ** (62 - format.digits)
    wholes = [
        0,
        1,
        -1,
        257,
        2049,
        -2051,
        65519,
        65520,
        70000,
        2**31 - 1,
        middle,
        middle + 1,
        middle - 1,
        -middle - 1,
        2**63 - 1,
    ]
    got = [_u16(row) for row in kernels.run(_set[format, "from integers"], torch.tensor(wholes))]
    for mode, row in zip(_MODES, got, strict=False):
        assert row == [format.nearest(Fraction(w), mode=mode) for w in wholes]
    assert got[4] == [format.nearest(Fraction((w + 2**31) % 2**32 - 2**31)) for w in wholes]
    assert got[5] == [format.nearest(Fraction((w + 2**15) % 2**16 - 2**15)) for w in wholes]


@each_format
def test_functions(format):
    """Are exp, log, sin and the others within one unit in the last place?"""
    one = format.nearest(Fraction(1))
    xs = [one + i for i in range(-300, 200, 3)]
    got = [_u16(row) for row in kernels.run(_set[format, "functions"], *[_bits_of(xs)] * 3)]
    truths = [
        math.exp,
        math.log,
        math.sin,
        math.cos,
        math.tanh,
        lambda x: x**-0.5,
        lambda x: 1 / x,
        lambda x: 2**x,
        math.log2,
        math.floor,
        round,
    ]
    for row, truth in zip(got, truths, strict=True):
        for x, bits in zip(xs, row, strict=True):
            wanted = format.nearest(Fraction(truth(float(format.value(x)))))
            assert abs(bits - wanted) <= 1, (truth, hex(x), hex(bits), hex(wanted))
