// Stands in for thrust's thrust/gather.h.
#pragma once
#include <simt/thrust.h>
