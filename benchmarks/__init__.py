"""Scripts that validate simt against hardware, time the course, and publish the figures. README.md lists them."""
