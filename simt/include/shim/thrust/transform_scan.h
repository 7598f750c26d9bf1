// Stands in for thrust's thrust/transform_scan.h.
#pragma once
#include <simt/thrust.h>
