"""Compilers, their cache, and what is read from what they built."""
