// Stands in for CUDA's cuda_pipeline.h.
#pragma once
#include <simt/pipeline.h>
