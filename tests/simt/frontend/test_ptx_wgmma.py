"""wgmma: products with matrices in shared memory, in every layout, against float64."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

import simt
from tests.simt.kernels_of_expressions import _INCLUDES, load

SIZES = (8, 16, 32, 64, 128, 256)
KINDS = {"f16": torch.float16, "bf16": torch.bfloat16}
ROOM = 1 << 16  # bytes for each matrix
WIDTHS = {0: 16, 3: 32, 2: 64, 1: 128}  # swizzle mode -> bytes of a row of the pattern


def _product(n: int, kind: str, in_registers: bool, turn_a: int, turn_b: int, sign_a: int = 1, sign_b: int = 1) -> str:
    """A case of the switch in the kernel below."""
    sums = ", ".join(f"%{i}" for i in range(n // 2))
    first = n // 2
    a = f"{{%{first}, %{first + 1}, %{first + 2}, %{first + 3}}}" if in_registers else f"%{first}"
    after = first + (4 if in_registers else 1)
    turns = f"{turn_b}" if in_registers else f"{turn_a}, {turn_b}"
    inputs = ['"r"(a[0])', '"r"(a[1])', '"r"(a[2])', '"r"(a[3])'] if in_registers else ['"l"(of_a)']
    outputs = ", ".join(f'"+f"(d[{i}])' for i in range(n // 2))
    return f"""
    asm volatile("{{ .reg .pred p; setp.ne.b32 p, %{after + 1}, 0;"
                 "wgmma.mma_async.sync.aligned.m64n{n}k16.f32.{kind}.{kind} {{{sums}}}, {a}, %{after}, p, "
                 "{sign_a}, {sign_b}, {turns}; }}"
                 : {outputs} : {", ".join(inputs)}, "l"(of_b), "r"(adds));  // product {n}"""


# Everything that a kernel is compiled for: columns, type, whether the first matrix is in registers, turned, signs.
FORMS = [
    *((n, "f16", False, 0, 0, 1, 1) for n in SIZES),
    *((n, "f16", True, 0, 1, 1, 1) for n in (16, 64, 128)),
    (64, "f16", False, 1, 0, 1, 1), (64, "f16", False, 0, 1, 1, 1), (128, "f16", False, 1, 1, 1, 1),
    (32, "f16", True, 0, 0, -1, 1), (32, "f16", False, 0, 0, 1, -1), (64, "bf16", False, 0, 1, 1, 1),
    (64, "bf16", True, 0, 0, 1, 1),
]  # fmt: skip
_CASES = "".join(
    f"""
  if (form == {i}) {{
    float d[{f[0] // 2}];
    for (int i = 0; i < {f[0] // 2}; ++i) d[i] = sums[t * {f[0] // 2} + i];
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    {_product(*f)}
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    for (int i = 0; i < {f[0] // 2}; ++i) sums[t * {f[0] // 2} + i] = d[i];
  }}"""
    for i, f in enumerate(FORMS)
)
_DEVICE = f"""
__global__ void products(int form, const uint4* image, const unsigned* rows, unsigned long long a_fields,
                         unsigned long long b_fields, int adds, int defect, float* sums) {{
  extern __shared__ __align__(1024) uint4 room[];
  const int t = threadIdx.x;
  for (int i = t; i < (defect == 2 ? {ROOM // 16} : {2 * ROOM // 16}); i += blockDim.x) room[i] = image[i];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  if (defect != 1) __syncthreads();
  unsigned a[4];
  for (int i = 0; i < 4; ++i) a[i] = rows[4 * t + i];
  const unsigned long long start = __cvta_generic_to_shared(room);
  const unsigned long long of_a = a_fields | (start & 0x3ffff) >> 4;
  const unsigned long long of_b = b_fields ^ (start + {ROOM} & 0x3ffff) >> 4;
  {_CASES}
}}
void run(int form, torch::Tensor image, torch::Tensor rows, long a_fields, long b_fields, int adds, int defect,
         torch::Tensor sums) {{
  cudaFuncSetAttribute(products, cudaFuncAttributeMaxDynamicSharedMemorySize, {2 * ROOM});
  products<<<1, 128, {2 * ROOM}>>>(form, POINTER(uint4, image), POINTER(unsigned, rows), a_fields, b_fields, adds,
                                   defect, POINTER(float, sums));
}}
"""


@pytest.fixture(scope="module")
def kernels():
    arguments = "int form, torch::Tensor image, torch::Tensor rows, long a_fields, long b_fields, int adds"
    return load(_DEVICE, [f"void run({arguments}, int defect, torch::Tensor sums)"])


def _put(matrix: np.ndarray, turned: bool, mode: int) -> tuple[np.ndarray, int]:
    """Return the bytes of a matrix (rows, 16) in shared memory, and its descriptor's fields but the address.

    PTX ISA, "Shared memory matrix layout": the offset of each element by its row and k, one by one.
    """
    width, rows = WIDTHS[mode], matrix.shape[0]
    image = np.zeros(ROOM // 2, np.uint16)
    if turned:  # rows of k's, each with neighbours of the matrix's rows
        leading, stride = (4096, 256) if mode == 0 else (4096, 8 * width)
    else:  # the second eight k's are apart from the first without a swizzle
        leading, stride = (8192, 128) if mode == 0 else (0, 8 * width)
    for row, k in itertools.product(range(rows), range(16)):
        inner, outer = (row, k) if turned else (k, row)
        eight, which = divmod(inner, 8)
        at = outer % 8 * width + which * 2
        if mode == 0:
            of_inner, of_outer = (stride, leading) if turned else (leading, stride)
            at += eight * of_inner + outer // 8 * of_outer
        else:
            at += eight % (width // 16) * 16 + eight // (width // 16) * leading + outer // 8 * stride
        rows_of_128 = at // 128
        at ^= {16: 0, 32: rows_of_128 & 1, 64: rows_of_128 & 3, 128: rows_of_128 & 7}[width] << 4
        image[at // 2] = matrix[row, k]
    return image, leading >> 4 << 16 | stride >> 4 << 32 | mode << 62


def _bits(x: np.ndarray, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the bits of 16-bit floats, and their values."""
    kept = torch.from_numpy(x).to(KINDS[kind])
    return kept.view(torch.int16).numpy().view(np.uint16), kept.double().numpy()


def _signed(x: int) -> int:
    return x - (1 << 64) if x >> 63 else x


def _place(t: int, i: int) -> tuple[int, int]:
    """Return the row and column of a thread's i-th sum."""
    return t // 32 * 16 + t % 32 // 4 + i // 2 % 2 * 8, i // 4 * 8 + t % 4 * 2 + i % 2


def _multiply(kernels, form: int, mode_a: int, mode_b: int, adds: bool) -> float:
    """Return the largest error of a product of random matrices, relative to the sum of its terms' sizes."""
    n, kind, in_registers, turn_a, turn_b, sign_a, sign_b = FORMS[form]
    chance = np.random.default_rng(form)
    a_bits, a = _bits(chance.normal(size=(64, 16)), kind)
    b_bits, b = _bits(chance.normal(size=(n, 16)), kind)
    c = chance.normal(size=(64, n)).astype(np.float32)
    image_a, a_fields = _put(a_bits, bool(turn_a), mode_a)
    image_b, b_fields = _put(b_bits, bool(turn_b), mode_b)
    places = [[_place(t, i) for i in range(n // 2)] for t in range(128)]
    rows = [
        [a_bits[t // 32 * 16 + t % 32 // 4 + i // 2 % 2 * 8, t % 4 * 2 + i % 2 + i // 4 * 8] for i in range(8)]
        for t in range(128)
    ]
    if in_registers:
        image_a[:] = 0
    sums = torch.tensor([[c[p] for p in each] for each in places])
    image = torch.from_numpy(np.concatenate([image_a, image_b]).view(np.int16))
    registers = torch.from_numpy(np.array(rows, np.uint16).view(np.int16))
    with simt.run(device="H200"):
        kernels.run(form, image, registers, _signed(a_fields), _signed(b_fields), int(adds), 0, sums)
    got = np.zeros((64, n))
    for each, values in zip(places, sums.tolist()):
        for p, value in zip(each, values):
            got[p] = value
    expected = sign_a * sign_b * (a @ b.T) + (c if adds else 0)
    return float((np.abs(got - expected) / (np.abs(a) @ np.abs(b.T) + np.abs(c))).max())


@pytest.mark.parametrize("form", range(len(FORMS)), ids=["-".join(map(str, f)) for f in FORMS])
def test_products(kernels, form):
    """Is each form's product right in every swizzle mode of both matrices?"""
    modes = [0] if FORMS[form][2] else list(WIDTHS)
    for mode_a, mode_b in itertools.product(modes, WIDTHS):
        assert _multiply(kernels, form, mode_a, mode_b, True) < 2.0**-21, (mode_a, mode_b)
    assert _multiply(kernels, form, 0, 1, False) < 2.0**-21


def _run(kernels, a_fields: int = 0, b_fields: int = 1 << 62 | 64 << 32, form: int = 3, defect: int = 0) -> None:
    kernels.run(
        form,
        torch.zeros(ROOM, dtype=torch.int16),
        torch.zeros(512, dtype=torch.int32),
        _signed(a_fields),
        _signed(b_fields),
        0,
        defect,
        torch.zeros(128 * 128),
    )


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (1 << 62 | 64 << 32 | 2 << 49, r"wgmma.m64n64k16.f16 in line \d+ needs a base offset of 0 .*; it is 2"),
        (1 << 62 | 64 << 32 | 24, "to begin in the first row of its pattern, which repeats every 1024 bytes.*row 3"),
        (1 << 13, "matrices that begin in shared memory.*__cvta_generic_to_shared"),
    ],
)
def test_wrong_descriptors(kernels, fields, words):
    """Is a descriptor that simt cannot follow one message that says what to change?"""
    with pytest.raises(simt.KernelError, match=words), simt.run(device="H200"):
        _run(kernels, b_fields=fields)


def _line(marker: str) -> int:
    return next(i for i, text in enumerate((_INCLUDES + _DEVICE).split("\n"), 1) if marker in text)


def test_reads_are_checked(kernels):
    """Is a product without a defect left alone, and a matrix that reaches past shared memory named with its line?"""
    with simt.check(device="H200") as report:
        _run(kernels)
    assert report.findings == []
    message = "past the end of the dynamic shared memory"
    with pytest.raises(simt.KernelError, match=message) as caught, simt.check(device="H200"):
        _run(kernels, b_fields=1 << 62 | 2048 << 32)
    assert _line("form == 3") < caught.value.line < _line("form == 4")


@pytest.mark.parametrize(("defect", "check"), [(1, "race"), (2, "uninitialized")])
def test_defects_are_found(kernels, defect, check):
    """Is a product with a matrix that no barrier or no store completes a finding?"""
    with simt.check(device="H200") as report:
        _run(kernels, defect=defect)
    assert check in [f.check for f in report.findings], report.text()


_BY_REFERENCE = f"""
__device__ __forceinline__ void multiply(float (&d)[128], unsigned (&a)[4], unsigned long long of_b) {{
  const int adds = 1;
  {_product(256, "f16", True, 0, 0)}
}}
__global__ void products(float* sums) {{
  extern __shared__ __align__(1024) uint4 room[];
  for (int i = threadIdx.x; i < {ROOM // 16}; i += blockDim.x) room[i] = uint4();
  __syncthreads();
  const unsigned long long of_b = 1ull << 62 | 64ull << 32 | (__cvta_generic_to_shared(room) & 0x3ffff) >> 4;
  float d[128] = {{}};
  unsigned a[4] = {{}};
  multiply(d, a, of_b);
  multiply(d, a, of_b);
  multiply(d, a, of_b);
  for (int i = 0; i < 128; ++i) sums[i * 128 + threadIdx.x] = d[i];
}}
void run(torch::Tensor sums) {{
  cudaFuncSetAttribute(products, cudaFuncAttributeMaxDynamicSharedMemorySize, {ROOM});
  products<<<1, 128, {ROOM}>>>(POINTER(float, sums));
}}
"""


def test_sums_by_reference_are_counted_as_registers():
    """Does a forced inline function that takes the sums by reference leave them out of local memory?"""
    with simt.count(device="H200") as report:
        load(_BY_REFERENCE, ["void run(torch::Tensor sums)"]).run(torch.zeros(128 * 128))
    (launch,) = report.launches
    assert launch.counters.local_loads.requests == launch.counters.local_stores.requests == 0


def test_reads_are_counted(kernels):
    """Does a warpgroup read its first matrix once, its second one once, and multiply as much as its shape says?"""
    with simt.count(device="H200") as report:
        _run(kernels)
    (launch,) = report.launches
    loads = launch.counters.shared_loads
    assert loads.bytes == (64 + 64) * 32
    assert launch.counters.mix["tensor"] == 128 * 64 / 16
    assert launch.counters.local_loads.requests == launch.counters.local_stores.requests == 0
