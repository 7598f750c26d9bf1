// Stands in for thrust's thrust/sequence.h.
#pragma once
#include <simt/thrust.h>
