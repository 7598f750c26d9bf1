// Stands in for thrust's thrust/execution_policy.h.
#pragma once
#include <simt/thrust.h>
