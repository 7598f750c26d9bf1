"""Write simt/include/simt/curand_sobol_table.h: Joe and Kuo's initial numbers, recovered from torch's Sobol engine."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from pathlib import Path

import torch

HEADER = Path(__file__).parents[3] / "simt/include/simt/curand_sobol_table.h"
DEGREES = 13  # the highest degree of a polynomial, with which all dimensions below have theirs
DIMENSIONS = 1111
TORCH_BITS = 30  # of the engine's direction numbers
_DIGITS_A_LINE = 112
_HEAD = f"""\
// What Sobol's first {DIMENSIONS:,} dimensions begin with, as Joe and Kuo chose it (new-joe-kuo-6, 2008). Written by
// tests/simt/include/sobol_table.py from torch.quasirandom.SobolEngine; do not edit.
#pragma once

namespace simt {{
inline constexpr int sobol_dimensions = {DIMENSIONS};
// Hexadecimal digits of a row of bits, the first bit of a digit being its highest. Each dimension after the first has:
// in four bits the degree s of its polynomial; the s - 1 coefficients between the highest and the lowest; and of the
// initial numbers m_2 to m_s, which are odd, the k - 1 bits of m_k above the lowest. Fields begin with the highest bit.
inline constexpr char sobol_table[] =
"""


def read_torch(dimensions: int) -> list[list[int]]:
    """Return for each dimension torch's direction numbers as odd integers m_1, m_2, …, of which m_k is below 2^k."""
    rows = torch.quasirandom.SobolEngine(dimensions).sobolstate.tolist()
    return [[v >> (TORCH_BITS - k) for k, v in enumerate(row, 1)] for row in rows]


def continue_numbers(polynomial: int, numbers: list[int], count: int) -> list[int]:
    """Continue m_1, …, m_s by the recurrence of a polynomial of degree s, whose coefficients are its bits."""
    degree = polynomial.bit_length() - 1
    m = numbers[:degree]
    while len(m) < count:
        new = m[-degree]
        for i in range(1, degree + 1):
            if polynomial >> (degree - i) & 1:
                new ^= m[-i] << i
        m.append(new)
    return m


def is_primitive(polynomial: int) -> bool:
    """Return whether the powers of x modulo the polynomial over GF(2) run through all other remainders but 0.

    They do if x to the power 2^degree - 1 is 1 and no x to that power over one of its prime factors is.
    """
    order = (1 << (polynomial.bit_length() - 1)) - 1
    return raise_x(order, polynomial) == 1 and all(raise_x(order // n, polynomial) != 1 for n in factor(order))


@functools.cache
def factor(number: int) -> list[int]:
    """Return the prime factors of a number, each once."""
    found = [n for n in range(2, number + 1) if number % n == 0]
    return [n for n in found if all(n % k for k in range(2, math.isqrt(n) + 1))]


def raise_x(power: int, polynomial: int) -> int:
    """Return x to a power modulo the polynomial over GF(2)."""
    degree, result = polynomial.bit_length() - 1, 1
    for bit in f"{power:b}":
        result = sum((result >> i & 1) << (2 * i) for i in range(degree)) << int(bit)  # squared, and times x
        for i in range(result.bit_length() - 1, degree - 1, -1):
            if result >> i & 1:
                result ^= polynomial << (i - degree)
    return result


def primitive_polynomials(degree: int) -> Iterator[int]:
    """Yield them in the order of their coefficients."""
    return (p for p in range((1 << degree) + 1, 2 << degree, 2) if is_primitive(p))


def find_dimensions() -> Iterator[tuple[int, list[int]]]:
    """Yield the polynomial and all of torch's numbers for each dimension after the first.

    Raise ValueError if a dimension does not obey the polynomial whose turn it is.
    """
    rows = iter(read_torch(DIMENSIONS)[1:])
    for degree in range(1, DEGREES + 1):
        for polynomial in primitive_polynomials(degree):
            numbers = next(rows)
            if continue_numbers(polynomial, numbers, TORCH_BITS) != numbers:
                raise ValueError(f"torch's numbers do not obey polynomial {polynomial:b}.")
            yield polynomial, numbers


def make_header() -> str:
    bits = []
    for polynomial, numbers in find_dimensions():
        degree = polynomial.bit_length() - 1
        bits.append(f"{degree:04b}")
        bits.append(f"{polynomial:b}"[1:-1])
        bits += [f"{m:0{k}b}"[:-1] for k, m in enumerate(numbers[:degree], 1)]
    row = "".join(bits)
    row += "0" * (-len(row) % 4)
    digits = f"{int(row, 2):0{len(row) // 4}x}"
    lines = [digits[i : i + _DIGITS_A_LINE] for i in range(0, len(digits), _DIGITS_A_LINE)]
    return _HEAD + "\n".join(f'    "{line}"' for line in lines) + ";\n}  // namespace simt\n"


if __name__ == "__main__":
    HEADER.write_text(make_header())
