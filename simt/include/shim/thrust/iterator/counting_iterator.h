// Stands in for thrust's thrust/iterator/counting_iterator.h.
#pragma once
#include <simt/thrust.h>
