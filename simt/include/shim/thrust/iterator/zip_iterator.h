// Stands in for thrust's thrust/iterator/zip_iterator.h.
#pragma once
#include <simt/thrust.h>
