// Stands in for CUDA's cuda_pipeline_primitives.h.
#pragma once
#include <simt/pipeline.h>
