"""Random kernels in which threads share elements: does the check report those with a race, and no other?

Each kernel is made twice, as CUDA C++ and as Python, which takes down who accesses what between which barriers. Two
accesses of different threads race if one writes, not both are atomic, and no barrier lies between them; what different
blocks do is ordered by nothing.
"""

import json
import random
from collections import defaultdict

import pytest

from tests.simt.cli.sources import CHECK

SOUND, RACES, BLOCKS, THREADS, ELEMENTS = 24, 8, 2, 48, 64


class Thread:
    """A thread's place and the values of its loops' counters. barriers: how many it has passed."""

    def __init__(self, block: int, thread: int, log):
        self.known = {"t": thread, "b": block}
        self.barriers, self.log = 0, log

    def access(self, array: str, index: int, kind: str, value: int = 0) -> None:
        block, thread = self.known["b"], self.known["t"]
        place = (array, index) if array == "global" else (array, index, block)
        self.log[place].append((block, thread, self.barriers, kind, value))


class Maker:
    """Makes statements, each as C++ text and as a function of a Thread."""

    def __init__(self, dice: random.Random):
        self.dice, self.loops, self.values = dice, [], iter(range(10, 10**6, 1000))

    def index(self):
        one, some = self.dice.choice(("t", "t", "t", *self.loops)), self.dice.randrange(1, ELEMENTS)
        return self.dice.choice(
            (
                (one, lambda at: at.known[one]),
                (f"({one} + {some}) % {ELEMENTS}", lambda at: (at.known[one] + some) % ELEMENTS),
                (f"{ELEMENTS - 1} - {one}", lambda at: ELEMENTS - 1 - at.known[one]),
                (f"{one} * 5 % {ELEMENTS}", lambda at: at.known[one] * 5 % ELEMENTS),
                (f"{one} / 2", lambda at: at.known[one] // 2),
                (str(some), lambda at: some),
            )
        )

    def access(self):
        array, (text, index), kind = self.dice.choice(("shared", "global")), self.index(), self.dice.randrange(5)
        element = f"{array}_[{text}]"
        if array == "global" and self.dice.random() < 0.8:  # an element that no other block has
            within, element = index, f"global_[b * {ELEMENTS} + {text}]"
            index = lambda at: at.known["b"] * ELEMENTS + within(at)  # noqa: E731
        if kind < 2:
            first, own = next(self.values), self.dice.random() < 0.7
            value = f"{first} + t + b * {THREADS}" if own else str(first)

            def write(at: Thread) -> None:
                known = at.known["t"] + at.known["b"] * THREADS
                at.access(array, index(at), "write", first + (known if own else 0))

            return f"{element} = {value};", write
        if kind < 4:
            return f"sum += {element};", lambda at: at.access(array, index(at), "read")
        return f"atomicAdd(&{element}, {next(self.values)});", lambda at: at.access(array, index(at), "atomic")

    def condition(self):
        number = self.dice.randrange(1, 40)
        return self.dice.choice(
            (
                (f"t < {number}", lambda at: at.known["t"] < number),
                (f"t % 3 == {number % 3}", lambda at: at.known["t"] % 3 == number % 3),
                (f"t == {number}", lambda at: at.known["t"] == number),
                (f"b == {number % 2}", lambda at: at.known["b"] == number % 2),
            )
        )

    def statement(self, depth: int, uniform: bool):
        kind = self.dice.randrange(9 if depth else 6)
        if kind < 4:
            return self.access()
        if kind < 6:
            if not uniform:
                return self.access()

            def wait(at: Thread) -> None:
                at.barriers += 1

            return "__syncthreads();", wait
        if kind == 6:
            (text, holds), (yes, do) = self.condition(), self.block(depth - 1, False)
            return f"if ({text}) {{ {yes} }}", lambda at: do(at) if holds(at) else None
        counter, turns = f"i{len(self.loops)}", self.dice.randrange(1, 4)
        self.loops.append(counter)
        text, do = self.block(depth - 1, uniform)
        self.loops.pop()

        def loop(at: Thread) -> None:
            for at.known[counter] in range(turns):
                do(at)

        return f"for (int {counter} = 0; {counter} < n - {3 - turns}; ++{counter}) {{ {text} }}", loop

    def block(self, depth: int, uniform: bool):
        made = [self.statement(depth, uniform) for _ in range(self.dice.randrange(1, 6))]

        def run(at: Thread) -> None:
            for _, do in made:
                do(at)

        return " ".join(text for text, _ in made), run


def has_race(run) -> tuple[bool, int]:
    """Return whether two accesses race, and how many elements several threads access."""
    log = defaultdict(list)
    for block in range(BLOCKS):
        for thread in range(THREADS):
            run(Thread(block, thread, log))
    together = sum(len({(block, thread) for block, thread, *_ in one}) > 1 for one in log.values())
    for accesses in log.values():
        for i, (block, thread, barriers, kind, _) in enumerate(accesses):
            for other_block, other_thread, others, other_kind, _ in accesses[:i]:
                if (block, thread) == (other_block, other_thread) or (block == other_block and barriers != others):
                    continue
                if "write" in (kind, other_kind) or (kind != other_kind and "atomic" in (kind, other_kind)):
                    return True, together
    return False, together


def make_kernels(dice: random.Random) -> list[tuple[str, bool]]:
    """Return the bodies of kernels and whether each has a race. In the sound ones threads share elements."""
    made: dict[bool, list[str]] = {False: [], True: []}
    while len(made[False]) < SOUND or len(made[True]) < RACES:
        text, run = Maker(dice).block(2, True)
        race, together = has_race(run)
        if len(made[race]) < (RACES if race else SOUND) and (race or together >= 8):
            made[race].append(text)
    return [(text, race) for race, texts in made.items() for text in texts]


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 8))])
def test_races(simt, tmp_path, seed):
    made = make_kernels(random.Random(seed))
    kernels = "".join(
        f"__global__ void k{i}(int* global_, int* out, int n) {{\n  const int t = threadIdx.x, b = blockIdx.x;\n"
        f"  __shared__ int shared_[{ELEMENTS}];\n  for (int i = t; i < {ELEMENTS}; i += {THREADS}) shared_[i] = i;\n"
        f"  int sum = 0;\n  __syncthreads();\n  {text}\n  __syncthreads();\n"
        f"  out[b * {THREADS} + t] = sum + shared_[t];\n}}\n"
        for i, (text, _) in enumerate(made)
    )
    launches = "".join(f"  k{i}<<<{BLOCKS}, {THREADS}>>>(x, out, 3);\n" for i in range(len(made)))
    size = BLOCKS * ELEMENTS * 4
    main = (
        f"int main() {{\n  int *x, *out;\n  CHECK(cudaMalloc(&x, {size}));\n  CHECK(cudaMalloc(&out, {size}));\n"
        f"  CHECK(cudaMemset(x, 0, {size}));\n{launches}"
        "  CHECK(cudaDeviceSynchronize());\n  CHECK(cudaFree(x));\n  CHECK(cudaFree(out));\n}\n"
    )
    done = simt("check", "--json", "found.json", "a.cu", files={"a.cu": CHECK + kernels + main})
    assert done.returncode in (0, 1), done.stderr
    found = json.loads((tmp_path / "found.json").read_text())["findings"]
    reported = {each["kernel"] for each in found if each["check"] == "race"}
    others = {each["check"] for each in found} - {"race", "schedule"}
    wrong = [
        f"k{i} {'has a race' if race else 'is sound'}: {text}"
        for i, (text, race) in enumerate(made)
        if race != (f"k{i}" in reported)
    ]
    assert not wrong and not others, "\n".join([*wrong, *others])
