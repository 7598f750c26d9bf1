"""List the PTX instructions that simt/ptx.h implements, with their operands, and replacements for the others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Form:
    """A family of instructions.

    pattern: a regular expression for the whole name.
    call: the function; {group} stands for a group of the pattern.
    operands: results, "=", arguments. A letter is a register: f a float, d a double, b any of 32 bits, u an integer of
        32 bits, l any of 64 bits, w an integer of 64 bits, h any of 16 bits, p a predicate. A number before the letter,
        or a {group}, is the number of registers in braces. b|p is two results, of which the second is optional. # is a
        constant, #4|8 one of these constants. [g] is an address in global memory, [s] one in shared memory. A ? at the
        end marks an optional operand.
    since: the compute capability, times 10, of the first GPUs that have the instruction.
    """

    pattern: str
    call: str
    operands: str
    since: int = 75


# Types of memory: PTX's name, the letter of the register, the name in ptx.h.
_TYPES = (
    ("[bus]16", "h", "u16"), ("b32", "b", "u32"), ("[us]32", "u", "u32"), ("f32", "f", "f32"),
    ("b64", "l", "u64"), ("[us]64", "w", "u64"), ("f64", "d", "f64"),
)  # fmt: skip
_HINTS = r"(\.nc|\.ca|\.cg|\.cs|\.lu|\.cv|\.wb|\.wt|\.weak|\.L1::(evict|no_allocate)\w*|\.L2::\d+B|\.global)*"
_SHARED = r"(\.volatile|\.weak)?\.shared(::cta)?"
_ORDER = r"\.(?P<o>relaxed|acquire|release|volatile)(\.(cta|gpu|sys))?(\.global)?"
_SCOPE = r"(\.(cta|gpu|sys))?"


def _memory() -> Iterator[Form]:
    for kind, letter, name in _TYPES:
        for many in ("", 2, 4):
            if (many == 4 and letter not in "buf") or (many and letter == "h"):
                continue
            kinds = rf"\.v{many}\.{kind}" if many else rf"\.{kind}"
            operand, of = f"{many}{letter}", f"{name}x{many}" if many else name
            yield Form(rf"ld{_SHARED}{kinds}", f"lds_{of}", f"{operand} = [s]")
            yield Form(rf"st{_SHARED}{kinds}", f"sts_{of}", f"[s] {operand}")
            yield Form(rf"ld{_HINTS}{kinds}", f"ld_{of}", f"{operand} = [g]")
            yield Form(rf"st{_HINTS}{kinds}", f"st_{of}", f"[g] {operand}")


def _ordered() -> Iterator[Form]:
    for kind, letter, name in _TYPES:
        if name in ("u32", "u64", "f32"):
            yield Form(rf"ld{_ORDER.replace('|release', '')}\.{kind}", f"ld_{{o}}_{name}", f"{letter} = [g]")
            yield Form(rf"st{_ORDER.replace('|acquire', '')}\.{kind}", f"st_{{o}}_{name}", f"[g] {letter}")


def _atomic() -> Iterator[Form]:
    extremes, logic = dict.fromkeys(("min", "max"), "u32 s32"), dict.fromkeys(("and", "or", "xor"), "b32")
    of = {"add": "u32 s32 u64 f32 f64", **extremes, **logic, "exch": "b32 b64", "cas": "b32 b64"}
    for operation, types in of.items():
        for kind in types.split():
            letter = {"f32": "f", "f64": "d", "u64": "w", "b64": "l", "b32": "b"}.get(kind, "u")
            name = kind if operation in ("min", "max") or kind[0] == "f" else f"u{kind[1:]}"
            arguments = f"{letter} {letter}" if operation == "cas" else letter
            for space, address, suffix in ((r"(\.global)?", "[g]", ""), (r"\.shared(::cta)?", "[s]", "s")):
                rest = rf"(\.relaxed)?{_SCOPE}{space}\.{operation}(\.noftz)?\.{kind}"
                yield Form(f"atom{rest}", f"atom{suffix}_{operation}_{name}", f"{letter} = {address} {arguments}")
                yield Form(f"red{rest}", f"atom{suffix}_{operation}_{name}", f"{address} {arguments}")


def _integer() -> Iterator[Form]:
    """Yield products, bit fields, and sums with a carry, which .cc hands on to the next instruction of the thread."""
    for bits, r in ((32, "u"), (64, "w")):
        two, three = f"{r} = {r} {r}", f"{r} = {r} {r} {r}"
        yield Form(rf"mul\.hi\.(?P<t>[us]{bits})", "mul_hi_{t}", two)
        yield Form(rf"mad\.hi\.u{bits}", f"mad_hi_u{bits}", three)
        yield Form(rf"(?P<f>add|sub)\.cc\.[us]{bits}", f"{{f}}_cc_u{bits}", two)
        yield Form(rf"(?P<f>add|sub)c\.[us]{bits}", f"{{f}}c_u{bits}", two)
        yield Form(rf"(?P<f>add|sub)c\.cc\.[us]{bits}", f"{{f}}c_cc_u{bits}", two)
        for name, cc in (("mad", ".cc"), ("madc", ""), ("madc", ".cc")):
            for part, signs in (("lo", "[us]"), ("hi", "u")):
                call = f"{name}_{part}{cc.replace('.', '_')}_u{bits}"
                yield Form(rf"{name}\.{part}{re.escape(cc)}\.{signs}{bits}", call, three)
    yield from (
        Form(r"mul\.lo\.[us]64", "mul_u64", "w = w w"),
        Form(r"mad\.lo\.[us]64", "mad_u64", "w = w w w"),
        Form(r"mad\.wide\.(?P<t>[us]32)", "mad_wide_{t}", "w = u u w"),
        Form(r"(?P<f>min|max)\.(?P<t>[us]32)", "{f}_{t}", "u = u u"),
        Form(r"(?P<f>neg|abs)\.s32", "{f}_s32", "u = u"),
        Form(r"(?P<f>popc|clz|brev)\.b32", "{f}_b32", "u = b"),
        Form(r"bfe\.(?P<t>[us]32)", "bfe_{t}", "u = u u u"),
        Form(r"bfi\.b32", "bfi_b32", "b = b b u u"),
        Form(r"prmt\.b32", "prmt_b32", "b = b b b"),
    )


_MMA = r"mma\.sync\.aligned\.m16n8k"
_LDMATRIX = r"ldmatrix\.sync\.aligned\.m8n8\.x"
_SETP = r"setp\.(?P<op>eq|ne|lt|le|gt|ge)\."

FORMS = (
    # Tensor cores
    Form(_MMA + r"4\.row\.col\.f32\.tf32\.tf32\.f32", "mma_m16n8k4_tf32_f32", "4f = 2b 1b 4f", 80),
    Form(_MMA + r"8\.row\.col\.f32\.tf32\.tf32\.f32", "mma_m16n8k8_tf32_f32", "4f = 4b 2b 4f", 80),
    Form(_MMA + r"8\.row\.col\.f32\.f16\.f16\.f32", "mma_m16n8k8_f16_f32", "4f = 2b 1b 4f"),
    Form(_MMA + r"8\.row\.col\.f32\.bf16\.bf16\.f32", "mma_m16n8k8_bf16_f32", "4f = 2b 1b 4f", 80),
    Form(_MMA + r"16\.row\.col\.f32\.(?P<t>b?f16)\.(?P=t)\.f32", "mma_m16n8k16_{t}_f32", "4f = 4b 2b 4f", 80),
    Form(_MMA + r"32\.row\.col\.f32\.(?P<t>e4m3|e5m2)\.(?P=t)\.f32", "mma_m16n8k32_{t}_f32", "4f = 4b 2b 4f", 89),
    Form(_MMA + r"32\.row\.col\.s32\.(?P<t>[su]8)\.(?P=t)\.s32", "mma_m16n8k32_{t}", "4b = 4b 2b 4b", 80),
    Form(_MMA + r"16\.row\.col\.s32\.(?P<t>[su]8)\.(?P=t)\.s32", "mma_m16n8k16_{t}", "4b = 2b 1b 4b", 80),
    Form(_MMA + r"8\.row\.col\.f16\.f16\.f16\.f16", "mma_m16n8k8_f16_f16", "2b = 2b 1b 2b"),
    Form(_MMA + r"16\.row\.col\.f16\.f16\.f16\.f16", "mma_m16n8k16_f16_f16", "2b = 4b 2b 2b", 80),
    Form(_LDMATRIX + r"1\.shared(::cta)?\.b16", "ldmatrix_x1", "1b = [s]"),
    Form(_LDMATRIX + r"1\.trans\.shared(::cta)?\.b16", "ldmatrix_x1_trans", "1b = [s]"),
    Form(_LDMATRIX + r"(?P<n>2|4)\.shared(::cta)?\.b16", "ldmatrix_x{n}", "{n}b = [s]"),
    Form(_LDMATRIX + r"(?P<n>2|4)\.trans\.shared(::cta)?\.b16", "ldmatrix_x{n}_trans", "{n}b = [s]"),
    Form(r"wgmma\.fence\.sync\.aligned", "wgmma_fence", "", 90),
    Form(r"wgmma\.commit_group\.sync\.aligned", "wgmma_commit_group", "", 90),
    Form(r"wgmma\.wait_group\.sync\.aligned", "wgmma_wait_group", "#", 90),
    # Asynchronous copies
    Form(r"cp\.async\.ca\.shared(::cta)?\.global(\.L2::\d+B)?", "cp_async", "[s] [g] #4|8|16 u?", 80),
    Form(r"cp\.async\.cg\.shared(::cta)?\.global(\.L2::\d+B)?", "cp_async", "[s] [g] #16 u?", 80),
    Form(r"cp\.async\.commit_group", "cp_async_commit_group", "", 80),
    Form(r"cp\.async\.wait_group", "cp_async_wait_group", "#", 80),
    Form(r"cp\.async\.wait_all", "cp_async_wait_all", "", 80),
    # Memory
    *_ordered(),
    Form(rf"atom\.(acquire|release|acq_rel){_SCOPE}(\.global)?\.add\.[us]32", "atom_ordered_add_u32", "u = [g] u"),
    Form(rf"red\.release{_SCOPE}(\.global)?\.add\.[us]32", "atom_ordered_add_u32", "[g] u"),
    Form(rf"red(\.relaxed)?{_SCOPE}\.global\.add\.v(?P<n>[24])\.f32", "red_add_v{n}_f32", "[g] {n}f", 90),
    *_memory(),
    *_atomic(),
    Form(r"prefetch(\.global)?\.L[12](::evict_\w+)?|prefetchu\.L1", "prefetch", "[g]"),
    Form(r"cvta\.to\.shared\.u64", "cvta_to_shared", "w = w"),
    Form(r"cvta\.shared\.u64", "cvta_shared", "w = w"),
    Form(r"cvta(\.to)?\.global\.u64", "cvta_global", "w = w"),
    # Conversions
    Form(r"cvt\.rna\.tf32\.f32", "cvt_rna_tf32", "u = f", 80),
    Form(r"cvt\.(?P<r>rn|rz)\.tf32\.f32", "cvt_{r}_tf32", "u = f", 90),
    Form(r"cvt\.(?P<r>rn|rz)\.(?P<t>b?f16)x2\.f32", "cvt_{r}_{t}x2", "u = f f", 80),
    Form(r"cvt\.(?P<r>rn|rz)\.f16\.f32", "cvt_{r}_f16", "h = f"),
    Form(r"cvt\.(?P<r>rn|rz)\.bf16\.f32", "cvt_{r}_bf16", "h = f", 80),
    Form(r"cvt\.rn\.satfinite\.(?P<t>e4m3|e5m2)x2\.f32", "cvt_rn_{t}x2", "h = f f", 89),
    Form(r"cvt\.rn\.satfinite\.(?P<t>e4m3|e5m2)x2\.f16x2", "cvt_rn_{t}x2_f16x2", "h = u", 89),
    Form(r"cvt\.rn\.f16x2\.(?P<t>e4m3|e5m2)x2", "cvt_rn_f16x2_{t}x2", "u = h", 89),
    Form(r"cvt\.f32\.f16", "cvt_f32_f16", "f = h"),
    Form(r"cvt\.f32\.bf16", "cvt_f32_bf16", "f = h", 90),
    Form(r"cvt\.u32\.u64", "cvt_u32_u64", "u = w"),
    Form(r"cvt\.u64\.u32", "cvt_u64_u32", "w = u"),
    Form(r"cvt\.s64\.s32", "cvt_s64_s32", "w = u"),
    Form(r"cvt\.rn\.f32\.(?P<t>[us]32)", "cvt_rn_f32_{t}", "f = u"),
    Form(r"cvt\.(?P<r>rni|rzi)\.s32\.f32", "cvt_{r}_s32_f32", "u = f"),
    # Special functions
    Form(r"(?P<f>ex2|lg2|rcp|rsqrt|sqrt|sin|cos)\.approx\.f32", "{f}_approx", "f = f"),
    Form(r"(?P<f>ex2|lg2|rcp|rsqrt|sqrt|sin|cos)\.approx\.ftz\.f32", "{f}_approx_ftz", "f = f"),
    Form(r"tanh\.approx\.f32", "tanh_approx", "f = f"),
    # Arithmetic
    Form(r"(?P<f>add|sub|mul)(\.rn)?\.f32", "{f}_f32", "f = f f"),
    Form(r"(?P<f>add|sub|mul)(\.rn)?\.ftz\.f32", "{f}_f32_ftz", "f = f f"),
    Form(r"(fma\.rn|mad\.rn)\.f32", "fma_f32", "f = f f f"),
    Form(r"(fma\.rn|mad\.rn)\.ftz\.f32", "fma_f32_ftz", "f = f f f"),
    Form(r"(?P<f>min|max)\.f32", "{f}_f32", "f = f f"),
    Form(r"(?P<f>min|max)\.NaN\.f32", "{f}_nan_f32", "f = f f"),
    Form(r"(?P<f>neg|abs)\.f32", "{f}_f32", "f = f"),
    Form(r"(?P<f>add|sub|mul)(\.rn)?\.f16x2", "{f}_f16x2", "b = b b"),
    Form(r"fma\.rn\.f16x2", "fma_f16x2", "b = b b b"),
    Form(r"(?P<f>add|sub)\.[us]32", "{f}_u32", "u = u u"),
    Form(r"mul\.lo\.[us]32", "mul_u32", "u = u u"),
    Form(r"mad\.lo\.[us]32", "mad_u32", "u = u u u"),
    Form(r"mul\.wide\.(?P<t>[us]32)", "wide_{t}", "w = u u"),
    Form(r"(?P<f>add|sub)\.[us]64", "{f}_u64", "w = w w"),
    *_integer(),
    Form(r"(?P<f>and|or|xor)\.b32", "{f}_b32", "b = b b"),
    Form(r"not\.b32", "not_b32", "b = b"),
    Form(r"shl\.b32", "shl_b32", "b = b u"),
    Form(r"shr\.[bu]32", "shr_u32", "b = b u"),
    Form(r"shr\.s32", "shr_s32", "u = u u"),
    Form(r"lop3\.b32", "lop3", "b = b b b #"),
    Form(_SETP + r"(?P<t>[us]32)", "setp_{op}_{t}", "p = u u"),
    Form(_SETP + r"b32", "setp_{op}_u32", "p = b b"),
    Form(_SETP + r"f32", "setp_{op}_f32", "p = f f"),
    Form(r"selp\.b32", "selp_b32", "b = b b p"),
    Form(r"selp\.[us]32", "selp_b32", "u = u u p"),
    Form(r"selp\.f32", "selp_f32", "f = f f p"),
    # Threads together
    Form(r"(bar|barrier)(\.cta)?\.sync(\.aligned)?", "bar_sync", "#0"),
    Form(r"bar\.warp\.sync", "bar_warp_sync", "u"),
    Form(r"fence\.proxy\.async(\.global|\.shared::c(ta|luster))?", "fence_proxy", "", 90),
    Form(r"membar\.cta|fence(\.acq_rel|\.sc)?\.cta", "fence_cta", ""),
    Form(r"membar\.gl|fence(\.acq_rel|\.sc)?\.gpu", "fence_gpu", ""),
    Form(r"membar\.sys|fence(\.acq_rel|\.sc)?\.sys", "fence_sys", ""),
    Form(r"shfl\.sync\.(?P<mode>up|down|bfly|idx)\.b32", "shfl_{mode}", "b|p = b u u u"),
    Form(r"vote\.sync\.ballot\.b32", "vote_ballot", "u = p u"),
    Form(r"vote\.sync\.(?P<f>any|all)\.pred", "vote_{f}", "p = p u"),
    Form(r"redux\.sync\.(?P<f>min|max)\.(?P<t>[us]32)", "redux_{f}_{t}", "u = u u", 80),
    Form(r"redux\.sync\.add\.[us]32", "redux_add_u32", "u = u u", 80),
    Form(r"redux\.sync\.(?P<f>and|or|xor)\.b32", "redux_{f}_u32", "b = b u", 80),
)  # fmt: skip

# Products of a warpgroup: the sums, the first matrix (registers or a descriptor), the descriptor of the second one,
# scale-d, imm-scale-a, imm-scale-b, imm-trans-a (for a descriptor) and imm-trans-b.
WGMMA = r"wgmma\.mma_async\.sync\.aligned\.m64n(?P<n>\d+)k16\.f32\.(?P<t>b?f16)\.(?P=t)"

# Special registers -> the C++ expression. In a template they are written %%name.
_PLACES = {"tid": "threadIdx", "ntid": "blockDim", "ctaid": "blockIdx", "nctaid": "gridDim"}
SPECIAL = {
    "laneid": "::simt::lane()", "warpid": "::simt::linear_thread() / 32u",
    **{f"{name}.{axis}": f"::{variable}.{axis}" for name, variable in _PLACES.items() for axis in "xyz"},
    "lanemask_eq": "1u << ::simt::lane()", "lanemask_lt": "(1u << ::simt::lane()) - 1u",
    "lanemask_le": "(2u << ::simt::lane()) - 1u", "lanemask_gt": "~((2u << ::simt::lane()) - 1u)",
    "lanemask_ge": "~((1u << ::simt::lane()) - 1u)", "dynamic_smem_size": "::simt::dynamic_shared_size()",
    "smid": "::simt::ptx::smid()", "nsmid": "::simt::ptx::multiprocessors()",
    "clock": "(unsigned)::clock64()", "clock64": "(unsigned long long)::clock64()",
    "clock_hi": "(unsigned)(::clock64() >> 32)", "globaltimer": "::simt::read_nanoseconds(CLOCK_REALTIME)",
    "globaltimer_lo": "(unsigned)::simt::read_nanoseconds(CLOCK_REALTIME)",
    "globaltimer_hi": "(unsigned)(::simt::read_nanoseconds(CLOCK_REALTIME) >> 32)",
}  # fmt: skip

# Other instructions, by the beginning of their names -> what to use instead. The first match counts.
INSTEAD = (
    (
        r"wgmma",
        "wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16 or .f32.bf16.bf16, or mma.sync.aligned.m16n8k8 or .m16n8k16",
    ),
    (r"tcgen05", "mma.sync.aligned.m16n8k8 or .m16n8k16"),
    (
        r"mma\.",
        "mma.sync.aligned of m16n8k4 or m16n8k8 (tf32), m16n8k8 or m16n8k16 (f16, bf16), or m16n8k32 (8 bits)",
    ),
    (r"wmma\.", "nvcuda::wmma of mma.h"),
    (r"cp\.async\.(bulk|mbarrier)|mbarrier|cp\.reduce", "cp.async with cp.async.wait_group, or cuda::barrier"),
    (r"cp\.async", "cp.async.ca.shared.global of 4, 8 or 16 bytes, or cp.async.cg.shared.global of 16"),
    (r"cvt\.", "cvt of .f32 to .tf32, .f16(x2), .bf16(x2), .e4m3x2 or .e5m2x2, or a C++ cast"),
    (r"createpolicy|\w+(\.\w+)*\.L2::cache_hint", "hints such as __ldcs() and __stcs(), which the CPU ignores"),
    (r"ld|st|red|atom", "loads, stores and atomic functions of CUDA C++"),
    (r"bar|fence|membar", "__syncthreads(), __syncwarp() or __threadfence()"),
    (r"", "CUDA C++ instead"),
)
