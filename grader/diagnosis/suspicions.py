"""Map what a verdict shows, its reason and pattern, to the lines that may be wrong, as patterns of lines."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable

from grader.verdict import Reason, Stage, Status


@dataclasses.dataclass(frozen=True)
class Suspicion:
    """One entry of the table.

    reasons, pattern: of the verdicts that it fits; the pattern is searched in the evidence's pattern and the message.
    words: the text above the lines. lines: patterns of lines, all of which are shown. inside: search in kernels only,
    if there are any. when: a further condition on the stage. sure: these lines are wrong, not only suspect.
    """

    reasons: set[Reason]
    pattern: str
    words: str
    lines: tuple[str, ...]
    inside: bool = True
    when: Callable[[Stage], bool] = lambda stage: True
    sure: bool = False


VALUES = {Reason.wrong_values, Reason.nondeterministic, Reason.schedule_dependent}
STORE = "STORE"  # a line on which a kernel stores through a pointer to what is not const
INDEX = r"\b(?:int|int64_t|unsigned|size_t|long|short|auto)\b[^=;(]*=.*(?:[%/]|Idx)|\b\w+\s*[%/]=|\bshort\b"
READ = r"=.*\w\s*\[[^\]]*[*+][^\]]*\]|\[[^\]]*\]\s*[-+*/]?=|\+=.*\["
ADD = r"\+=|\bsum\b.*=|atomicAdd|_sync\(|for\s*\(.*(?:/=\s*2|>>=\s*1)"
ROOT = r"sqrt|/\s*(?:\(float\)\s*)?\w+;|variance|mean\w*\s*="
GUARD = r"\bif\s*\("
LAUNCH = r"<<<|\bblocks\b.*=|\bgrid\b.*=|\(\w[^=]*/\s*\w+\s*[,;)]"
ALLOCATE = r"torch::(?:empty|zeros|ones|full)|\bat::empty|torch\.(?:empty|zeros)"
RETURN = "RETURN"  # a return of ModelNew.forward, or its first line where it has none
ANY = "(?:)"  # in front of a pattern: search outside of kernels too
APPLY = (
    r"\.apply\(|def backward\(|return.*\bNone\b"  # where a kernel is connected to autograd, and what backward returns
)
CONSTANT = "CONSTANT"  # a line on which a kernel stores the same value in every thread
RESULT = "RESULT"  # a line that allocates the tensor that a C++ function returns
INPUT = "INPUT"  # a return of ModelNew.forward that returns an argument
UNCHANGED = "UNCHANGED"  # the same, of an argument that forward assigns nowhere
END = "END"  # the last line of ModelNew.forward, where that returns nothing
FEEDS = "FEEDS"  # stores, and the lines that set the variables stored, directly or not, the nearest first
PATHS = (
    "PATHS"  # launches, and what decides whether a store is reached: the `if` and `for` around it, returns before it
)
TAIL = "TAIL"  # a loop around a store that takes several elements and ends where fewer are left
ONE_EACH = "ONE_EACH"  # where a store's index is the thread's own, and the store
UNMOVED = "UNMOVED"  # a line that moves the output to the block's part, where no input is moved
FIXED_LAUNCH = "FIXED_LAUNCH"  # a launch of one block, whatever the size
HALF_SUMS = "HALF_SUMS"  # sums of 16 bits, and their declarations
SAME_CALL = "SAME_CALL"  # where backward returns what forward's function gives for the gradient
UNREAD = "UNREAD"  # the last call with a tensor that it changes, of which nothing reads the result
ONE_PIXEL = {"one pixel", "one value", "one value a group", "one of everything"}  # cases with one pixel per channel
MEANS = "MEANS"  # in a file with a mean or a root: the number of threads, sums, divisors, means, roots
NOT_FINITE = "NOT_FINITE"  # operations of a kernel that give NaN or infinity for some arguments
CUT_FRACTIONS = "CUT_FRACTIONS"  # whole numbers that keep a product of floats
NARROW_SUMS = "NARROW_SUMS"  # declarations of sums of 8 or 16 bits
UNSIGNED_BYTES = "UNSIGNED_BYTES"  # bytes of int8 values that are taken as 0 to 255
UNSIGNED_DIFFERENCES = "UNSIGNED_DIFFERENCES"  # differences in variables without a sign
SIGNED_REMAINDERS = "SIGNED_REMAINDERS"  # remainders of shifted words that have a sign
KEPT_SUMS = "KEPT_SUMS"  # the store of one thread, whose sum the other threads have parts of
HALVED = "HALVED"  # a loop that halves a number of threads that is no power of two, and that number


def _only_wrong(part: str) -> Callable[[Stage], bool]:
    """Return a function that tests whether all failing cases have this in their name."""
    return lambda stage: (
        bool(stage.cases) and all(part in case.name for case in stage.cases if case.status is Status.failed)
    )


def _is_right_at_one_pixel(stage: Stage) -> bool:
    """Return whether the case "one pixel" passed, and no other one with a single pixel per channel failed."""
    failed = {case.name for case in stage.cases if case.status is Status.failed}
    passed = {case.name for case in stage.cases if case.status is Status.passed}
    return "one pixel" in passed and not failed & ONE_PIXEL


def _drops_nan(stage: Stage) -> bool:
    return "expected NaN, got " in stage.message


def _ends_with_the_block(stage: Stage) -> bool:
    """Return whether the elements from the number of a block's threads on are wrong."""
    one = stage.evidence[0] if stage.evidence else None
    begin = re.search(r"(?:columns|elements) ([\d,]+) and up", (one.pattern or "") if one else "")
    threads = {launch.block[0] * launch.block[1] * launch.block[2] for launch in one.launches} if one else set()
    return begin is not None and int(begin[1].replace(",", "")) in threads


def _is_nearly_right(stage: Stage) -> bool:
    """Return whether no value is wrong by much more than is allowed."""
    one = stage.evidence[0] if stage.evidence else None
    if one is None or one.max_error is None or one.tolerance is None:
        return False
    return one.max_error <= NEARLY * one.tolerance


NEARLY = 16  # times the tolerance: what the rounding errors of a sum of 16 bits may come to
RETURNS_INPUT = "`forward` returns its input:"
SUSPICIONS = [
    Suspicion(
        VALUES | {Reason.not_written}, "",
        "`__ffs` counts bits from 1, and lanes count from 0. Check that 1 is subtracted here:",
        (r"\b__ffs(?:ll)?\s*\([^()]*\)(?!\s*-\s*1)",),
    ),
    Suspicion(
        VALUES, "",
        RETURNS_INPUT,
        (UNCHANGED,), False, sure=True,
    ),
    Suspicion(
        VALUES | {Reason.constant_output}, "",
        "This value differs from run to run, since random numbers or a clock are in it. Compute it without them:",
        (ANY + r"^(?!.*(?:nn\.|self\.\w+\s*=)).*\b(?:rand\w*\s*\(|curand|clock\w*\()",), False, sure=True,
    ),
    Suspicion(
        VALUES, "",
        "The number of threads is not a power of two, and the loop halves it: where a half is odd, the value of one "
        "thread is lost. Use a power of two.",
        (HALVED,), sure=True,
    ),
    Suspicion(
        VALUES, "",
        "With a large mean, this line subtracts two large, nearly equal numbers, and mostly their rounding errors are "
        "left. Sum the squared differences from the mean instead.",
        (r"=[^;=]*-\s*(\w+)\s*\*\s*\1\s*[;,)]",), when=_only_wrong("large mean"), sure=True,
    ),
    Suspicion(
        VALUES, "own amounts|holds one value",
        "With one pixel per channel the values are right, and cases with more pixels fail: these sums leave out "
        "pixels. Let them run over all pixels.",
        (r"\w+\s*\+=.*\[",), when=_is_right_at_one_pixel, sure=True,
    ),
    Suspicion(
        VALUES, r"of every \d",
        "`__shfl_up_sync` gives the lanes below the distance their own value back, and this line adds it to them once "
        "more. Add only in lanes from the distance on:",
        (r"^(?!.*\bif\b)(?!.*\?).*\+=\s*__shfl_up_sync\(",), sure=True,
    ),
    Suspicion(
        VALUES, r"every (?:row|batch item|channel|plane) holds",
        "This line moves the output to the block's own part, and no input is moved: every block reads the first part. "
        "Move the input's pointer by the same number:",
        (UNMOVED,), sure=True,
    ),
    Suspicion(
        VALUES, "",
        "This sum is kept in 16 bits and rounded after each addition. Keep it in `float`, and convert what is stored:",
        (HALF_SUMS,), when=_is_nearly_right, sure=True,
    ),
    Suspicion(
        VALUES, "",
        "This line keeps a float in an integer, which drops its fraction. Make the variable a `float`:",
        (CUT_FRACTIONS,), sure=True,
    ),
    Suspicion(
        VALUES, "",
        "This sum has at most 16 bits, and overflows above 32,767. Make it an `int`:",
        (NARROW_SUMS,), sure=True,
    ),
    Suspicion(
        {*VALUES, Reason.non_finite, Reason.low_precision}, "",
        "This difference is unsigned: one below 0 wraps around to about 4 billion. Make it an `int`:",
        (UNSIGNED_DIFFERENCES,), sure=True,
    ),
    Suspicion(
        VALUES, "",
        "Where the highest bit of the word is set, the shifted word is negative, and so is this remainder. Keep the "
        "word `unsigned`, or take the bits with `&`:",
        (SIGNED_REMAINDERS,), sure=True,
    ),
    Suspicion(
        VALUES, "",
        "The bytes are taken as 0 to 255 here, and int8 goes from -128 to 127. Convert each byte to `int8_t`, or give "
        "`__dp4a` signed arguments:",
        (UNSIGNED_BYTES,), sure=True,
    ),
    Suspicion(
        VALUES, "",
        "One thread stores its own sum here, and the other threads have the rest of it: no line adds their sums. Add "
        "them first, with `__shfl_down_sync` or in shared memory:",
        (KEPT_SUMS,), sure=True,
    ),
    Suspicion(
        VALUES, r"(?:elements|columns) [\d,]+ and up",
        "This launch has one block with the same number of threads for every size. Check whether they take all "
        "elements:",
        (FIXED_LAUNCH,), False,
    ),
    Suspicion(
        VALUES, "single element|elements? from|elements [\\d,]+ and up",
        "This call changes a tensor, and no later line reads that: what it computes is lost. Check which call must "
        "follow it:",
        (UNREAD,), False,
    ),
    Suspicion(
        {Reason.wrong_gradient}, "",
        "`backward` returns what the function of `forward` computes, with the gradient in place of the input. The "
        "gradient of one input is the sum over all outputs that depend on it, which this is not:",
        (SAME_CALL,), False, sure=True,
    ),
    Suspicion(
        {Reason.missing_gradient}, "",
        "Check what `forward` passes to `apply`, and what `backward` returns:",
        (APPLY, RETURN), False,
    ),
    Suspicion(
        {Reason.wrong_gradient}, "batch item's part",
        "The gradient must be a sum over all batch items. Check where each sum is set to 0 and which loop runs over "
        "the batch:",
        (r"=\s*0(?:\.0f?)?\s*[,;]", r"for\s*\(.*\b[nN]\b", r"\+="),
    ),
    Suspicion(
        {Reason.wrong_gradient}, "swapped|another order|transposed",
        "Rows and columns are swapped where an index is computed or taken apart. Check these lines:",
        (INDEX, STORE),
    ),
    Suspicion(
        {Reason.wrong_gradient}, "",
        "Check backward's sums and where it stores them:",
        (STORE, ADD),
    ),
    Suspicion(
        {Reason.gradient_shape, Reason.backward_exception}, "",
        "These lines allocate or return what `backward` returns:",
        (r"torch::(?:empty|zeros)", r"return \{", r"def (?:forward\(ctx|backward)", r"^\s*return "
        r".*(?:\w*backward\w*\(|\bg\w*\s*,|\w*grad\w*)"), False,
    ),
    Suspicion(
        {Reason.backward_modified}, "",
        "One of these lines writes to a tensor that `backward` did not allocate:",
        (STORE, r"torch::(?:empty|zeros)", r"(?:auto|Tensor) \w+ = \w+;"), False,
    ),
    Suspicion(
        {Reason.saved_overwritten}, "",
        "Check what `forward` keeps for `backward`, and where `backward` reads it:",
        (r"\b(?:self|[A-Z]\w+)\.\w+(?:\[[^\]]*\])?\s*=(?!=)(?!.*nn\.)|=\s*(?:self|[A-Z]\w+)\.\w+\s*$",
         r"\bstatic\b.*Tensor", r"saved_tensors|save_for_backward"), False,
    ),
    Suspicion(
        {Reason.noncontiguous_gradient}, "",
        "One of these lines takes a tensor of `backward` to be contiguous. Call `.contiguous()` on it first:",
        (r"contiguous\(\)", r"\bg\w*\.data_ptr", r"def backward|Tensor \w*backward\w*\("), False,
    ),
    Suspicion(
        {Reason.nondeterministic_gradient}, "",
        "These sums change with the order of the threads, which differs from run to run:",
        (r"atomic\w+\(|rand|clock",),
    ),
    Suspicion(
        {Reason.wrong_values}, "off by one constant per channel",
        "A term with one value per channel, such as a bias, is missing or added twice. Check where each sum starts and "
        "what is added before the store:",
        (r"\bsum\w*\s*=[^=]", r"bias\w*\s*\[", STORE),
    ),
    Suspicion(
        VALUES, "holds batch item|only batch item",
        "The batch index `n` is missing in an index or computed wrongly, or an index overflows its type. Check these "
        "lines:",
        (INDEX, READ),
    ),
    Suspicion(
        VALUES, "swapped in memory|another order|transposed",
        "Rows and columns are swapped where an index is computed or taken apart. Check these lines:",
        (INDEX, STORE),
    ),
    Suspicion(
        VALUES, "own amounts|holds one value",
        "The mean or the variance may be wrong. Check which elements each sum includes, which of them each thread "
        "adds, and the number that divides the sum:",
        (MEANS,),
    ),
    Suspicion(
        VALUES, "channels? \\d|only channels?",
        "Only some channels are wrong. Check each index that selects a channel's value:",
        (INDEX, STORE),
    ),
    Suspicion(
        VALUES, r"last|first|(?<!some in )(?:rows?|columns?)|elements? \d|element from \d",
        "Only some rows, columns or elements are wrong. Check the bounds tests and how each index is "
        "computed:",
        (GUARD, INDEX, LAUNCH, FEEDS), False,
    ),
    Suspicion(
        VALUES, "% of the mean magnitude|digits",
        "The values are nearly right. Check for a small constant, such as eps, that is missing or added twice, and for "
        "values that differ from run to run:",
        (r"eps", r"rand|clock|\d\.\d+f?\b", STORE), False,
    ),
    Suspicion(
        {Reason.constant_output}, "",
        "Every thread stores the same value here. Store one that depends on the thread's index:",
        (CONSTANT,), sure=True,
    ),
    Suspicion(
        {Reason.constant_output}, "",
        "All elements get the same value. What is stored here must depend on the thread's index:",
        (STORE,),
    ),
    Suspicion(
        {Reason.low_precision}, "",
        "These lines keep a value in fewer bits than a float has:",
        (r"^(?!\s*#\s*include)(?!.*=\s*__half2float\([^()]*\);)"
         r".*(?:half|bfloat|bf16|fp16|__float2|tf32|& 0x[0-9a-fA-F]{6,}|& ~|wmma)",), False,
         sure=True,
    ),
    Suspicion(
        VALUES, "",
        "If one of two values is NaN, these functions return the other one:",
        (r"\b(?:fmax|fmin|max|min)f?\s*\(",), when=_drops_nan,
    ),
    Suspicion(
        {Reason.low_precision, *VALUES}, "",
        "Check what is stored and how it is computed:",
        (FEEDS,),
    ),
    Suspicion(
        {Reason.low_precision, *VALUES}, "",
        "Check the sums and where they are stored:",
        (ADD, STORE),
    ),
    Suspicion(
        {Reason.non_finite}, "",
        "Lines such as these can produce NaN or infinity:",
        (NOT_FINITE,),
    ),
    Suspicion(
        {Reason.non_finite}, "",
        "The largest half is 65,504. Convert to float before you multiply or add:",
        (r"\(__half2?\)\s*\w[^;]*[*+]|\b__h(?:add|sub|mul|fma)2?\(",),
    ),
    Suspicion(
        {Reason.non_finite}, "",
        "The largest half is 65,504, and a larger number becomes infinity. Keep what is computed here in float:",
        (r"__half2float\(\s*__float2half\w*\(|\b(?:__)?half\s+\w+\s*=\s*__float2half\w*\([^;]*[*+]",),
    ),
    Suspicion(
        {Reason.non_finite}, "",
        "Check what is stored and how it is computed:",
        (FEEDS,),
    ),
    Suspicion(
        {Reason.not_written}, "shared memory",
        "Shared memory is read before it is written. Check which elements are set first, and where the threads wait "
        "for each other:",
        (r"__shared__", r"__syncthreads", r"atomicAdd|\+="),
    ),
    Suspicion(
        {Reason.not_written}, r"last \d+ |last (?:row|column|element)",
        "This loop takes several elements at a time and ends where fewer than that are left, so that no thread stores "
        "the rest. Store it in a loop of its own, one element at a time:",
        (TAIL,), sure=True,
    ),
    Suspicion(
        {Reason.not_written}, r"(?:columns|elements) [\d,]+ and up",
        "Each thread stores one element, and there are more elements than threads in a block. Let each thread go on in "
        "steps of `blockDim.x`:",
        (ONE_EACH,), when=_ends_with_the_block, sure=True,
    ),
    Suspicion(
        {Reason.not_written}, "",
        "No thread stores some of the elements. Check the number of threads launched, the conditions, and the index "
        "of the store:",
        (LAUNCH, PATHS), False,
    ),
    Suspicion(
        {Reason.input_modified}, "",
        "This line copies no data. It only gives an input a second name, and the kernel writes to it:",
        (r"^\s*(?:auto|(?:torch|at)::Tensor)&?\s+\w+\s*=\s*\w+\s*;",), False, sure=True,
    ),
    Suspicion(
        {Reason.input_modified}, "",
        "One of these lines writes to an input:",
        (STORE, r"<<<|\.data_ptr<", r"\.[a-z]\w*[a-z]_\("), False,
    ),
    Suspicion(
        {Reason.output_aliases_input}, "",
        RETURNS_INPUT,
        (INPUT,), False, sure=True,
    ),
    Suspicion(
        {Reason.output_aliases_input}, "",
        "Check what `forward` returns and where it is allocated:",
        (RETURN, r"\breturn [a-z]\w*;", ALLOCATE), False,
    ),
    Suspicion(
        {Reason.output_reused}, "",
        "This tensor is allocated once and kept for all calls:",
        (r"\bstatic\b.*(?:Tensor|empty|map)",), False, sure=True,
    ),
    Suspicion(
        {Reason.output_reused}, "",
        "A result is kept here and returned again:",
        (r"self\.\w+\s*\[[^\]]*\]\s*=(?!=)|return self\.\w+",), False, sure=True,
    ),
    Suspicion(
        {Reason.output_reused}, "",
        "Check for a tensor that is kept from one call to the next:",
        (r"\bstatic\b.*(?:Tensor|empty|map)", r"self\.\w+\s*(?:\[[^\]]*\]\s*)?=(?!.*nn\.)", r"cache|saved|kept",
         RETURN), False,
    ),
    Suspicion(
        {Reason.wrong_shape}, "",
        "The output gets its shape here:",
        (RESULT,), False,
    ),
    Suspicion(
        {Reason.wrong_shape}, "",
        "The output gets its shape here:",
        (ALLOCATE, RETURN), False,
    ),
    Suspicion(
        {Reason.wrong_dtype, Reason.wrong_device}, "",
        "This line changes the dtype or the device. Remove the conversion, or allocate as `x` is:",
        (r"\.(?:half|bfloat16|double|int|long|cpu)\(\)|\.to\(|kHalf|kDouble|kBFloat16|float16|float64|bfloat16",),
         False, sure=True,
    ),
    Suspicion(
        {Reason.wrong_dtype, Reason.wrong_device}, "",
        "The output gets its dtype and device here:",
        (ALLOCATE, r"\.(?:half|to|double|float|cpu|cuda)\(", RETURN), False,
    ),
    Suspicion(
        {Reason.wrong_type}, "nothing \\(None\\)",
        "`forward` ends here without a return:",
        (END,), False, sure=True,
    ),
    Suspicion(
        {Reason.wrong_type}, "",
        "`forward` returns this:",
        (RETURN,), False,
    ),
    Suspicion(
        {Reason.missing_weights}, "",
        "A plain tensor is no weight. Make it an `nn.Parameter`:",
        (r"self\.\w+\s*=\s*torch\.(?:zeros|ones|empty|full|rand\w*|tensor)\w*\(",), False, sure=True,
    ),
    Suspicion(
        {Reason.missing_weights}, "",
        "ModelNew creates its own parameters here:",
        (r"self\.\w+\s*=\s*(?:torch\.)?nn\.",), False, sure=True,
    ),
    Suspicion(
        {Reason.crash}, "",
        "This line ends the program, or closes files that it did not open. Remove it:",
        (r"\b_?exit\(|abort\(|\bkill\(|os\.close|closerange|raise SystemExit",), False, sure=True,
    ),
]  # fmt: skip
SURE = {one.words for one in SUSPICIONS if one.sure}
GUESSED = {
    *VALUES,
    Reason.wrong_gradient,
    Reason.non_finite,
    Reason.not_written,
    Reason.low_precision,
    Reason.constant_output,
}
