"""grader.guess: is a reader told whether the guess was right, and what is?"""

import pytest

import grader


@pytest.mark.parametrize(
    ("said", "truth", "unit", "within", "told"),
    [
        (None, 32, "sectors", 0, "No guess yet: write one in the cell and run it again. It is 32 sectors."),
        (32, 32, "sectors", 0, "Your guess is right: 32 sectors."),
        (8, 32, "sectors", 0, "You guessed 8 sectors. It is 32 sectors, 4 times as much."),
        (64, 32, "sectors", 0, "You guessed 64 sectors. It is 32 sectors, half as much."),
        (96, 32, "sectors", 0, "You guessed 96 sectors. It is 32 sectors, a third as much."),
        (320, 32, "", 0, "You guessed 320. It is 32, 10 times less."),
        (30, 32, "", 0, "You guessed 30. It is 32."),
        (0, 32, "", 0, "You guessed 0. It is 32."),
        (1.0, 1.05, "ms", 0.1, "Your guess is near enough: it is 1.05 ms, and you guessed 1 ms."),
        ("DRAM", "DRAM", "", 0, "Your guess is right: DRAM."),
        ("dram ", "DRAM", "", 0, "Your guess is right: DRAM."),
        ("L2", "DRAM", "", 0, "You guessed L2. It is DRAM."),
        ("many", 32, "sectors", 0, "Your guess 'many' is not a number. It is 32 sectors."),
        (float("nan"), 32, "", 0, "Your guess 'nan' is not a number. It is 32."),
        (float("inf"), 32, "", 0, "Your guess 'inf' is not a number. It is 32."),
        (10**400, 32, "", 0, f"Your guess '1{'0' * 39}…' is not a number. It is 32."),
        (1e308, 32, "", 0, "You guessed 1e+308. It is 32, 3.13e+306 times less."),
        ("1,000", 1000, "sectors", 0, "Your guess is right: 1,000 sectors."),
        (0.1 + 0.2, 0.3, "", 0, "Your guess is right: 0.3."),
        (1.1, 1.0, "ms", 0.1, "Your guess is near enough: it is 1 ms, and you guessed 1.1 ms."),
        ("\x1b[31mL2", "DRAM", "", 0, "You guessed �[31mL2. It is DRAM."),
        (type("Odd", (), {"__str__": lambda self: 1 / 0})(), 32, "", 0, "Your guess 'Odd' is not a number. It is 32."),
        (1_000_000, 2_000_000, "", 0, "You guessed 1,000,000. It is 2,000,000, 2 times as much."),
        ([1], 32, "", 0, "Your guess '[1]' is not a number. It is 32."),
    ],
)  # fmt: skip
def test_words(capsys, said, truth, unit, within, told):
    grader.guess(said, truth, unit, within)
    assert capsys.readouterr().out == told + "\n"
