// Stands in for thrust's thrust/version.h.
#pragma once
#include <simt/thrust.h>
