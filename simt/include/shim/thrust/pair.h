// Stands in for thrust's thrust/pair.h.
#pragma once
#include <simt/thrust.h>
