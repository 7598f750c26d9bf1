"""What instructors make: problems and handouts."""
