// Stands in for thrust's thrust/replace.h.
#pragma once
#include <simt/thrust.h>
