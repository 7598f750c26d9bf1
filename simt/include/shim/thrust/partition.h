// Stands in for thrust's thrust/partition.h.
#pragma once
#include <simt/thrust.h>
