"""Lint a problem: find wrong results that its cases would let pass."""
