// Stands in for thrust's thrust/transform.h.
#pragma once
#include <simt/thrust.h>
