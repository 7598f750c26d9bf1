"""The untrusted side and the wall around it: what runs a submission, and how the judge talks with it."""
