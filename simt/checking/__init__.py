"""Findings of the checks: collecting, ordering and describing them."""
