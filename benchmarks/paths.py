"""Paths that the scripts share."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BENCHMARKS = ROOT / "benchmarks"
DATA_FOLDER = BENCHMARKS / "data"
MICRO = BENCHMARKS / "micro"
UNSEEN = BENCHMARKS / "unseen"
README = BENCHMARKS / "README.md"
