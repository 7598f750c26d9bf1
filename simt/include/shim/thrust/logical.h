// Stands in for thrust's thrust/logical.h.
#pragma once
#include <simt/thrust.h>
