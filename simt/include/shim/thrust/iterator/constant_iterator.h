// Stands in for thrust's thrust/iterator/constant_iterator.h.
#pragma once
#include <simt/thrust.h>
