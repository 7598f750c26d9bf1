// Stands in for thrust's thrust/iterator/discard_iterator.h.
#pragma once
#include <simt/thrust.h>
