// Stands in for thrust's thrust/iterator/reverse_iterator.h.
#pragma once
#include <simt/thrust.h>
