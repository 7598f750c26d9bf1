// Stands in for thrust's thrust/memory.h.
#pragma once
#include <simt/thrust.h>
