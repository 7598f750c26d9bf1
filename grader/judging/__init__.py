"""Grading: the stages that a submission goes through, and what they share."""
