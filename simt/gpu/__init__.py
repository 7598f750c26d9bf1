"""load_inline on a GPU in seconds: device code goes to NVRTC, host code to the C++ compiler, both at once."""
