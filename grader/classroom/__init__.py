"""Grade a class: a folder with course.toml, what was handed in, and the grades."""
