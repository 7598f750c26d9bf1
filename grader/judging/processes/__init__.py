"""Gradings in processes of their own."""
