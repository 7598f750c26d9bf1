// Stands in for thrust's thrust/iterator/iterator_traits.h.
#pragma once
#include <simt/thrust.h>
