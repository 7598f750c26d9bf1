// Stands in for thrust's thrust/scan.h.
#pragma once
#include <simt/thrust.h>
