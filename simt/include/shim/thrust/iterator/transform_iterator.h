// Stands in for thrust's thrust/iterator/transform_iterator.h.
#pragma once
#include <simt/thrust.h>
