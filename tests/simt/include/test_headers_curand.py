"""cuRAND: known answers, generators in Python as published, torch's Philox, and distributions; programs that use it."""

import itertools
import math

import numpy as np
import pytest
import torch

import simt as simt_package
from tests.sample import sample
from tests.simt.cli.conftest import compiled_before, simt  # noqa: F401
from tests.simt.cli.sources import line_of
from tests.simt.include.curand_kernels import FILLED, MRG, PHILOX, PI, XORWOW, load, mrg, xorwow

pytestmark = pytest.mark.slow  # kernels with these headers take long to compile

TYPES = {XORWOW: 101, PHILOX: 161, MRG: 121}  # curandRngType's numbers
BITS, UNIFORM, UNIFORM_DOUBLE, NORMAL, NORMAL_DOUBLE, LOG_NORMAL, LOG_NORMAL_DOUBLE, POISSON = range(8)
DTYPES = (torch.int32, torch.float32, torch.float64, torch.float32, torch.float64, torch.float32, torch.float64)

# Seed, subsequence and offset.
PLACES = [(0, 0, 0), (1234, 1, 0), (1234, 77, 3), (2**63 + 12345, 65535, 1000003), (2**64 - 1, 2**40 + 9, 2**63 + 5)]


def signed(x: int) -> int:
    return x - 2**64 if x >= 2**63 else x


def start(place, skips=(), sequences=0) -> torch.Tensor:
    numbers = [*place, *skips, *[0] * (4 - len(skips)), sequences]
    return torch.tensor([signed(x) for x in numbers])


def bits(kind: int, place, n: int = 20, skips=(), sequences: int = 0) -> list[int]:
    out = torch.empty(n, dtype=torch.int64)
    load().bits(kind, start(place, skips, sequences), out)
    return out.tolist()


def generate(kind: int, what: int, n: int, a: float = 0, b: float = 1, offset: int = 0) -> np.ndarray:
    """Generate by the host functions, with the seed 1234."""
    out = torch.empty(n, dtype=(*DTYPES, torch.int32)[what])
    assert load().create(TYPES[kind], 1234, offset) == 0
    assert load().generate(what, out, a, b) == 0
    assert load().destroy() == 0
    return out.numpy().view(np.uint32) if out.dtype == torch.int32 else out.numpy()


# ---- 32-bit numbers of the device functions ----


@pytest.mark.parametrize(
    "key, counter, words",
    [
        (0, 0, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        (2**64 - 1, 2**128 - 1, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (0x299F31D0A4093822, 0x0370734413198A2E85A308D3243F6A88, "d16cfe09 94fdcceb 5001e420 24126ea1"),
    ],
)
def test_philox_gives_the_known_answers(key, counter, words):
    """Are these Random123's published vectors of philox4x32-10? An offset counts numbers, four for each counter."""
    low, high = counter % 2**64, counter >> 64
    quarter = low // 4 * 4
    skips = (quarter, quarter, quarter, (low - quarter) * 4)
    assert bits(PHILOX, (key, high, quarter), 4, skips) == [int(word, 16) for word in words.split()]


@pytest.mark.parametrize("place", PLACES)
def test_philox_is_torchs(place):
    """Does torch's engine give the same words? Its offset counts fours."""
    seed, subsequence, offset = place
    want = torch.empty(24, dtype=torch.int64)
    load().torch_philox(signed(seed), signed(subsequence), offset // 4, want)
    assert bits(PHILOX, place) == want[offset % 4 :][:20].tolist()


@pytest.mark.parametrize("place", PLACES)
def test_xorwow_is_marsaglias(place):
    """Do the numbers after jumps equal those of a generator in Python? A subsequence has 2^67 numbers."""
    seed, subsequence, offset = place
    at = subsequence * 2**67 + offset
    assert bits(XORWOW, place) == list(itertools.islice(xorwow(seed, at), 20))
    later = itertools.islice(xorwow(seed, at + 12345 + 3 * 2**67), 20)
    assert bits(XORWOW, place, 20, (12000, 345), 3) == list(later)


@pytest.mark.parametrize("place", PLACES)
def test_mrg32k3a_is_lecuyers(place):
    """The same for MRG32k3a, whose subsequences have 2^76 numbers, and its sequences 2^127."""
    seed, subsequence, offset = place
    at = subsequence * 2**76 + offset
    want = [min(int(x * 1.000000048662), 2**32 - 1) for x in itertools.islice(mrg(seed, at), 20)]
    assert bits(MRG, place) == want
    later = itertools.islice(mrg(seed, at + 12345 + 3 * 2**127), 20)
    assert bits(MRG, place, 20, (12345,), 3) == [min(int(x * 1.000000048662), 2**32 - 1) for x in later]


def test_mrg32k3a_begins_as_rngstreams():
    """Are the first numbers, and the state of the second stream, those that L'Ecuyer published for RngStreams?"""
    out = torch.empty(1, 10, dtype=torch.float64)
    load().values(MRG, start((0, 0, 0)), 10.0, out)
    assert out[0, :2].tolist() == pytest.approx([0.127011122046577, 0.318527565396179], abs=3e-8)
    state = torch.empty(6, dtype=torch.int64)
    load().jumped(state)
    assert state.tolist() == [3692455944, 1366884236, 2968912127, 335948734, 4161675175, 475798818]


# ---- what is made of them ----


def to_double(x, y):
    return (x ^ y << 21) * 2.0**-53 + 2.0**-54


def box_muller(u, angle):
    radius = math.sqrt(-2 * math.log(u))
    return math.sin(angle) * radius, math.cos(angle) * radius


@pytest.mark.parametrize("kind", [XORWOW, PHILOX])
def test_values_follow_the_documented_formulas(kind):
    """Do uniform numbers equal the formulas to the bit, and normal ones closely, from the same 32-bit numbers?"""
    place, n = (42, 7, 2), 50
    words = iter(bits(kind, place, 40 * n + 1000))
    out = torch.empty(n, 10, dtype=torch.float64)
    load().values(kind, start(place), 5000.0, out)
    kept, kept_double = [], []

    def normal():
        x, y = next(words), next(words)
        return box_muller(x * 2.0**-32 + 2.0**-33, (y + 0.5) * 2.0**-32 * 2 * math.pi)

    def normal_double():
        x = [next(words) for _ in range(4)]
        return box_muller(to_double(x[0], x[1]), to_double(x[2], x[3]) * 2 * math.pi)

    for row in out.tolist():
        assert row[0] == np.float32(next(words)) * np.float32(2.0**-32) + np.float32(2.0**-33)
        x = next(words)
        assert row[1] == (x * 2.0**-32 + 2.0**-32 if kind == PHILOX else to_double(x, next(words)))
        kept = kept or list(normal())
        kept_double = kept_double or list(normal_double())
        want = [kept.pop(0), kept_double.pop(0), *normal(), *normal_double(), math.exp(0.5 + 0.25 * normal()[1])]
        assert row[2:9] == pytest.approx(want, rel=1e-4, abs=1e-5)
        kept_double = kept_double or list(normal_double())
        assert abs(row[9] - (5000 + math.sqrt(5000) * kept_double.pop(0))) <= 0.51


def test_uniform_numbers_of_mrg32k3a():
    """Are they the published formula's?"""
    numbers = mrg(42, 7 * 2**76 + 2)
    out = torch.empty(1, 10, dtype=torch.float64)
    load().values(MRG, start((42, 7, 2)), 10.0, out)
    unit = 2.3283065498378288e-10
    assert out[0, :2].tolist() == [np.float32(next(numbers) * unit), next(numbers) * unit]
    u, v = next(numbers) * unit, next(numbers) * unit
    assert out[0, 2].item() == pytest.approx(box_muller(u, v * 2 * math.pi)[0], abs=1e-5)


@pytest.mark.parametrize("offset", range(4))
def test_four_at_a_time(offset):
    """Do the functions that return four take the numbers in order, whatever was used of the first four?"""
    out = torch.empty(22, dtype=torch.float64)
    load().fours(start((9, 8, offset)), out)
    words = bits(PHILOX, (9, 8, offset), 20)
    assert out[:4].tolist() == words[:4]
    assert out[4:8].tolist() == [np.float32(w) * np.float32(2.0**-32) + np.float32(2.0**-33) for w in words[4:8]]
    normals = [
        z
        for x, y in zip(words[8:16:2], words[9:16:2], strict=True)
        for z in box_muller((x + 0.5) * 2.0**-32, (y + 0.5) * 2.0**-32 * 2 * math.pi)
    ]
    want = [*normals[:4], *(math.exp(0.5 + 0.25 * z) for z in normals[4:])]
    assert out[8:16].tolist() == pytest.approx(want, rel=1e-4, abs=1e-5)
    assert out[16:18].tolist() == [to_double(*words[16:18]), to_double(*words[18:20])]


def test_the_second_of_a_pair_is_kept_for_the_same_function():
    out = torch.empty(6, dtype=torch.float64)
    load().pairs(out)
    words = bits(XORWOW, (5, 0, 0), 8)
    pairs = [
        box_muller((x + 0.5) * 2.0**-32, (y + 0.5) * 2.0**-32 * 2 * math.pi)
        for x, y in zip(words[::2], words[1::2], strict=True)
    ]
    want = [*pairs[0], *pairs[1], math.exp(pairs[2][0]), pairs[3][0]]
    assert out.tolist() == pytest.approx(want, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("mean", [0.5, 20.0, 64.0, 700.0, 3999.0, 9000.0])
def test_poisson_numbers_have_their_mean_and_variance(kind, mean):
    n = 4000
    out = torch.empty(n, 10, dtype=torch.float64)
    load().values(kind, start((3, 0, 0)), mean, out)
    device, host = out[:, 9].numpy(), generate(kind, POISSON, n, mean).astype(float)
    for numbers in (device, host):
        assert abs(numbers.mean() - mean) < 4 * math.sqrt(mean / n)
        assert numbers.var() == pytest.approx(mean, rel=0.15)


# ---- the host functions ----


@pytest.mark.parametrize(
    "kind, words",
    [
        (XORWOW, "253d5e15 d1f7605a 8ce6f6f8 4b79ff67 ea2bee0d"),
        (PHILOX, "2090b348 da7cf0ab 4401906f cbca470e d115a128"),
        (MRG, "c96891f0 26f0d612 ef269080 fc8fa50e fcef6715"),
    ],
)
def test_host_functions_give_what_the_library_gives(kind, words):
    """Are the first numbers those of curandCreateGeneratorHost of cuRAND 10.4.0, which needs no GPU?"""
    assert [f"{word:08x}" for word in generate(kind, BITS, 5)] == words.split()


@pytest.mark.parametrize("kind, lanes, group", [(XORWOW, 4096, 1), (PHILOX, 65536, 4), (MRG, 81920, 1)])
def test_lanes_take_turns(kind, lanes, group):
    """Is a result that of its lane, an offset a number of results, and a call the continuation of the one before?"""
    n = 2 * lanes * group + 10
    words = generate(kind, BITS, n)
    for i in (0, 1, 5, group * lanes - 1, group * lanes, group * lanes + 7, n - 1):
        turn, part = divmod(i, group)
        want = bits(kind, (1234, turn % lanes, turn // lanes * group + part), 1)
        assert words[i] == want[0]
    for offset in (3, group * lanes + 5):
        assert (generate(kind, BITS, 100, offset=offset) == words[offset : offset + 100]).all()
    first, rest = torch.empty(7, dtype=torch.int32), torch.empty(90, dtype=torch.int32)
    load().create(TYPES[kind], 1234, 0)
    for out in (first, rest):
        load().generate(BITS, out, 0, 0)
    load().destroy()
    assert (torch.cat([first, rest]).numpy().view(np.uint32) == words[:97]).all()


def find_distance(sample: np.ndarray, distribution) -> float:
    """Return Kolmogorov and Smirnov's distance, in units in which one of 1000 samples exceeds 1.95."""
    n = len(sample)
    p = distribution(torch.from_numpy(np.sort(sample.astype(np.float64)))).numpy()
    steps = np.arange(n + 1) / n
    return max((steps[1:] - p).max(), (p - steps[:-1]).max()) * math.sqrt(n)


@pytest.mark.parametrize("kind", TYPES)
def test_the_distributions(kind):
    """Have 100,000 numbers the mean, the variance and the distribution that they should have?"""
    n = 100000
    for what in (UNIFORM, UNIFORM_DOUBLE):
        x = generate(kind, what, n)
        assert x.min() > 0 and x.max() <= 1
        assert x.mean() == pytest.approx(0.5, abs=0.004) and x.var() == pytest.approx(1 / 12, rel=0.02)
        assert find_distance(x, lambda v: v) < 1.95
    for normal, log_normal in ((NORMAL, LOG_NORMAL), (NORMAL_DOUBLE, LOG_NORMAL_DOUBLE)):
        x = generate(kind, normal, n, 3, 2)
        assert x.mean() == pytest.approx(3, abs=0.03) and x.std() == pytest.approx(2, rel=0.02)
        assert find_distance(x, lambda v: torch.special.ndtr((v - 3) / 2)) < 1.95
        assert np.log(generate(kind, log_normal, n, 3, 2)) == pytest.approx(x, abs=1e-4)
    words = generate(kind, BITS, n)
    assert find_distance(words, lambda v: v / 2**32) < 1.95
    assert abs(np.unpackbits(words.view(np.uint8)).mean() - 0.5) < 0.002


def test_statuses():
    """Is each wrong call answered with the library's number?"""
    module = load()
    assert module.create(141, 1, 0) == 103  # CURAND_STATUS_TYPE_ERROR: MTGP32
    assert module.create(101, 1, 0) == 0
    odd = torch.empty(7)
    assert module.generate(NORMAL, odd, 0, 1) == 105  # CURAND_STATUS_LENGTH_NOT_MULTIPLE
    assert module.generate(POISSON, odd.to(torch.int32), -1, 0) == 104  # CURAND_STATUS_OUT_OF_RANGE
    assert module.order(103) == 0 and module.order(102) == 104
    module.destroy()
    assert module.create(161, 1, 0) == 0 and module.generate(NORMAL, odd, 0, 1) == 0
    module.destroy()


@pytest.mark.slow
def test_an_extension_is_checked():
    """Does a checked run of the extension find nothing, and give the same numbers?"""
    want = bits(XORWOW, PLACES[2])
    with simt_package.check() as report:
        assert bits(XORWOW, PLACES[2]) == want
        bits(MRG, PLACES[2])
        bits(PHILOX, PLACES[2])
    assert not report.findings, report.text()


# ---- programs ----

STATES = sample(["curandState", "curandStatePhilox4_32_10_t", "curandStateMRG32k3a_t"], ["curandState"])


@pytest.mark.parametrize("state", STATES)
def test_a_program_that_estimates_pi(simt, state):  # noqa: F811
    """Does it run as it is, does no check find anything, and do the counters see the states?"""
    source = PI.replace("INDEX", "i").replace("STATE", state)
    done = simt("run", "pi.cu", files={"pi.cu": source})
    assert float(done.stdout) == pytest.approx(math.pi, abs=0.02), done.stderr
    assert simt("check", "pi.cu").returncode == 0
    counted = simt("count", "pi.cu").stderr
    assert f"pi.cu:{line_of(source, '// loads')}: global loads 32.00 sectors per request" in counted


@pytest.mark.parametrize("state", STATES)
def test_states_that_curand_init_never_saw(simt, state):  # noqa: F811
    """Are reads of them errors, at the lines that use them?"""
    source = PI.replace("INDEX", "i").replace("STATE", state)
    done = simt("check", "-DFORGET", "pi.cu", files={"pi.cu": source})
    assert done.returncode == 1
    line = line_of(source, "// loads")
    assert f"uninitialized: pi.cu, line {line}, kernel count_inside" in done.stderr
    assert "of `states`, which was never written" in done.stderr


@pytest.mark.parametrize("state", STATES)
def test_threads_that_share_a_state(simt, state):  # noqa: F811
    """Is it a race that the threads of a block use one state, and none that each has its own?"""
    source = PI.replace("INDEX", "blockIdx.x").replace("STATE", state)
    done = simt("check", "pi.cu", files={"pi.cu": source})
    assert done.returncode == 1
    assert f"race: pi.cu, line {line_of(source, '// uses')}, kernel add_noise" in done.stderr


def test_a_program_that_calls_the_host_functions(simt):  # noqa: F811
    """Do they fill device memory, and is a count beyond its end a finding of the caller's line?"""
    done = simt("check", "fill.cu", files={"fill.cu": FILLED.replace("COUNT", "100")})
    assert (done.stdout, done.returncode) == ("0 0.290935 1.640362\n", 0), done.stderr
    done = simt("check", "fill.cu", files={"fill.cu": FILLED.replace("COUNT", "101")})
    assert done.returncode == 1
    line = line_of(FILLED, "// fills")
    assert f"out_of_bounds: fill.cu, line {line}" in done.stderr and "curandGenerateUniform" in done.stderr
