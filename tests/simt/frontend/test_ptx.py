"""Inline PTX: each instruction against numpy, with bits and layouts of the PTX ISA."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.simt.frontend.ptx_kernels import BINARY, MATRICES, MMA, MMA_INT, PTX_KERNELS, UNARY, make_host, run_kernel
from tests.simt.kernels_of_expressions import ON_GPU, load


@pytest.fixture(scope="module")
def kernels():
    host, declared = make_host()
    return load(PTX_KERNELS + host, declared)


# ---- tensor cores ----


def _places(kind: str, k: int, lane: int) -> tuple[list, list, list]:
    """(row, column) of each element that a lane holds of a, b and c: PTX ISA, "Matrix Fragments for mma.m16n8k…"."""
    g, t = lane >> 2, lane % 4
    c = [(g if i < 2 else g + 8, t * 2 + (i & 1)) for i in range(4)]
    if kind == "tf32" and k == 4:
        return [(g, t), (g + 8, t)], [(t, g)], c
    if kind == "tf32":
        return [(g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4)], [(t, g), (t + 4, g)], c
    if k == 32:
        a = [(g if i % 8 < 4 else g + 8, t * 4 + (i & 3) + (16 if i >= 8 else 0)) for i in range(16)]
        return a, [(t * 4 + (i & 3) + (16 if i >= 4 else 0), g) for i in range(8)], c
    if k == 8:
        return [(g if i < 2 else g + 8, t * 2 + (i & 1)) for i in range(4)], [(t * 2 + (i & 1), g) for i in range(2)], c
    a = [(g if i in (0, 1, 4, 5) else g + 8, t * 2 + (i & 1) + (8 if i >= 4 else 0)) for i in range(8)]
    return a, [(t * 2 + (i & 1) + (8 if i >= 2 else 0), g) for i in range(4)], c


_DTYPES = {
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "e4m3": torch.float8_e4m3fn,
    "e5m2": torch.float8_e5m2,
}


def _bits(x: np.ndarray, kind: str) -> np.ndarray:
    if kind == "tf32" or kind == "f32":
        return x.astype(np.float32).view(np.uint32)
    kept = torch.from_numpy(x).to(_DTYPES[kind])
    return kept.view(torch.uint8 if kept.itemsize == 1 else torch.int16).numpy().view(f"u{kept.itemsize}")


def _exact(x: np.ndarray, kind: str) -> np.ndarray:
    """What the tensor core makes of an operand: of tf32 the low 13 bits are not looked at."""
    if kind == "tf32":
        return (x.astype(np.float32).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)
    return torch.from_numpy(x).to(_DTYPES[kind]).double().numpy()


def _spread(x: np.ndarray, kind: str, places: list[list]) -> np.ndarray:
    """Each lane's registers: its elements' bits, two or four in a register where they have 16 or 8."""
    bits = _bits(x, kind)
    return np.array([[bits[p] for p in lane] for lane in places]).view(np.uint32)


@pytest.mark.slow
@pytest.mark.parametrize("name", MMA)
def test_mma_multiplies_as_the_layouts_say(kernels, name):
    """Is d = a·b + c in float64, to within the sum's own rounding, with every element where the PTX ISA puts it?"""
    _, _, _, _, kind, k = MMA[name]
    kept = "f32" if MMA[name][3] == 4 else "f16"
    chance = np.random.default_rng(k)
    a, b, c = chance.normal(size=(16, k)), chance.normal(size=(k, 8)), chance.normal(size=(16, 8))
    places = [_places(kind, k, lane) for lane in range(32)]
    ra, rb = (_spread(x, kind, [p[i] for p in places]) for i, x in enumerate((a, b)))
    rc = _spread(c, kept, [p[2] for p in places])
    run_kernel(kernels, f"mma_{name}", ra, rb, rc if kept == "f16" else (sums := rc.view(np.float32)))
    held = (rc.view(np.float16) if kept == "f16" else sums).astype(np.float64)
    got = np.zeros((16, 8))
    for lane in range(32):
        for place, value in zip(places[lane][2], held[lane]):
            got[place] = value
    ea, eb = _exact(a, kind), _exact(b, kind)
    ec = c.astype(np.float32).astype(np.float64) if kept == "f32" else _exact(c, "f16")
    error = np.abs(got - (ea @ eb + ec)) / (np.abs(ea) @ np.abs(eb) + np.abs(ec))
    assert error.max() <= (2.0**-22 if kept == "f32" else 2.0**-10)


@pytest.mark.slow
@pytest.mark.parametrize("name", MMA_INT)
def test_mma_of_integers_is_exact(kernels, name):
    """Is d = a·b + c in integers, also where the sum wraps, with every element where the PTX ISA puts it?"""
    _, _, _, _, kind, k = MMA_INT[name]
    dtype = np.int8 if kind == "s8" else np.uint8
    chance = np.random.default_rng(k)
    a, b = (
        chance.integers(*((-128, 128) if kind == "s8" else (0, 256)), size=n).astype(dtype) for n in ((16, k), (k, 8))
    )
    c = chance.integers(-(2**31), 2**31, size=(16, 8)).astype(np.int32)
    lanes = range(32)
    if k == 32:
        places = [_places(kind, 32, lane) for lane in lanes]
    else:  # the first half of each operand
        places = [(p[0][:8], p[1][:4], p[2]) for p in (_places(kind, 32, lane) for lane in lanes)]
    ra, rb, rc = (
        np.array([[x[at] for at in p[i]] for p in places]).view(np.uint32) for i, x in enumerate((a, b, c))
    )  # fmt: skip
    run_kernel(kernels, f"mma_{name}", ra, rb, rc)
    got = np.zeros((16, 8), np.int32)
    for lane in lanes:
        for place, value in zip(places[lane][2], rc.view(np.int32)[lane]):
            got[place] = value
    want = a.astype(np.int64) @ b.astype(np.int64) + c
    assert np.array_equal(got, want.astype(np.uint64).astype(np.uint32).view(np.int32))


# ---- conversions and special functions ----

_EDGES = [
    *(0.0, -0.0, 1.0, -1.0, 0.1, 65504.0, 65519.9, 65520.0, 7e4, 3.4e38, -3.4e38, 1e-40, 6e-8, 3e-8, np.inf, -np.inf),
    *(2.0**-14, 2.0**-15 * 1.3, 1 + 2.0**-11, 1 + 3 * 2.0**-11),
]  # fmt: skip


def _floats(n: int = 4000) -> np.ndarray:
    chance = np.random.default_rng(7)
    wide = chance.normal(size=n) * 2.0 ** chance.integers(-30, 18, size=n)
    return np.concatenate([_EDGES, wide]).astype(np.float32)


def _unary_of(kernels, name: str, x: np.ndarray) -> np.ndarray:
    out = np.zeros(x.shape, {"f": np.float32, "r": np.uint32, "h": np.uint16}[UNARY[name][1]])
    run_kernel(kernels, f"unary_{name}", x, out)
    return out


def _tf32(x: np.ndarray, rounding: str) -> np.ndarray:
    """The bits of the nearest number with 10 bits after the point, by integers alone."""
    u = x.view(np.uint32).astype(np.uint64)
    low, cut = u & 0x1FFF, u & ~np.uint64(0x1FFF)
    odd = (u >> 13) & 1 == 1
    up = {"rna": low >= 0x1000, "rn": (low > 0x1000) | ((low == 0x1000) & odd), "rz": np.zeros(u.shape, bool)}[rounding]
    return (cut + np.where(up & np.isfinite(x), 0x2000, 0)).astype(np.uint32)


@pytest.mark.slow
@pytest.mark.parametrize("rounding", ["rna", "rn", "rz"])
def test_conversion_to_tf32(kernels, rounding):
    """Are all 32 bits those of rounding to 10 bits after the point: halves away from zero, to even, or cut?"""
    x = _floats()
    assert np.array_equal(_unary_of(kernels, f"{rounding}_tf32", x), _tf32(x, rounding))


def _sixteen(x: np.ndarray, kind: str, rounding: str = "rn") -> np.ndarray:
    dtype = _DTYPES[kind]
    nearest = torch.from_numpy(x).to(dtype)
    bits = nearest.view(torch.int16).numpy().view(np.uint16).copy()
    if rounding == "rz":  # the next lower magnitude, where the nearest is beyond; bits are in the magnitudes' order
        beyond = np.abs(nearest.double().numpy()) > np.abs(x.astype(np.float64))
        bits[beyond] -= 1
    return bits


@pytest.mark.parametrize("kind", ["f16", "bf16"])
@pytest.mark.parametrize("rounding", ["rn", "rz"])
def test_conversion_to_16_bits(kernels, rounding, kind):
    """Are the bits torch's, or, cut, those of the next number towards zero?"""
    x = _floats()
    assert np.array_equal(_unary_of(kernels, f"{rounding}_{kind}", x), _sixteen(x, kind, rounding))


@pytest.mark.parametrize("name", ["rn_bf16x2", "rn_f16x2", "rz_bf16x2"])
def test_conversion_to_a_pair(kernels, name):
    """Does the first operand become the upper half?"""
    x, out = _floats(), np.zeros(len(_floats()), np.uint32)
    y = x[::-1].copy()
    run_kernel(kernels, f"binary_{name}", x, y, out)
    rounding, kind = name[:2], name[3:-2]
    assert np.array_equal(out, _sixteen(x, kind, rounding).astype(np.uint32) << 16 | _sixteen(y, kind, rounding))


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_conversion_from_16_bits(kernels, kind):
    """Does each of the 65,536 patterns become the number that torch has for it?"""
    h = np.arange(65536, dtype=np.uint16)
    want = torch.from_numpy(h.view(np.int16)).view(_DTYPES[kind]).float().numpy()
    assert np.array_equal(_unary_of(kernels, f"f32_{kind}", h), want, equal_nan=True)


# The PTX ISA's bounds: of the relative error, or with "a" of the absolute one.
_BOUNDS = {
    "ex2": (np.exp2, 2.0**-22, ""), "lg2": (np.log2, 2.0**-21, "a"), "rcp": (lambda x: 1 / x, 2.0**-23, ""),
    "rsqrt": (lambda x: x**-0.5, 2.0**-22, ""), "sqrt": (np.sqrt, 2.0**-22, ""), "sin": (np.sin, 2.0**-20.5, "a"),
    "cos": (np.cos, 2.0**-20.5, "a"), "tanh": (np.tanh, 2.0**-10.98, ""),
}  # fmt: skip


@pytest.mark.parametrize("name", [n for n in UNARY if ".approx" in n])
def test_special_functions(kernels, name):
    """Is each as near to the function as the PTX ISA promises, and tanh no nearer than its 11 bits?"""
    function, bound, absolute = _BOUNDS[name.split(".")[0]]
    x = np.linspace(-3, 3, 4001).astype(np.float32)
    x = x[x > 0.01] if name[:3] in ("lg2", "rsq", "sqr") else x[x != 0]
    want = function(x.astype(np.float64))
    error = np.abs(_unary_of(kernels, name, x).astype(np.float64) - want) / (1 if absolute else np.abs(want))
    assert error.max() <= bound
    assert error.max() > 2.0**-13 or not name.startswith("tanh")


def test_flushed_numbers(kernels):
    """Are subnormal numbers zero with .ftz and themselves without it?"""
    x = np.array([1e-40, -1e-40], np.float32)
    with np.errstate(all="ignore"):
        assert np.array_equal(_unary_of(kernels, "sqrt.approx.ftz", x[:1]), [0])
        assert np.array_equal(_unary_of(kernels, "rcp.approx.ftz", x), [np.inf, -np.inf])
        assert _unary_of(kernels, "ex2.approx.ftz", np.array([-130], np.float32)) == 0
        assert _unary_of(kernels, "ex2.approx", np.array([-130], np.float32)) == 2.0**-130


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("add_f32", np.add), ("sub_f32", np.subtract), ("mul_f32", np.multiply), ("min_f32", np.minimum),
        ("max_f32", np.maximum), ("add.s32", np.add), ("sub.u32", np.subtract), ("mul.lo.s32", np.multiply),
        ("and.b32", np.bitwise_and), ("or.b32", np.bitwise_or), ("xor.b32", np.bitwise_xor),
        ("shl.b32", lambda x, n: np.where(n < 32, x << (n & 31), 0)),
        ("shr.u32", lambda x, n: np.where(n < 32, x >> (n & 31), 0)),
        ("shr.s32", lambda x, n: (x.view(np.int32) >> np.minimum(n, 31).view(np.int32)).view(np.uint32)),
    ],
)  # fmt: skip
def test_arithmetic(kernels, name, function):
    """Is it numpy's, bit by bit?"""
    chance = np.random.default_rng(3)
    if BINARY[name][1] == "f":
        x, y = chance.normal(size=(2, 1000)).astype(np.float32)
    else:
        x, y = chance.integers(0, 2**32, (2, 1000), dtype=np.uint64).astype(np.uint32)
    y = y if "sh" not in name else (y % 40).astype(np.uint32)
    out = np.zeros_like(x)
    run_kernel(kernels, f"binary_{name}", x, y, out)
    assert np.array_equal(out, function(x, y).astype(x.dtype))


def _pairs(x: np.ndarray) -> np.ndarray:
    """The halves in registers of 32 bits, in float64, which holds sums and products of two of them exactly."""
    return x.view(np.float16).astype(np.float64)


@pytest.mark.parametrize(
    ("name", "function"), [("add.f16x2", np.add), ("sub.rn.f16x2", np.subtract), ("mul.f16x2", np.multiply)]
)
def test_arithmetic_of_pairs(kernels, name, function):
    """Is each half the exact result's nearest, subnormal and infinite ones too?"""
    chance = np.random.default_rng(4)
    x, y = (chance.integers(0, 2**32, 4000, dtype=np.uint64).astype(np.uint32) for _ in range(2))
    out = np.zeros_like(x)
    run_kernel(kernels, f"binary_{name}", x, y, out)
    with np.errstate(all="ignore"):
        want = function(_pairs(x), _pairs(y)).astype(np.float16)
    assert np.array_equal(out.view(np.float16), want, equal_nan=True)


def test_fma_of_pairs(kernels):
    """Is x times x plus x rounded once?"""
    x = np.arange(65536, dtype=np.uint16).view(np.uint32)
    with np.errstate(all="ignore"):
        want = (_pairs(x) * _pairs(x) + _pairs(x)).astype(np.float16)
    assert np.array_equal(_unary_of(kernels, "square_plus", x).view(np.float16), want, equal_nan=True)


def test_registers_of_one_argument(kernels):
    """Do mov, neg, abs, not, and conversions of integers give what their names say?"""
    x = np.array([1.5, -2.5, 2.5, 3.7, -3.7], np.float32)
    u = np.array([1, 0xFFFFFFFF, 0x12345678], np.uint32)
    assert np.array_equal(_unary_of(kernels, "neg", x), -x) and np.array_equal(_unary_of(kernels, "abs", x), np.abs(x))
    assert np.array_equal(_unary_of(kernels, "rzi", x).view(np.int32), [1, -2, 2, 3, -3])
    assert np.array_equal(_unary_of(kernels, "rni", x).view(np.int32), [2, -2, 2, 4, -4])
    assert np.array_equal(_unary_of(kernels, "not", u), ~u)
    assert np.array_equal(_unary_of(kernels, "to_f32", u), u.view(np.int32).astype(np.float32))
    assert np.array_equal(_unary_of(kernels, "mov", x.view(np.uint32)), x)
    assert np.array_equal(_unary_of(kernels, "halves", u), [0x10000, 0xFFFFFFFF, 0x56781234])


# ---- memory ----


@pytest.mark.parametrize("name", MATRICES)
def test_ldmatrix(kernels, name):
    """Does lane l get elements 2·(l % 4) and the one after it of row l / 4 of each matrix, or, with .trans, of the
    column?
    """
    tile = np.random.default_rng(1).integers(0, 65536, 256).astype(np.uint16)
    order = np.random.default_rng(2).permutation(32)  # any row from any address
    out = np.zeros((32, 4), np.uint32)
    run_kernel(kernels, name, tile, (order * 8).astype(np.int32), out)
    many, want = int(name[10]), np.zeros((32, 4), np.uint32)
    rows = tile.reshape(32, 8)[order].astype(np.uint32)
    for m in range(many):
        matrix = rows[8 * m : 8 * m + 8].T if name.endswith("trans") else rows[8 * m : 8 * m + 8]
        for lane in range(32):
            want[lane, m] = matrix[lane // 4, 2 * (lane % 4)] | matrix[lane // 4, 2 * (lane % 4) + 1] << 16
    assert np.array_equal(out, want)


@pytest.mark.parametrize(
    ("n", "wanted"),
    [
        (16, [0, 1, 2, 3]),
        (17, [0, 1, 2, 3]),
        (8, [-1, -1, 2, 3]),
        (4, [-1, -1, -1, 1]),
        (12, [0, None, None, None]),
        (2, [0, 1, 2, None]),
        (0, [None] * 4),
    ],
)
def test_cp_async_copies_what_it_is_told(kernels, n, wanted):
    """Do 4, 8 and 16 bytes arrive, and zeros behind src-size? wanted: the element of each place, -1 untouched, None
    zero.
    """
    x, out = np.arange(1, 257, dtype=np.float32), np.zeros(256, np.float32)
    run_kernel(kernels, "widths", x, out, n)
    for lane in range(64):
        want = [-1 if w == -1 else 0 if w is None else x[4 * lane + w] for w in wanted]
        assert list(out[4 * lane : 4 * lane + 4]) == want


def test_a_predicated_copy(kernels):
    """Does @p copy where the predicate holds, and only there?"""
    x, out = np.arange(256, dtype=np.float32), np.zeros(256, np.float32)
    run_kernel(kernels, "widths", x, out, 1)
    assert np.array_equal(out.reshape(64, 4)[1::2], x.reshape(64, 4)[1::2]) and (out.reshape(64, 4)[::2] == -1).all()


@pytest.mark.skipif(ON_GPU, reason="a GPU's copies arrive when they like")
def test_cp_async_arrives_when_waited_for(kernels):
    """Is what stands in shared memory old before the wait of its group, and new after it?"""
    x, out = np.arange(64, dtype=np.float32) + 1, np.zeros(384, np.float32)
    run_kernel(kernels, "late", x, out)
    old, new = np.full(64, -1, np.float32), x
    assert np.array_equal(out, np.concatenate([old, new, old, new, old, new]))


def test_double_buffering(kernels):
    """Is the sum over tiles right when each is copied while the one before is added up?"""
    x, out = np.random.default_rng(1).normal(size=640).astype(np.float32), np.zeros(64, np.float32)
    run_kernel(kernels, "buffered", x, out, 10)
    want = np.zeros(64, np.float32)
    for tile in x.reshape(10, 64):
        want += tile[::-1]
    assert np.array_equal(out, want)


def test_addresses_in_shared_memory(kernels):
    """Do 32-bit addresses of static and of dynamic shared memory lead back, by cvta too, through a swizzle and an
    offset?
    """
    out = np.zeros(160, np.int32)
    run_kernel(kernels, "addresses", out)
    t = np.arange(32)
    assert np.array_equal(out.reshape(5, 32), [t, 1000 + (t ^ 4) + 16, 1000 + t, 7 * t, np.ones(32)])


def test_loads_and_stores(kernels):
    """Do vectors, cache hints, offsets and pairs of registers move the right words?"""
    x, out = np.random.default_rng(5).normal(size=128).astype(np.float32), np.zeros(128, np.float32)
    run_kernel(kernels, "moves", x, out)
    assert np.array_equal(out.reshape(32, 4), x.reshape(32, 4)[:, [1, 0, 3, 1]])


def test_atomic_operations(kernels):
    """Does each lane's operation count, once, and atom give what was there before?"""
    f, u, before = np.zeros(1, np.float32), np.array([0, 0x80000000, 0, 5], np.uint32), np.zeros(64, np.uint32)
    run_kernel(kernels, "atomics", f, u, before)
    assert f[0] == 16 and list(u.view(np.int32)) == [64, -68, 32, 6]
    assert sorted(before[:32]) == list(range(0, 64, 2)) and sorted(before[32:]) == list(range(32))


def test_loads_and_stores_with_an_order(kernels):
    """Does a thread that waits in a loop of ld.acquire or ld.relaxed let the one that it waits for run?"""
    flag, word, out = np.zeros(1, np.uint32), np.zeros(1, np.int64), np.zeros(2, np.float32)
    run_kernel(kernels, "signals", flag, word, out)
    assert (flag[0], word[0], list(out)) == (3, 2**40 + 3, [5, 1])


# ---- registers and lanes ----


def test_special_registers_and_predicates(kernels):
    """Are %laneid, %warpid and the masks right, and do .reg, setp, selp and @!p what PTX says?"""
    out = np.zeros(384, np.int32)
    run_kernel(kernels, "registers", out)
    t = np.arange(64)
    lane = t % 32
    want = [lane, t // 32, (1 << lane) - 1, np.where(t < 10, t, t + 100), np.where(t >= 30, -1, 3), np.ones(64)]
    assert np.array_equal(out.reshape(6, 64), np.array(want, np.int64).astype(np.int32))


def test_shuffles_votes_and_sums(kernels):
    """Do the four modes of shfl.sync read the lane that the PTX ISA's pseudocode names, at segments' ends too?"""
    out = np.zeros(224, np.int32)
    run_kernel(kernels, "lanes", out)
    t = np.arange(32)
    down = np.where(t + 5 < 32, t + 5, t)
    want = [
        np.where(t % 16 >= 3, t - 3, t),
        down,
        t + 5 < 32,
        t ^ 9,
        t // 8 * 8 + 5,
        np.full(32, -(2**21)),
        np.full(32, 496),
    ]
    assert np.array_equal(out.reshape(7, 32), np.array(want))


def test_logic_and_wide_products(kernels):
    """Is lop3 its table bit by bit; are constants, hexadecimal floats, comments and raw strings read right?"""
    a, b, c = 0x12345678, 0xF0F0A5A5, 0x0FF0C33C
    x, out = np.array([a, b, c], np.uint32), np.zeros(6, np.uint32)
    run_kernel(kernels, "logic", x, out)
    product = 0xFFFFFFFF * 3 + 1
    assert list(out[:3]) == [a ^ b ^ c, (a & b) | (a & c) | (b & c), (a & b) | (~a & c)]
    assert list(out[3:]) == [int(np.float32(8.5).view(np.uint32)), product & 0xFFFFFFFF, product >> 32]
