"""Time builds, kernels, lessons and gradings."""
