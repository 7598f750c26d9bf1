"""scan: a copy of the vector, which moves the bytes that a scan must move, and computes nothing."""


def prepare_copy(model, *inputs):
    """Return a function that copies x (length,)."""
    return lambda x: x.clone()


ANCHORS = {"a copy": prepare_copy}
