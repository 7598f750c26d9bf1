# There is nothing in this file but comments.

# TODO: write ModelNew
