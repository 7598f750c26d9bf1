"""Does the comparison pass every honest float32 result, fail every dishonest or mistaken one, and say why?"""

import time
import warnings

import pytest
import torch

from grader.judging import findings, tolerance
from grader.judging.cores import one_core
from grader.paths import KERNELS_REF
from grader.problems import problem
from grader.problems.cases import Case
from grader.worker import protocol
from tests.grader.judging import numerics

NAMES = problem.names()


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Small tensors on one core: on a busy machine, threads that wait for each other take ten times as long."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def trials():
    """Each problem's cases with their (honest, wrong) results and right answers, made once."""
    made = {}

    def get(name):
        if name not in made:
            read = problem.read(KERNELS_REF / name / "model.py")
            made[name] = []
            for case in read.cases():
                instance = read.instantiate(case, seed=11)
                answers = instance.expected(), instance.eager(), instance.noise(instance.expected())
                made[name].append((case, variants(name, instance), *answers))
        return made[name]

    return get


def variants(name, instance):
    with warnings.catch_warnings():  # overflow and division by zero are what some of the mistakes are about
        warnings.simplefilter("ignore")
        return numerics.variants(name, instance.model, *instance.inputs)


def test_whole_numbers_have_no_tolerance():
    """Must counts be equal, and are they compared where a tolerance is asked for?"""
    counts = torch.tensor([3, 70000, 0], dtype=torch.int32)
    allowed = tolerance.tolerance(counts, counts)
    assert allowed.dtype == torch.float64 and allowed.tolist() == [0, 0, 0]
    difference = tolerance.compare(counts + torch.tensor([0, 1, 0], dtype=torch.int32), counts, counts)
    assert difference is not None and difference.index == [1] and difference.max_error == 1


# --- the error budget on the eight problems --------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_honest_float32_results_pass_with_room(name, trials):
    """Is every order of summation, serial or tree, two-pass or Welford, at most half the tolerance away?"""
    for case, (honest, _wrong), expected, eager, noise in trials(name):
        allowed = tolerance.tolerance(expected[0], eager[0], case.reduction, noise[0], case.precision)
        for label, result in honest.items():
            assert tolerance.compare(result, expected, eager, case, noise) is None, (case.name, label)
            # NaN where NaN is right
            share = ((result.double() - expected[0]).abs() / allowed).nan_to_num(0.0).max().item()
            assert share < 0.5, (case.name, label, share)


@pytest.mark.parametrize("name", NAMES)
def test_eager_itself_passes(name, trials):
    """Is the reference's own float32 result right?"""
    for case, (_honest, _wrong), expected, eager, noise in trials(name):
        assert tolerance.compare(eager, expected, eager, case, noise) is None, case.name


@pytest.mark.parametrize("name", NAMES)
def test_mistakes_fail_some_case(name, trials):
    """Does every numerical mistake (half precision, TF32, eps twice, one-pass variance, ...) fail a case of its
    problem?
    """
    failed = {}
    for case, (_honest, wrong), expected, eager, noise in trials(name):
        for label, result in wrong.items():
            difference = tolerance.compare(result, expected, eager, case, noise)
            failed.setdefault(label, []).append(difference is not None)
    assert failed and all(any(cases) for cases in failed.values()), failed


@pytest.mark.parametrize("name", NAMES)
def test_reduced_precision_fails_most_cases(name, trials):
    """Do results computed or stored in half precision or TF32 fail at least two thirds of the cases?"""
    failed = {}
    for case, (_honest, wrong), expected, eager, noise in trials(name):
        for label, result in wrong.items():
            if label.startswith(("half", "TF32", "bfloat16")):
                failed.setdefault(label, []).append(tolerance.compare(result, expected, eager, case, noise) is not None)
    for label, cases in failed.items():
        assert sum(cases) >= 2 / 3 * len(cases), label


DECOYS = {
    "zeros": torch.zeros_like,
    "constant": lambda y: torch.full_like(y, y.double().mean().item()),
    "channels rolled": lambda y: y.roll(1, 1),
    "pixels reversed": lambda y: y.flip(-2, -1),
    "rows and columns swapped": lambda y: y.transpose(-2, -1).reshape(y.shape),
    "one column late": lambda y: y.roll(1, -1),
    "one element late": lambda y: y.flatten().roll(1).view_as(y),
    "batch item 0 everywhere": lambda y: y[:1].expand_as(y),
    "last row missing": lambda y: torch.cat([y[..., :-1, :], torch.zeros_like(y[..., -1:, :])], -2),
    "last element missing": lambda y: torch.cat([y.flatten()[:-1], torch.zeros(1, dtype=y.dtype)]).view_as(y),
}
NEED_ROWS = {"channels rolled", "pixels reversed", "rows and columns swapped", "last row missing"}


@pytest.mark.parametrize("name", NAMES)
def test_decoys_fail(name, trials):
    """Does every decoy that differs from the right result fail the case?"""
    is_vector = trials(name)[0][2][0].dim() == 1
    for label, decoy in DECOYS.items():
        if is_vector and label in NEED_ROWS:
            continue
        failed = 0
        for case, _, expected, eager, noise in trials(name):
            got = decoy(eager[0]).contiguous()
            if not torch.allclose(got, eager[0], rtol=1e-3, atol=1e-3):
                assert tolerance.compare(got, expected, eager, case, noise) is not None, (case.name, label)
                failed += 1
        no_columns = eager[0].shape[-1] == 1 and label in ("rows and columns swapped", "one column late")
        one_channel = eager[0].dim() > 1 and eager[0].shape[1] == 1
        assert failed or no_columns or (label, name) == ("channels rolled", "logsumexp") or one_channel, label


@pytest.mark.parametrize("name", NAMES)
def test_the_previous_answer_fails(name, trials):
    """Is the right answer for other inputs of the same shape wrong?"""
    case = trials(name)[2][0]
    read = problem.read(KERNELS_REF / name / "model.py")
    mine, other = read.instantiate(case, seed=1), read.instantiate(case, seed=2)
    difference = tolerance.compare(other.eager(), mine.expected(), mine.eager(), case, mine.noise(mine.expected()))
    assert difference.reason == "wrong_values"


def test_variance_in_one_pass_fails_only_where_it_cancels(trials):
    """Does the textbook formula E[x^2] - E[x]^2 pass on centred inputs and fail on inputs with a large mean?"""
    outcome = {}
    for case, (_honest, wrong), expected, eager, noise in trials("groupnorm"):
        outcome[case.inputs] = tolerance.compare(wrong["one-pass"], expected, eager, case, noise)
    assert outcome["normal"] is None
    assert outcome["large_mean"].reason == "wrong_values"


# --- reasons and patterns --------------------------------------------------------------------------------------------

SHAPE = (4, 6, 20, 24)


def right(shape=SHAPE, seed=0):
    y = torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return y, y.float()


def judged(change, shape=SHAPE):
    """compare's word on a right result after change(result), which alters it in place or returns another."""
    y, e = right(shape)
    got = e.clone()
    changed = change(got)
    return tolerance.compare(got if changed is None else changed, y, e)


def put(value, *where):
    def change(g):
        g[where] = value

    return change


def put_flat(value, where):
    def change(g):
        g.view(-1)[where] = value

    return change


def border(g):
    inner = g[..., 1:-1, 1:-1].clone()
    g.zero_()
    g[..., 1:-1, 1:-1] = inner


ALL = slice(None)
PATTERNS = {
    "only channel 3, zero": put(0, ALL, 3),
    "first batch item, zero": put(0, 0),
    "last row, zero": put(0, ALL, ALL, -1),
    "last column, zero": put(0, ..., -1),
    "last 2 columns, zero": put(0, ..., slice(-2, None)),
    "columns 16 and up, zero": put(0, ..., slice(16, None)),
    "every 2nd row from 1, zero": put(0, ALL, ALL, slice(1, None, 2)),
    "every 5th element from 4, zero": put_flat(0, slice(4, None, 5)),
    "every 32nd element from 31, zero": put_flat(0, slice(31, None, 32)),
    "elements 11,264 and up, zero": put_flat(0, slice(11264, None)),
    "the border, zero": border,
    "a single element": put(7.0, 1, 2, 3, 4),
    "only channel 3, off by 2": lambda g: g + 2 * (torch.arange(6) == 3).view(6, 1, 1),
    "off by -0.5": lambda g: g - 0.5,
    "scaled by 0.25": lambda g: g * 0.25,
    "the sign is wrong": lambda g: -g,
    "off by one constant per channel": lambda g: g + torch.arange(1, 7).view(6, 1, 1),
    "scaled by one factor per channel": lambda g: g * torch.arange(2, 8).view(6, 1, 1),
    "channels are in reverse order": lambda g: g.flip(1),
    "every column holds the previous one's values": lambda g: g.roll(1, 3),
    "every row holds the next one's values": lambda g: g.roll(-1, 2),
    "rows and columns are swapped in memory": lambda g: g.transpose(2, 3).reshape(g.shape),
    "channels are mixed up: channel 0 holds channel 4's values": lambda g: g[:, [4, 2, 0, 5, 1, 3]],
    "every batch item holds batch item 0's values": lambda g: g[:1].expand_as(g).contiguous(),
}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_wrong_result_is_described(pattern):
    """Does the description name which elements are wrong and what they hold?"""
    difference = judged(PATTERNS[pattern])
    assert (difference.reason, difference.pattern) == ("wrong_values", pattern)
    assert pattern in difference.message


def test_statistics_for_each_position_are_described():
    """Is a normalisation with a wrong variance told from half precision?"""
    factors = 1 + 1e-3 * torch.randn(4, 6, 1, 1)
    difference = judged(lambda g: g * factors + 1e-3 * torch.randn(4, 6, 1, 1))
    assert difference.reason == "wrong_values"
    assert difference.pattern.endswith("is shifted and scaled by its own amounts")


def test_one_value_in_each_channel_is_described():
    """Is it seen that the elements of each channel are alike?"""
    difference = judged(lambda g: g.mean((2, 3), keepdim=True).expand_as(g).clone())
    assert difference.pattern.endswith("holds one value")


def test_square_images_swapped_are_described():
    """Are rows and columns of a square image seen to be swapped?"""
    difference = judged(lambda g: g.transpose(2, 3).contiguous(), (2, 3, 16, 16))
    assert difference.pattern == "rows and columns are swapped"


def test_a_place_is_named_only_where_it_shows_something():
    """Is the last column not called the place of the mistake where any other column is 0 whatever the kernel does?"""
    generator = torch.Generator().manual_seed(8)
    expected = torch.zeros(3, 40)
    expected[:, -1] = torch.rand(3, generator=generator) + 1
    got = expected + (expected != 0) * torch.rand(3, 40, generator=generator)
    assert tolerance.compare(got, expected.double(), expected).pattern is None
    expected[1, 4] = 0.5
    got[1, 4] = 0.5
    assert tolerance.compare(got, expected.double(), expected).pattern == "last column"


def test_the_evidence_is_what_a_plain_loop_finds():
    """Are first index, expected, got, count and largest error those of a loop over all elements?"""
    y, e = right((2, 3, 4, 5))
    got = e.clone()
    for n, c, h, w, by in ((1, 2, 0, 3, 0.25), (0, 1, 3, 2, -1.5), (1, 0, 1, 1, 0.5)):
        got[n, c, h, w] += by
    difference = tolerance.compare(got, y, e)
    assert difference.index == [0, 1, 3, 2]
    assert difference.expected == y[0, 1, 3, 2].item()
    assert difference.got == got[0, 1, 3, 2].item()
    assert (difference.wrong_count, difference.total) == (3, 120)
    assert difference.max_error == pytest.approx(1.5, abs=1e-6)
    assert difference.tolerance is not None
    assert 0 < difference.tolerance < 1e-4


@pytest.mark.parametrize(
    ("reason", "change"),
    {
        "wrong_type": lambda g: None if g is None else [g, g],
        "wrong_shape": lambda g: g[:, :, 1:],
        "wrong_dtype": lambda g: g.double(),
        "non_finite": put(float("nan"), 0, 0, 5, 5),
        "constant_output": torch.zeros_like,
        "low_precision": lambda g: g.half().float(),
    }.items(),
)
def test_each_reason_is_given(reason, change):
    """Is the reason the one for this kind of result?"""
    assert judged(change).reason == reason


def test_a_maximum_from_0_is_not_called_rounding():
    """Are two zeros for values just below 0 called wrong values, though 0 is a bfloat16 number and the errors are
    small?
    """
    expected = torch.rand(1, 2, 8, 8, generator=torch.Generator().manual_seed(6)) + 1
    expected[0, 0, 3, 3], expected[0, 1, 2, 5] = -0.05, -0.02
    difference = tolerance.compare(expected.clamp(min=0), expected.double(), expected)
    assert (difference.reason, difference.wrong_count) == ("wrong_values", 2)


@pytest.mark.parametrize(("dtype", "name"), [(torch.bfloat16, "bfloat16"), (torch.float16, "float16")])
def test_a_format_is_named_only_where_values_were_rounded_to_it(dtype, name):
    """Is a format named where values have been rounded to it, and not where the right values, or whole numbers, are
    exact in it anyway?
    """
    generator = torch.Generator().manual_seed(7)
    expected = torch.rand(2, 3, 16, 16, generator=generator) * 100 + 50
    rounded = expected.to(dtype).float()

    def pattern(got: torch.Tensor, right: torch.Tensor) -> tuple[str, str]:
        difference = tolerance.compare(got, right.double(), right)
        return difference.reason, difference.pattern or ""

    assert pattern(rounded, expected) == ("low_precision", f"every wrong value is rounded to {name}")
    assert pattern(expected.trunc(), expected) == ("low_precision", "every wrong value is a whole number")
    counts = expected.trunc()  # as of a histogram
    assert counts.to(dtype).float().equal(counts) and "round" not in " ".join(pattern(counts + 1, counts))
    halves = counts + 0.5 if dtype is torch.float16 else counts.clamp(max=120) + 0.5
    assert halves.to(dtype).float().equal(halves) and name not in pattern(halves + 0.5 * (halves > 70), halves)[1]
    assert name not in pattern(halves + 1, halves)[1]


@pytest.mark.parametrize("rounded", [numerics.half, numerics.bfloat16, numerics.tf32])
def test_rounded_results_are_called_low_precision(rounded):
    """Is a result rounded to fewer bits, and one with errors of that size, called low_precision?"""
    assert judged(rounded).reason == "low_precision"
    noise = torch.randn(SHAPE, generator=torch.Generator().manual_seed(5))
    assert judged(lambda g: g * (1 + 3e-4 * noise)).reason == "low_precision"


def test_None_is_a_wrong_type():
    """Is a forward without a return told so?"""
    y, e = right()
    difference = tolerance.compare(None, y, e)
    assert (difference.reason, difference.message) == (
        "wrong_type",
        "forward returned None where Model returns a tensor.",
    )


def marked(mark, where):
    def change(g):
        g.view(torch.int32).view(-1)[where] = mark if mark < 2**31 else mark - 2**32

    return change


def test_memory_never_written_is_told_by_its_mark():
    """Are elements that still hold the mark of new memory called not written, and which they are?"""
    difference = judged(marked(tolerance.GLOBAL_MARK, slice(10_000, None)))
    assert difference.reason == "not_written"
    assert difference.wrong_count == 4 * 6 * 20 * 24 - 10_000
    assert difference.pattern == "elements 10,000 and up"


def test_shared_memory_never_written_is_told_by_its_mark():
    """Is the other mark named, also with its sign flipped by arithmetic?"""
    for mark in (tolerance.SHARED_MARK, tolerance.SHARED_MARK | 1 << 31):
        difference = judged(marked(mark, slice(None, None, 7)))
        assert difference.reason == "not_written"
        assert "shared memory that no thread wrote" in difference.message


def test_a_computed_nan_is_not_taken_for_a_mark():
    """Is 0/0 called non-finite?"""
    difference = judged(lambda g: put_flat(0.0, slice(0, 3))(g) or g / torch.where(g == 0, g, 1.0))
    assert difference.reason == "non_finite"
    assert "NaN" in difference.message


def test_nan_and_infinity_are_right_where_eager_has_them():
    """Is a result right that is NaN, inf and -inf exactly where the reference is?"""
    y, e = right()
    y[0, 0, 0, :3] = torch.tensor([float("nan"), float("inf"), float("-inf")])
    e = y.float()
    assert tolerance.compare(e.clone(), y, e) is None
    wrong = e.clone()
    wrong[0, 0, 0, 1] = float("-inf")
    assert tolerance.compare(wrong, y, e).index == [0, 0, 0, 1]


def test_overflow_in_float32_may_go_either_way():
    """Where eager overflows and float64 does not, are both answers right?"""
    y, e = right()
    y[1, 1, 1, 1] = 1e39
    e[1, 1, 1, 1] = float("inf")
    assert tolerance.compare(e.clone(), y, e) is None


def test_integers_must_be_equal():
    """Are integer outputs compared exactly, against eager's or the float64 reference's choice?"""
    y = torch.arange(60).view(3, 20)
    assert tolerance.compare(y.clone(), y, y) is None
    got = y.clone()
    got[2, 4] += 1
    difference = tolerance.compare(got, y, y)
    assert (difference.reason, difference.index, difference.got) == ("wrong_values", [2, 4], 45)


def test_the_output_that_is_wrong_is_numbered():
    """Of several outputs, is the wrong one named?"""
    (y0, e0), (y1, e1) = right(seed=1), right(seed=2)
    difference = tolerance.compare([e0, e1 + 1], [y0, y1], [e0, e1])
    assert difference.output == 1
    assert difference.message.startswith("Output 1: ")


def test_half_precision_problems_are_judged_in_half_precision():
    """Is a float16 result right within float16's own rounding and wrong beyond it?"""
    y = torch.randn(2, 8, 16, 16, dtype=torch.float64)
    e = y.half()
    neighbour = (e.view(torch.int16) + 1).view(torch.float16)
    assert tolerance.compare(neighbour, y, e) is None
    assert tolerance.compare(e * 1.25, y, e) is not None


def test_scalars_and_empty_outputs_are_compared():
    """Do outputs without dimensions or elements go through?"""
    y = torch.tensor(2.0, dtype=torch.float64)
    assert tolerance.compare(torch.tensor(2.0), y, y.float()) is None
    assert tolerance.compare(torch.tensor(2.5), y, y.float()).index == []
    nothing = torch.zeros(0, 3, dtype=torch.float64)
    assert tolerance.compare(nothing.float(), nothing, nothing.float()) is None


def test_a_column_of_a_wider_tensor_is_compared():
    """Is a result with strides compared by its values?"""
    y, e = right()
    assert tolerance.compare(torch.stack([e, e + 1], -1)[..., 0], y, e) is None


def test_pieces_of_a_large_output_add_up(monkeypatch):
    """Are index, count and pattern those of the whole when an output is compared in pieces?"""
    monkeypatch.setattr(tolerance, "PIECE_ELEMENTS", 3000)
    difference = judged(put(9.0, slice(1, None), 1, 2))
    assert difference.index == [1, 1, 2, 0]
    assert (difference.wrong_count, difference.total) == (3 * 24, 4 * 6 * 20 * 24)
    assert difference.pattern == "last 3 batch items, only channel 1, only row 2"
    assert "72 of 11,520 values" in difference.message


# --- precision classes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("precision", ["fp32", "tf32"])
def test_classes_are_not_mixed(precision):
    """Is a TF32 result right where TF32 is asked for and wrong where float32 is, bfloat16 and cut factors wrong in
    both?
    """
    read = problem.read(KERNELS_REF / "conv2d_tensor_core" / "model.py", {"PRECISION": repr(precision)})
    case = next(case for case in read.cases() if case.name == "power of two")
    instance = read.instantiate(case, seed=5)
    answers = instance.expected(), instance.eager(), case, instance.noise(instance.expected())
    (x,), layer = instance.inputs, instance.model.conv
    right = {"fp32": ["same"], "tf32": ["same", "tf32"]}[precision]
    for rounded in (numerics.same, numerics.tf32, numerics.cut, numerics.bfloat16):
        difference = tolerance.compare(numerics.conv(x, layer, rounded), *answers)
        assert (difference is None) == (rounded.__name__ in right), rounded.__name__
        if difference:
            assert difference.reason == "low_precision"
            assert difference.pattern is not None
            named = "truncated" if rounded is numerics.cut else "as with bfloat16"
            assert (named in difference.pattern) == (precision == "tf32")


@pytest.mark.parametrize("seed", range(4))
def test_cut_pixels_are_told_though_weights_are_rounded(seed):
    """Is the lesson's exercise refused, by its reason, if its one number is not rounded, and right if it is?"""
    read = problem.read(KERNELS_REF / "conv2d_tensor_core" / "model.py")
    case = next(case for case in read.cases() if case.name == "nothing cancels")
    instance = read.instantiate(case, seed=seed)
    answers = instance.expected(), instance.eager(), case, instance.noise(instance.expected())
    (x,), layer = instance.inputs, instance.model.conv
    assert tolerance.compare(numerics.conv(x, layer, numerics.tf32), *answers) is None
    difference = tolerance.compare(numerics.conv(numerics.cut(x), layer, numerics.tf32), *answers)
    assert difference is not None and difference.pattern is not None
    assert difference.reason == "low_precision" and "truncated" in difference.pattern


def test_a_million_elements_take_little_time():
    """Does the comparison keep pace with short kernels? (about 0.05 s of one core; more while memory is busy)"""
    y, e = right((16, 16, 64, 64))
    noise = torch.full_like(e, 1e-8)
    best = min(_seconds(lambda: tolerance.compare(e, y, e, None, noise)) for _ in range(10))
    assert best < 0.2


def _seconds(call):
    start = time.process_time()
    call()
    return time.process_time() - start


@pytest.mark.gpu
def test_tensors_on_a_gpu_are_compared_there():
    """Is the word the same for tensors on a GPU?"""
    y, e = right()
    y, e = y.cuda(), e.cuda()
    assert tolerance.compare(e, y, e) is None
    got = e.clone()
    got[:, 3] = 0
    assert tolerance.compare(got, y, e).pattern == "only channel 3, zero"


@pytest.mark.parametrize(
    ("changed", "pattern"),
    [
        (lambda y: y.index_fill(1, torch.tensor([2]), 0), "only head 2, zero"),
        (lambda y: y * torch.rand(1, 4, 1, 1), "scaled by one factor per head"),
        (lambda y: y.flip(2), "tokens are in reverse order"),
        (lambda y: torch.where((torch.arange(7) == 6)[:, None], 9.0, y), "last token, each 9"),
    ],
)
def test_dimensions_have_the_problems_own_names(changed, pattern):
    """Are an output's dimensions called as the problem's AXES says, also in the map, and else as a convolution's?"""
    y = torch.randn(2, 4, 7, 8)
    case = Case("", axes=("batch item", "head", "token", "feature"))
    difference = tolerance.compare(changed(y), y.double(), y, case)
    assert difference.pattern == pattern and difference.wrong.axes == [*case.axes]
    usual = tolerance.compare(changed(y), y.double(), y)
    assert usual.pattern == pattern.replace("head", "channel").replace("token", "row") and not usual.wrong.axes
    other = tolerance.compare(y[0].flip(1), y[0].double(), y[0], case)  # three dimensions
    assert other.pattern == "rows are in reverse order" and not other.wrong.axes


def test_a_tolerance_is_that_of_the_tensors_as_they_are():
    """Is it computed once for the same tensors, and anew for others, other values, and another precision?"""
    expected = torch.linspace(1, 2, 64, dtype=torch.float64)
    eager = expected.float()
    first = tolerance._find_tolerance(expected, eager, 16, None, "fp32")
    assert tolerance._find_tolerance(expected, eager, 16, None, "fp32") is first
    wider = tolerance._find_tolerance(expected, eager, 64, None, "fp32")
    assert torch.equal(wider, tolerance.tolerance(expected, eager, 64)) and bool((wider > first).all())
    other = eager + 1e-3
    assert torch.equal(
        tolerance._find_tolerance(expected, other, 64, None, "fp32"), tolerance.tolerance(expected, other, 64)
    )
    expected.mul_(2)
    again = tolerance._find_tolerance(expected, other, 64, None, "fp32")
    assert torch.equal(again, tolerance.tolerance(expected, other, 64)) and not torch.equal(again, wider)


def test_small_outputs_are_compared_on_one_core_and_the_threads_come_back():
    torch.set_num_threads(2)
    for elements, threads in ((10, 1), (2**23, 2)):
        with one_core(elements):
            assert torch.get_num_threads() == threads
            with one_core(elements):
                assert torch.get_num_threads() == threads
        assert torch.get_num_threads() == 2
    with pytest.raises(ZeroDivisionError), one_core(10):
        raise ZeroDivisionError
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize(
    "grid, block, pattern",
    [
        ((2, 1, 1), (128, 1, 1), "elements 256 and up, past the 2 blocks of 128 threads, zero"),
        ((1, 1, 1), (16, 16, 1), "elements 256 and up, past the only block, of 256 threads, zero"),
        ((4, 1, 1), (128, 1, 1), "elements 256 and up, zero"),
        ((2, 2, 1), (64, 1, 1), "elements 256 and up, zero"),
    ],
)
def test_a_tail_that_no_block_covers(grid, block, pattern):
    """Are the launch's own blocks named, and none where they do not end where the wrong elements begin?"""
    expected = torch.arange(1.0, 301.0).view(10, 30)
    got = expected.clone()
    got.view(-1)[256:] = 0
    difference = tolerance.compare(got, expected.double(), expected)
    assert difference is not None
    finding = findings.of_difference(difference, [protocol.Launch("k", grid, block)])
    assert finding.evidence[0].pattern == pattern and f"({pattern})" in finding.message
