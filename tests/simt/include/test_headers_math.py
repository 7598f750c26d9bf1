"""simt/math.h's functions of real numbers, and its conversions, against mpmath and exact fractions."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import torch

from tests.simt.kernels_of_expressions import ON_GPU, Expressions

mpmath.mp.dps = 40
kernels = Expressions()

# ---- functions of real numbers ----

_SQRT_PI = mpmath.sqrt(mpmath.pi)


def _erfcx(x):
    return mpmath.exp(x * x) * mpmath.erfc(x)


def _inverse(function, target, low, high):
    """x with function(x) = target, by bisection; function increases."""
    for _ in range(150):
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) < target else (low, middle)
    return low if abs(low) > 1e-35 else mpmath.mpf(0)


def _ncdf(x):
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2


ANY = [0.0, 1e-30, -3e-5, 0.1, -0.25, 0.4999, 0.5, -0.75, 1.0, 1.5, -2.0, 2.5, 3.1415, -4.3, 7.25, 10.5]
POSITIVE = [1e-30, 3e-5, 0.1, 0.25, 0.5, 1.0, 1.7, 2.0, 10.25, 1234.5, 7e8, 3e30]
INSIDE = [0.0, 1e-20, -1e-4, 0.1, -0.3, 0.5, -0.5000001, 0.7, 0.9, -0.99, 0.9999, -0.99999]
UP_TO_2 = [1e-30, 1e-9, 0.001, 0.0999, 0.1001, 0.3, 0.5, 0.7, 1.0, 1.2, 1.5, 1.7, 1.999]
UP_TO_1 = [1e-30, 1e-9, 0.001, 0.2, 0.3, 0.5, 0.7, 0.75, 0.9, 0.999]

# name: arguments, what it is, how many units in the last place it may be off (on a GPU: CUDA's own bounds are wider)
ONE = {
    "rsqrt": (POSITIVE, lambda x: 1 / mpmath.sqrt(x), 1.5),
    "rcbrt": ([*POSITIVE, -8.5, -1e-9], lambda x: mpmath.sign(x) / mpmath.cbrt(abs(x)), 3),
    "sinpi": ([*ANY, 1e6 + 0.25, -12345.5], lambda x: mpmath.sinpi(x), 2),
    "cospi": ([*ANY, 1e6 + 0.25, -12345.5], lambda x: mpmath.cospi(x), 2),
    "exp10": (ANY, lambda x: mpmath.mpf(10) ** x, 2),
    "exp2": (ANY, lambda x: mpmath.mpf(2) ** x, 2),
    "erfinv": (INSIDE, lambda y: _inverse(mpmath.erf, y, mpmath.mpf(-6), mpmath.mpf(6)), 4),
    "erfcinv": (UP_TO_2, lambda y: -_inverse(lambda x: mpmath.erfc(-x), y, mpmath.mpf(-12), mpmath.mpf(6)), 8),
    "erfcx": ([*ANY, -3.0, 24.9, 25.1, 40.0, 1e6], _erfcx, 8),
    "normcdf": ([*ANY, -12.0, -8.5], _ncdf, 16),
    "normcdfinv": (UP_TO_1, lambda y: _inverse(_ncdf, y, mpmath.mpf(-15), mpmath.mpf(15)), 8),
    "cyl_bessel_i0": ([*ANY, 30.0], lambda x: mpmath.besseli(0, x), 8),
    "cyl_bessel_i1": ([*ANY, -30.0], lambda x: mpmath.besseli(1, x), 8),
}
THREE = [(3.0, 4.0, 12.0), (1e-20, 2e-20, -3e-20), (1e19, -2e19, 5e18), (0.1, 0.2, 0.3), (-7.0, 0.0, 0.0)]
MORE = {
    "hypot{f}(x, y)": lambda x, y, z: mpmath.sqrt(x * x + y * y),
    "rhypot{f}(x, y)": lambda x, y, z: 1 / mpmath.sqrt(x * x + y * y),
    "norm3d{f}(x, y, z)": lambda x, y, z: mpmath.sqrt(x * x + y * y + z * z),
    "rnorm3d{f}(x, y, z)": lambda x, y, z: 1 / mpmath.sqrt(x * x + y * y + z * z),
    "norm4d{f}(x, y, z, x)": lambda x, y, z: mpmath.sqrt(2 * x * x + y * y + z * z),
    "rnorm4d{f}(x, y, z, x)": lambda x, y, z: 1 / mpmath.sqrt(2 * x * x + y * y + z * z),
}

_calls = {}
for _name, (_arguments, _truth, _) in ONE.items():
    for _kind, _suffix in (("double", ""), ("float", "f"), ("float", "")):
        _calls[_name, _kind, _suffix] = kernels.add(_kind, {"x": _kind}, [f"{_name}{_suffix}(x)"])
_more = {
    k: kernels.add(k, dict.fromkeys("xyz", k), [e.format(f="f" if k == "float" else "") for e in MORE])
    for k in ("float", "double")
}


def _ulps(got: float, wanted, kind: str) -> float:
    spacing = float(np.spacing(np.float32(float(wanted)))) if kind == "float" else float(np.spacing(float(wanted)))
    return abs(float((mpmath.mpf(got) - wanted) / abs(spacing)))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kind", "suffix"), _calls)
def test_function_agrees_with_mpmath(name, kind, suffix):
    """Does the function give the real number, to a few units in the last place?"""
    arguments, truth, bound = ONE[name]
    x = torch.tensor(arguments, dtype=torch.float32 if kind == "float" else torch.float64)
    if kind == "float" and name in ("normcdf", "erfcx"):
        x = x[x.abs() < 9]
    got = kernels.run(_calls[name, kind, suffix], x)[0]
    for argument, value in zip(x.tolist(), got.tolist(), strict=True):
        wanted = truth(mpmath.mpf(argument))
        if kind == "float" and abs(wanted) > 3.4e38:
            assert math.isinf(value)
        else:
            assert _ulps(value, wanted, kind) <= bound * (4 if ON_GPU else 1), (name, argument)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["float", "double"])
def test_norms_agree_with_mpmath(kind):
    """Are hypot's relatives right even where squares overflow or vanish?"""
    columns = torch.tensor(THREE, dtype=torch.float32 if kind == "float" else torch.float64).T
    got = kernels.run(_more[kind], *columns)
    for row, (expression, truth) in enumerate(MORE.items()):
        for i, xyz in enumerate(columns.T.tolist()):
            assert _ulps(got[row, i].item(), truth(*map(mpmath.mpf, xyz)), kind) <= 4, (expression, xyz)


# ---- special values ----

INF, NAN = math.inf, math.nan
SPECIAL = {
    "rsqrtf(0.f)": INF,
    "rsqrtf(-1.f)": NAN,
    "rsqrtf(CUDART_INF_F)": 0.0,
    "rcbrtf(0.f)": INF,
    "sinpif(3.f)": 0.0,
    "cospif(0.5f)": 0.0,
    "cospif(7.f)": -1.0,
    "sinpif(CUDART_INF_F)": NAN,
    "cospif(1e30f)": 1.0,
    "erfinvf(1.f)": INF,
    "erfinvf(-1.f)": -INF,
    "erfinvf(2.f)": NAN,
    "erfcinvf(0.f)": INF,
    "erfcinvf(2.f)": -INF,
    "erfcxf(CUDART_INF_F)": 0.0,
    "erfcxf(-CUDART_INF_F)": INF,
    "normcdff(CUDART_INF_F)": 1.0,
    "normcdfinvf(0.f)": -INF,
    "normcdfinvf(1.f)": INF,
    "norm3df(CUDART_INF_F, CUDART_NAN_F, 1.f)": INF,
    "norm3df(0.f, 0.f, 0.f)": 0.0,
    "fminf(CUDART_NAN_F, 2.f)": 2.0,
    "fmaxf(2.f, CUDART_NAN_F)": 2.0,
    "fmaxf(CUDART_NAN_F, CUDART_NAN_F)": NAN,
    "min(CUDART_NAN_F, 2.f)": 2.0,
    "max(3.f, 2.f)": 3.0,
    "min(-CUDART_INF_F, 2.f)": -INF,
    "fmin(-1., CUDART_NAN)": -1.0,
    "max(1.f, 2.5)": 2.5,
    "min(2.5, 1.f)": 1.0,
    "__saturatef(CUDART_NAN_F)": 0.0,
    "__saturatef(1.5f)": 1.0,
    "__saturatef(-2.f)": 0.0,
    "__saturatef(0.25f)": 0.25,
    "__fdividef(3.f, 4.f)": 0.75,
    "__fdividef(1.f, 2e38f)": 0.0,
    "__fdividef(1.f, 0.f)": INF,
    "fdividef(3.f, 4.f)": 0.75,
    "__powf(-2.f, 2.f)": NAN,
    "__powf(0.f, 2.f)": 0.0,
    "__powf(2.f, 10.f)": 1024.0,
    "CUDART_INF_F": INF,
    "CUDART_NAN_F": NAN,
    "CUDART_PI_F": math.pi,
    "CUDART_MAX_NORMAL_F": 3.4028234663852886e38,
    "CUDART_MIN_DENORM_F": 2.0**-149,
    "CUDART_LN2_F": math.log(2),
    "isnan(CUDART_NAN_F) ? 1 : 0": 1.0,
    "isinf(x) ? 1 : 0": 0.0,
    "isfinite(x) ? 1 : 0": 1.0,
    "signbit(-0.f) ? 1 : 0": 1.0,
    "abs(-2.5f)": 2.5,
    "abs(-3)": 3.0,
    "fabsf(-2.f)": 2.0,
    "min(3, 4)": 3.0,
    "max(-1, 4u) == 4294967295u": 1.0,
    "max(1l, 2l)": 2.0,
    "min(5ll, 3ll)": 3.0,
    "umin(5u, 3u)": 3.0,
    "llmax(-5, 3)": 3.0,
    "__int_as_float(0x3fc00000)": 1.5,
    "__uint_as_float(0x7f800000u)": INF,
    "(float)__hiloint2double(0x3ff80000, 0)": 1.5,
    "(float)__longlong_as_double(0x4000000000000000ll)": 2.0,
}
_special = kernels.add("float", {"x": "float"}, list(SPECIAL))


def test_special_values():
    """Do infinities, NaN, zero, mixed types and constants come out as CUDA says?"""
    got = kernels.run(_special, torch.tensor([1.0]))[:, 0].tolist()
    for (expression, wanted), value in zip(SPECIAL.items(), got, strict=True):
        if math.isnan(wanted):
            assert math.isnan(value), expression
        else:
            assert value == pytest.approx(wanted, rel=2e-7, abs=1e-20), expression


FAST = {
    "__expf(x)": np.exp,
    "__exp10f(x)": lambda x: 10.0**x,
    "__logf(x)": np.log,
    "__log2f(x)": np.log2,
    "__log10f(x)": np.log10,
    "__sinf(x)": np.sin,
    "__cosf(x)": np.cos,
    "__tanf(x)": np.tan,
    "__powf(x, 1.5f)": lambda x: x**1.5,
    "(__sincosf(x, &s, &c), s + 2 * c)": lambda x: np.sin(x) + 2 * np.cos(x),
    "(sincosf(x, &s, &c), s + 2 * c)": lambda x: np.sin(x) + 2 * np.cos(x),
    "(sincospif(x, &s, &c), s + 2 * c)": lambda x: np.sin(np.pi * x) + 2 * np.cos(np.pi * x),
    "tanhf(x)": np.tanh,
    "erff(x)": np.vectorize(math.erf),
    "lgammaf(x)": np.vectorize(math.lgamma),
    "tgammaf(x)": np.vectorize(math.gamma),
    "log1pf(x)": np.log1p,
    "expm1f(x)": np.expm1,
    "pow(x, 2)": lambda x: x**2,
    "exp(x)": np.exp,
    "fmodf(x, 0.3f)": lambda x: np.fmod(x, np.float64(np.float32(0.3))),
}
_fast = kernels.add("float", {"x": "float", "s": "float", "c": "float"}, list(FAST))


def test_fast_and_standard_functions():
    """Are the fast intrinsics within 1e-5 of the function that they stand for?"""
    x = torch.tensor([0.11, 0.4, 0.9, 1.3, 2.1, 2.9])
    got = kernels.run(_fast, x, x, x).double().numpy()
    for row, (expression, truth) in zip(got, FAST.items(), strict=True):
        np.testing.assert_allclose(
            row,
            truth[1](x.double().numpy()) if isinstance(truth, tuple) else truth(x.double().numpy()),
            rtol=2e-5,
            atol=2e-6,
            err_msg=expression,
        )


# ---- rounding in a direction ----

_MODES = {"rn": "nearest", "rz": "zero", "ru": "up", "rd": "down"}
_OPERATIONS = {
    "add": lambda x, y, z: x + y,
    "sub": lambda x, y, z: x - y,
    "mul": lambda x, y, z: x * y,
    "div": lambda x, y, z: x / y,
    "fma": lambda x, y, z: x * y + z,
    "rcp": lambda x, y, z: 1 / x,
}
_SPELLED = {
    "float": {
        "add": "__fadd_{m}(x, y)",
        "sub": "__fsub_{m}(x, y)",
        "mul": "__fmul_{m}(x, y)",
        "div": "__fdiv_{m}(x, y)",
        "fma": "__fmaf_{m}(x, y, z)",
        "rcp": "__frcp_{m}(x)",
        "sqrt": "__fsqrt_{m}(x)",
    },
    "double": {
        "add": "__dadd_{m}(x, y)",
        "sub": "__dsub_{m}(x, y)",
        "mul": "__dmul_{m}(x, y)",
        "div": "__ddiv_{m}(x, y)",
        "fma": "__fma_{m}(x, y, z)",
        "rcp": "__drcp_{m}(x)",
        "sqrt": "__dsqrt_{m}(x)",
    },
}
_rounded = {
    (kind, mode): kernels.add(kind, dict.fromkeys("xyz", kind), [e.format(m=mode) for e in _SPELLED[kind].values()])
    for kind in ("float", "double")
    for mode in _MODES
}


def _neighbours(value: Fraction, kind) -> tuple[Fraction, Fraction]:
    """The numbers of the type next below and next above, equal where value is one of them."""
    near = kind(float(value))
    below = near if Fraction(float(near)) <= value else np.nextafter(near, kind(-np.inf))
    above = near if Fraction(float(near)) >= value else np.nextafter(near, kind(np.inf))
    return Fraction(float(below)), Fraction(float(above))


def _directed(value: Fraction, mode: str, kind) -> float:
    below, above = _neighbours(value, kind)
    if mode == "down" or (mode == "zero" and value >= 0):
        return float(below)
    if mode in ("up", "zero"):
        return float(above)
    if value - below != above - value:
        return float(below if value - below < above - value else above)
    return float(kind(float(value)))  # a tie: numpy's own rounding of the midpoint, which is exact in double


@pytest.mark.parametrize(("kind", "mode"), _rounded)
def test_rounding_direction(kind, mode):
    """Is each result the exact one, rounded once in the named direction?"""
    numbers = random.Random(5)
    numpy_kind = np.float32 if kind == "float" else np.float64

    def draw():
        return float(numpy_kind(numbers.choice([-1, 1]) * numbers.uniform(1, 2) * 2.0 ** numbers.randint(-20, 20)))

    triples = [(abs(draw()), draw(), draw()) for _ in range(40)]
    got = kernels.run(
        _rounded[kind, mode],
        *(
            torch.tensor(c, dtype=torch.float32 if kind == "float" else torch.float64)
            for c in zip(*triples, strict=True)
        ),
    )
    for row, operation in enumerate(_SPELLED[kind]):
        for i, (x, y, z) in enumerate(triples):
            if operation == "sqrt":
                root, exact = Fraction(got[row, i].item()), Fraction(x)
                up = Fraction(float(np.nextafter(numpy_kind(float(root)), numpy_kind(np.inf))))
                down = Fraction(float(np.nextafter(numpy_kind(float(root)), numpy_kind(0))))
                if mode in ("rz", "rd"):
                    assert root**2 <= exact < up**2
                elif mode == "ru":
                    assert down**2 < exact <= root**2
                else:
                    assert ((root + down) / 2) ** 2 <= exact <= ((root + up) / 2) ** 2
                continue
            exact = _OPERATIONS[operation](Fraction(x), Fraction(y), Fraction(z))
            assert got[row, i].item() == _directed(exact, _MODES[mode], numpy_kind), (operation, x, y, z)


# ---- between integers and floating point ----

_INTEGERS = {"int": (-(2**31), 2**31 - 1), "uint": (0, 2**32 - 1), "ll": (-(2**63), 2**63 - 1), "ull": (0, 2**64 - 1)}
_REALS = [
    0.0,
    -0.5,
    0.5,
    1.5,
    2.5,
    -2.5,
    7.9,
    -7.1,
    1e9 + 0.5,
    3e9,
    -3e9,
    5e18,
    1.5e19,
    1e30,
    -1e30,
    math.inf,
    -math.inf,
    math.nan,
]
_to_integer = {
    kind: kernels.add("long long", {"x": kind}, [f"__{kind}2{i}_{m}(x)" for i in _INTEGERS for m in _MODES])
    for kind in ("float", "double")
}


@pytest.mark.parametrize("kind", ["float", "double"])
def test_real_to_integer(kind):
    """Do conversions round as named, stay inside the type's range, and make of NaN what the PTX manual says?"""
    x = torch.tensor(_REALS, dtype=torch.float32 if kind == "float" else torch.float64)
    got = kernels.run(_to_integer[kind], x).tolist()
    rounding = {"rn": round, "rz": math.trunc, "ru": math.ceil, "rd": math.floor}
    row = 0
    for name, (low, high) in _INTEGERS.items():
        for mode in _MODES:
            for value, result in zip(x.tolist(), got[row], strict=True):
                if math.isnan(value):
                    narrow = kind == "float" and name in ("int", "uint")
                    wanted = 0 if narrow else {"int": low, "uint": 2**31, "ll": low, "ull": 2**63}[name]
                else:
                    wanted = (
                        (low if value < 0 else high)
                        if math.isinf(value)
                        else min(max(rounding[mode](value), low), high)
                    )
                assert (result - wanted) % 2**64 == 0, (name, mode, value)
            row += 1


_WHOLE = [0, 1, -1, 16777217, -16777219, 2**31 - 1, -(2**31), 2**53 + 1, -(2**53) - 3, 2**62 + 12345678901, 2**63 - 1]
_FROM = {"int": ("float",), "uint": ("float",), "ll": ("float", "double"), "ull": ("float", "double")}
_from_integer = {
    (i, f): kernels.add(
        f,
        {"x": "long long"},
        [f"__{i}2{f}_{m}({'(unsigned)' if i == 'uint' else '(int)' if i == 'int' else ''}x)" for m in _MODES],
    )
    for i, kinds in _FROM.items()
    for f in kinds
}


@pytest.mark.slow
@pytest.mark.parametrize(("integer", "real"), _from_integer)
def test_integer_to_real(integer, real):
    """Is an integer that the type can't hold rounded in the named direction?"""
    low, high = _INTEGERS[integer]
    wholes = [w for w in _WHOLE if low <= w <= high]
    got = kernels.run(_from_integer[integer, real], torch.tensor(wholes)).tolist()
    kind = np.float32 if real == "float" else np.float64
    for mode, row in zip(_MODES.values(), got, strict=True):
        assert row == [_directed(Fraction(w), mode, kind) for w in wholes]


_NARROWED = [0.1, -0.1, 1 + 2**-24, 1 + 2**-24 + 2**-50, -1 - 3 * 2**-24, 1e-42, 3.5e38, -3.5e38, 1e-50]
_narrow = kernels.add("float", {"x": "double"}, [f"__double2float_{m}(x)" for m in _MODES])


def test_double_to_float():
    """Is a double rounded to float in the named direction, at both ends of the range too?"""
    got = kernels.run(_narrow, torch.tensor(_NARROWED, dtype=torch.float64)).tolist()
    largest = float(np.finfo(np.float32).max)
    for mode, row in zip(_MODES.values(), got, strict=True):
        for value, result in zip(_NARROWED, row, strict=True):
            if abs(value) > largest:
                inwards = mode == "zero" or ((mode == "down") == (value > 0) and mode != "nearest")
                assert result == math.copysign(largest if inwards else math.inf, value)
            else:
                assert result == _directed(Fraction(value), mode, np.float32)
