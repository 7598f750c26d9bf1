"""How fast a core of this machine is now, so that a limit on processor time holds on slow and shared machines, too."""

import time

LOOP_S = 0.045  # the loop's time on a core for which limits are given: chosen, about that of a current desktop


def measure_pace() -> float:
    """Return how many times as long as on that core a loop of plain Python takes here, on average over 2 s."""
    times = []
    while sum(times) < 2:
        times.append(_time_loop())
    return sum(times) / len(times) / LOOP_S


def _time_loop() -> float:
    begun, kept = time.process_time(), {}
    for number in range(300_000):
        kept[number % 1000] = f"{number}a"
    return time.process_time() - begun
