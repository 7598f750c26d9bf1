"""Count the arithmetic of instructions, and the instructions that nvcc would generate for each."""

from __future__ import annotations

import platform
import re

from simt.toolchain.disassembly.decoding import BLOCK_PROBE, PROBE, Function, Instruction, is_jump, strip_callee

# The counts per basic block, in the order of the list. calls: of functions that belong neither to the language nor to
# arithmetic. Library functions have their own columns because a GPU needs other instructions for each. So do 64-bit
# integers and integer divisions, because a GPU needs several instructions for them. indexing: integer instructions and
# branches that nvcc generates (indexing.py); indexing_rolled: the same where a loop turns too few times for the copies
# that nvcc makes of its body; indexing64: those beyond, because integers have 64 bits. half: operations of 16-bit
# numbers, and conversions between these and float. local: accesses to a thread's own array at an index that is not
# known, which is why it lies in local memory on a GPU; no probe reports those that only one function makes.
COLUMNS = (
    "instructions", "flops", "fp32_add", "fp32_mul", "fp32_fma", "fp32_div", "fp32_sqrt", "fp32_exp", "fp32_log",
    "fp32_trig", "fp32_tanh", "fp32_pow", "fp32_fast", "fp32_other", "fp64_add", "fp64_mul", "fp64_fma", "fp64_div",
    "fp64_sqrt", "fp64_exp", "fp64_log", "fp64_pow", "fp64_other", "convert", "integer",
    "branch", "calls", "integer64", "divide32", "divide64", "fp32_special", "fp32_least", "half", "local",
    "indexing", "indexing_rolled", "indexing64",
)  # fmt: skip
# Floating-point operations that an H200 executes per operation (nvcc 13, -O3, by ncu: benchmarks/micro/special.cu,
# division.cu), in its arithmetic units, without the special-function unit. "other" is an assumption.
FLOPS = {
    "add": 1, "mul": 1, "fma": 2, "div": 10, "sqrt": 6, "exp": 10, "log": 24, "trig": 18, "tanh": 13, "pow": 40,
    "fast": 1, "other": 10,
}  # fmt: skip
# The instructions that nvcc generates for one operation, and how many of them the special-function unit executes. From
# ncu's counts of benchmarks/micro/special.cu and division.cu (nvcc 13, sm_90), whose loops contain nothing else.
# Functions of doubles are estimated: from the machine code that nvcc 13 makes of them, part of which runs seldom.
EXPANSION: dict[str, tuple[float, float]] = {
    "fp32_div": (10, 1), "fp32_sqrt": (10, 1), "fp32_exp": (8.5, 1), "fp32_log": (26, 0), "fp32_trig": (25, 0.5),
    "fp32_tanh": (16, 2), "fp32_pow": (60, 2), "fp32_fast": (3, 1), "fp32_other": (20, 1),
    "fp64_div": (25, 1), "fp64_sqrt": (25, 1), "fp64_exp": (40, 0), "fp64_log": (62, 1), "fp64_pow": (200, 1),
    "fp64_other": (70, 1),
    "divide32": (25, 3), "divide64": (32, 3), "convert": (1, 1),
    "fp32_special": (1, 1), "fp32_least": (1, 0), "half": (1, 0),
}  # fmt: skip
# Those of them that the units for doubles execute: from the same machine code.
IN_DOUBLES = {
    "fp64_div": 8.0, "fp64_sqrt": 8.0, "fp64_exp": 18.0, "fp64_log": 27.0, "fp64_pow": 91.0, "fp64_other": 25.0,
}  # fmt: skip
# Instructions of a 64-bit integer operation: registers have 32 bits. (Widening a number and adding an offset to an
# address take one.)
INTEGER64 = 2.0
_LIBRARY = {
    **dict.fromkeys("exp exp2 exp10 expm1".split(), "exp"),
    **dict.fromkeys("log log2 log10 log1p".split(), "log"),
    **dict.fromkeys("sin cos tan sincos".split(), "trig"),
    **dict.fromkeys("tanh".split(), "tanh"),
    **dict.fromkeys("pow".split(), "pow"),
    **dict.fromkeys(
        """
        asin acos atan atan2 sinh cosh asinh acosh atanh cbrt rcbrt erf erfc erfinv tgamma lgamma hypot fmod remainder
        """.split(),
        "other",
    ),
    "fma": "fma",
    "sqrt": "sqrt",
}
# Functions of simt's headers that are one or two instructions on a GPU -> their counts.
OWN_FUNCTIONS = (
    (
        re.compile(r"^(_Z\d+)?__(expf|exp10f|logf|log2f|log10f|sinf|cosf|tanf|tanhf|powf|fdividef)|^rsqrtf$"),
        {"instructions": 2.0, "fp32_fast": 1.0},
    ),
    (
        re.compile(r"^_ZN4simt3ptx\d+(\w+_approx_ftz|tanh_approx)E|^__popcount[sdt]i2$|^_Z\d+__brevj"),
        {"instructions": 1.0, "fp32_special": 1.0},
    ),
    (re.compile(r"^_ZN4simt3ptx\d+\w+_approxE"), {"instructions": 2.0, "fp32_fast": 1.0}),
    (
        re.compile(
            r"^_ZN4simt3ptx\d+(lop3I|min_nan|max_nan)|^_ZN4simt1[34]shared_(number|pointer)|"
            r"^_Z\d+__(dp[24]a|byte_perm)"
        ),
        {"instructions": 1.0, "integer": 1.0},
    ),
    (re.compile(r"^f(min|max)f$"), {"instructions": 1.0, "fp32_least": 1.0}),
    (re.compile(r"^_ZN4simt3ptx\d+(add|sub)_f32_ftzE"), {"instructions": 1.0, "fp32_add": 1.0, "flops": 1.0}),
    (re.compile(r"^_ZN4simt3ptx\d+mul_f32_ftzE"), {"instructions": 1.0, "fp32_mul": 1.0, "flops": 1.0}),
    (re.compile(r"^_ZN4simt3ptx\d+fma_f32_ftzE"), {"instructions": 1.0, "fp32_fma": 1.0, "flops": 2.0}),
    (
        re.compile(r"^_ZN4simt\d+(narrowed|odd_sum)|^_ZN6nvcuda4wmma\d+__float_to_tf32|^_ZN4simt3ptx\d+cvt_"),
        {"instructions": 1.0, "convert": 1.0},
    ),
    (
        re.compile(r"^_ZN4simt\d+(half_to_float|float_to_half|float_to_bfloat16|(add|sub|mul|fma)_(half|bfloat16))"),
        {"instructions": 1.0, "half": 1.0},
    ),
    (re.compile(r"^_Z\d+__(reduce|match)|^_ZN4simt(8shuffled|6voters|8matching)"), {"instructions": 1.0}),
    (
        re.compile(
            r"^simt_barrier|^_ZN4simt(12barrier_vote|8exchange|11active_mask|12grid_barrier)|^_Z\d+(atomic|__threadfence)"
        ),
        {"instructions": 1.0},
    ),
)


# ---- one instruction ----

_X86_FP = re.compile(r"^v?(addsub|add|sub|mul|div|sqrt|f?n?m(?:add|sub)\d*)(ss|sd|ps|pd)$")
_LANES = {"ss": 1, "sd": 1, "ps": 4, "pd": 2}
# Instructions that a GPU does not need: they save or move registers, reserve stack, find variables that are special
# registers on a GPU, or split a 64-bit value, which a GPU holds in two registers.
_STACK = re.compile(
    r"^v?mov(?:s[sd]|[lqd]|aps|apd|dqa)? (?:.*\(%rsp\)|%\w+,%\w+$|.*%fs:|\S+\(%rip\),%r)|^(?:sub|add) \S+,%rsp|"
    r"^shr \$0x20,%r|^(?:ldp|stp|ldr|str) .*\[sp|^(?:sub|add) sp,|^mov [wx]\d+, [wx]\d+$|^fmov [sd]\d+, [sd]\d+$|"
    r"^lsr x\d+, x\d+, #32$|^mrs .*tpidr"
)
_LOCAL = re.compile(r"\(%rsp,%r|\[sp, [wx]\d")
_ARM_FP = re.compile(r"^f(add|sub|mul|nmul|div|sqrt|n?madd|n?msub|mla|mls)$")
DIVIDES = re.compile(r"^[us]?i?div")
_WIDE = re.compile(r"(?:^|,)\s*(?:%r(?:[a-d]x|[sd]i|bp|\d+)|x\d+)$")  # the result has 64 bits
_WIDENS = ("movs", "movz", "cltq", "cqto", "sxt", "uxt", "lea")
_INTEGER = re.compile(
    r"^(add|sub|imul|mul|idiv|div|inc|dec|neg|not|and|or|xor|sh[lr]|sa[lr]|ro[lr]|lea|cmp|test|cdq|cqto|cltd|cltq|movs[lbwx]|movz|set|cmov|bt|bs[fr]|"
    r"popcnt|tzcnt|lzcnt|adc|sbb|madd|msub|smull|umull|sdiv|udiv|orr|eor|bic|ls[lr]|asr|ubfx|sbfx|csel|cset|csinc|sxt|uxt|subs|adds|tst|clz)"
)


def count_instruction(function: Function, i: int) -> dict[str, float]:
    """Return the counts that one instruction adds to COLUMNS: none for a probe's call and for the instruction that
    computes its argument. "issued": the instructions that nvcc generates for an integer instruction, if not one.
    """
    code = function.instructions
    instruction = code[i]
    name = instruction.name
    if instruction.callee:
        return _count_call(instruction.callee)
    if (
        name.startswith(("nop", "endbr", "bti", "push", "pop", "leave"))
        or _makes_argument(code, i)
        or _STACK.search(f"{name} {instruction.operands}")
    ):
        return {}
    # On a GPU 0 is a register, and a comparison of two floats includes the test for NaN.
    needless = name in ("jp", "jnp") or (name.endswith("xor") and len(set(instruction.operands.split(","))) == 1)
    cost = {"instructions": 0.0 if needless else 1.0}
    if _LOCAL.search(instruction.operands):
        cost["local"] = 1.0
    if kind := _classify_floating(name, instruction.operands):
        operation, width, lanes = kind
        cost[f"{width}_{operation}"] = lanes
        cost["flops"] = lanes * FLOPS[operation]
    elif name.startswith(("cvt", "vcvt", "fcvt", "scvtf", "ucvtf")):
        cost["convert"] = 1.0
    elif is_jump(name):
        cost["branch"] = 1.0
    elif _INTEGER.match(name) and "%xmm" not in instruction.operands:
        cost["integer"] = 1.0
        wide = _WIDE.search(instruction.operands) is not None
        if DIVIDES.match(name):
            cost["divide64" if wide else "divide32"] = 1.0
        elif wide:
            cost["integer64"] = 1.0
            if cost["instructions"] and not name.startswith(_WIDENS):
                cost["issued"] = INTEGER64
    return cost


def _classify_floating(name: str, operands: str) -> tuple[str, str, float] | None:
    """Return (operation, width, number of operands) of a floating-point instruction, or None for other instructions."""
    if match := _X86_FP.match(name):
        width, lanes = ("fp32" if match[2][1] == "s" else "fp64"), _LANES[match[2]]
    elif match := _ARM_FP.match(name):
        width, lanes = ("fp64" if operands.startswith("d") else "fp32"), 1
    else:
        return None
    what = match[1]
    operation = (
        "fma"
        if re.search(r"ma|ms|ml[as]", what)
        else what
        if what in ("div", "sqrt")
        else "mul"
        if "mul" in what
        else "add"
    )
    return operation, width, float(lanes)


def _count_call(callee: str) -> dict[str, float]:
    if PROBE.search(callee):
        return {}
    if cost := count_own_function(callee):
        return {**cost, "flops": float(FLOPS["fast"])} if "fp32_fast" in cost else cost
    what, single = _look_up(callee)
    if what is None:
        return {"instructions": 1.0, "calls": 1.0}
    if not single and f"fp64_{what}" not in COLUMNS:
        what = "other"
    return {"instructions": 1.0, f"{'fp32' if single else 'fp64'}_{what}": 1.0, "flops": float(FLOPS[what])}


def _look_up(callee: str) -> tuple[str | None, bool]:
    """Return the kind of a library function, and whether it computes in single precision."""
    name = strip_callee(callee)
    single = name.endswith("f") and name[:-1] in _LIBRARY
    return _LIBRARY.get(name[:-1] if single else name), single


def find_function(callee: str) -> str | None:
    """Return the kind of a library function, "exp" say; None for other functions, simt's own among them."""
    return None if not callee or PROBE.search(callee) or count_own_function(callee) else _look_up(callee)[0]


def is_known_call(callee: str) -> bool:
    """Return whether a function is inlined on a GPU: it belongs to the language, to arithmetic, or to simt."""
    return "calls" not in _count_call(callee)


def count_own_function(callee: str) -> dict[str, float] | None:
    """Return the counts of a function in simt's headers, or None for other functions."""
    return next((cost for pattern, cost in OWN_FUNCTIONS if pattern.match(strip_callee(callee))), None)


ARGUMENT = "%rdi" if platform.machine() in ("x86_64", "AMD64") else "x0"


def _makes_argument(code: list[Instruction], i: int) -> bool:
    """Return whether the instruction only computes a probe's argument: it is the last to write that register."""
    if not writes_argument(code[i]):
        return False
    for later in code[i + 1 : i + 8]:
        if later.callee:
            return bool(PROBE.search(later.callee)) and not later.callee.startswith(BLOCK_PROBE)
        if writes_argument(later) or is_jump(later.name):
            return False
    return False


def writes_argument(instruction: Instruction) -> bool:
    """Return whether the instruction writes the register of a function's first argument."""
    if ARGUMENT == "%rdi":
        return instruction.operands.endswith(",%rdi") and not instruction.name.startswith(("cmp", "test"))
    return instruction.operands.startswith("x0,") and not instruction.name.startswith(("str", "stp", "cmp"))


# ---- several instructions ----


def find_fused(share: dict[int, float], costs: list[dict[str, float]]) -> dict[str, float]:
    """Return, for fp32 and fp64, the instructions per multiplication and addition of a block: nvcc fuses two to one if
    it can.
    """
    found = {}
    for width in ("fp32", "fp64"):
        added, multiplied = (
            sum(part * costs[at].get(f"{width}_{what}", 0.0) for at, part in share.items()) for what in ("add", "mul")
        )
        found[width] = max(added, multiplied) / (added + multiplied) if added and multiplied else 1.0
    return found


def count_issued(cost: dict[str, float], fused: dict[str, float]) -> float:
    """Return the number of instructions that nvcc would generate for one instruction with this cost."""
    made = sum(EXPANSION[name][0] * value for name, value in cost.items() if name in EXPANSION)
    made += sum(fused[width] * (cost.get(f"{width}_add", 0.0) + cost.get(f"{width}_mul", 0.0)) for width in fused)
    return made or cost.get("issued", cost.get("instructions", 0.0))
