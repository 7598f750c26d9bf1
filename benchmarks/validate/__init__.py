"""Compare simt and the kernels with hardware and with labelled programs."""
