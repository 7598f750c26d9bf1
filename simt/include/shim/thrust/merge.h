// Stands in for thrust's thrust/merge.h.
#pragma once
#include <simt/thrust.h>
