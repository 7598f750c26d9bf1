"""Refuse CUDA features that cannot run on a CPU, by their names in the source, before anything is compiled."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from simt.errors import Unsupported
from simt.frontend.source import Source
from simt.frontend.tokens import Token
from simt.frontend.untaken import CONDITIONALS

_INCLUDE = Path(__file__).resolve().parents[1] / "include"
_SHIM = _INCLUDE / "shim"
_DRIVER_HEADER = "simt/cuda_driver.h"

# Headers by the beginning of their names. A header that simt provides is not refused.
_HEADERS = {
    "cub/": "this part of the cub library",
    "thrust/": "this part of the thrust library",
    "cutlass/": "the cutlass library",
    "cute/": "the cute library",
    "cuda/": "this part of libcu++ (cuda/…)",
    "cooperative_groups/": "this part of cooperative groups",
    "curand": "this part of cuRAND",
    "cublas": "cuBLAS",
    "cudnn": "cuDNN",
    "cusparse": "cuSPARSE",
    "cusolver": "cuSOLVER",
    "cufft": "cuFFT",
    "nccl": "NCCL",
    "nvrtc": "compiling at run time (NVRTC)",
    "cuda_fp6": "6-bit floats",
    "cuda_fp4": "4-bit floats",
    "cuda_awbarrier": "barriers in shared memory with __mbarrier_… (cuda::barrier works)",
    "cudaTypedefs": "the CUDA driver API",
    "pybind11/numpy": "NumPy arrays in C++ (pass tensors)",
    "pybind11/eigen": "Eigen's matrices (pass tensors)",
    "cuda_gl_interop": "sharing memory with OpenGL",
}

# Names that CUDA has removed or advises against, and what to write instead.
_INSTEAD = {
    "cudaThreadSynchronize": "cudaDeviceSynchronize()",
    "cudaThreadExit": "cudaDeviceReset()",
    "cudaThreadSetLimit": "cudaDeviceSetLimit()",
    "cudaThreadGetLimit": "cudaDeviceGetLimit()",
    "cudaThreadSetCacheConfig": "cudaDeviceSetCacheConfig()",
    "cudaThreadGetCacheConfig": "cudaDeviceGetCacheConfig()",
    "cudaDeviceBlockingSync": "cudaDeviceScheduleBlockingSync",
    "cudaBindTexture": "cudaCreateTextureObject() with a cudaResourceDesc of type cudaResourceTypeLinear",
    "cudaBindTexture2D": "cudaCreateTextureObject() with a cudaResourceDesc of type cudaResourceTypePitch2D",
    "cudaBindTextureToArray": "cudaCreateTextureObject() with a cudaResourceDesc of type cudaResourceTypeArray",
    "cudaUnbindTexture": "cudaDestroyTextureObject()",
    "cudaBindSurfaceToArray": "cudaCreateSurfaceObject() with a cudaResourceDesc of type cudaResourceTypeArray",
    "cudaConfigureCall": "kernel<<<grid, block>>>(…)",
    "cudaSetupArgument": "kernel<<<grid, block>>>(…)",
    "cudaLaunch": "kernel<<<grid, block>>>(…)",
}

_REFERENCES = {
    "texture references": "a cudaTextureObject_t from cudaCreateTextureObject()",
    "surface references": "a cudaSurfaceObject_t from cudaCreateSurfaceObject()",
}

# Whole names. _find_refused_name tells them from variables of the same name.
_NAMES = {
    "surface": "surface references",
    "texture": "texture references",
    "textureReference": "texture references",
    "cudaMipmappedArray_t": "mipmaps",
    "cudaMipmappedArray": "mipmaps",
    "cudaResourceTypeMipmappedArray": "mipmaps",
    "cudaResourceViewDesc": "views of textures",
    "cudaStreamTailLaunch": "launching from a kernel (dynamic parallelism)",
    "cudaStreamFireAndForget": "launching from a kernel (dynamic parallelism)",
    "this_cluster": "thread block clusters",
    "cluster_group": "thread block clusters",
    "this_multi_grid": "a grid on several GPUs",
    "multi_grid_group": "a grid on several GPUs",
    "cudaGridDependencySynchronize": "programmatic dependent launch",
    "cudaTriggerProgrammaticLaunchCompletion": "programmatic dependent launch",
    "getCurrentCUDABlasHandle": "cuBLAS",
    "bmma_sync": "tensor-core fragments of single bits",
}

_PATTERNS = [
    (re.compile(pattern), what)
    for pattern, what in {
        r"tex(1D|2D|3D|Cubemap)(Layered)?(Lod|Grad)": "mipmaps",
        r"tex2Dgather": "the gather of textures",
        r"surfCubemapLayered(read|write)": "surfaces of layered cubemaps",
        r"cuda\w+Mipmapped\w*": "mipmaps",
        r"cuda((Bind|Unbind)Texture|BindSurface|Get(Texture|Surface)Reference|GetTextureAlignment)\w*": (
            "texture references"
        ),
        r"cudaGraph\w*(MemAlloc|MemFree|Conditional|Event\w*Node|ExternalSemaphore|Attribute|Clone|DebugDot|Params_t)\w*"
        r"|cudaGraph(AddNode|NodeParams|GetEdges|GetRootNodes|DestroyNode|RemoveDependencies|ExecMem\w+|ExecHost\w+)"
        r"|cudaStream(GetCaptureInfo|UpdateCaptureDependencies|BeginCaptureToGraph)\w*": "this part of CUDA graphs",
        r"cudaGraphics\w+": "sharing memory with OpenGL or Direct3D",
        r"cuda(GetParameterBuffer|LaunchDevice)\w*": "launching from a kernel (dynamic parallelism)",
        r"__cluster_\w+|__clusterDim\w*|__clusterIdx\w*": "thread block clusters",
        r"cudaLaunchAttribute(Cluster|Programmatic|LaunchCompletion|DeviceUpdatable|MemSync|Nvlink)\w*": (
            "launches with this attribute (clusters, dependent launches)"
        ),
        r"CUtensorMap\w*|cuTensorMap\w*|cp_async_bulk\w*": "tensor maps and bulk copies (TMA)",
        r"__mbarrier_\w+|__pipeline_arrive_on": "barriers in shared memory with __mbarrier_… (cuda::barrier works)",
        r"__nv_fp[46]\w*|__nv_fp8\w*e8m0|__nv_cvt_\w*(fp[46]|e8m0)\w*|__NV_E(2M1|2M3|3M2|8M0)": (
            "floats of 4 and 6 bits, and scales of 8 (__nv_fp8_e4m3 and __nv_fp8_e5m2 work)"
        ),
        r"curandStateMtgp32(_t)?|CURAND_RNG_PSEUDO_MTGP32|curand(Make)?(MTGP32|Mtgp32)\w*|curand_mtgp32_\w+": (
            "cuRAND's MTGP32, whose parameters are NVIDIA's alone (MT19937, XORWOW, Philox4x32-10 and MRG32k3a work)"
        ),
        r"CURAND_(RNG_QUASI_)?SCRAMBLED_\w+|curandGetScrambleConstants(32|64)": (
            "cuRAND's scrambled direction vectors and its scramble constants"
            " (plain Sobol generators, and curandStateScrambledSobol… with your own vectors and constants, work)"
        ),
        r"curand(_discrete\w*|\w*Distribution\w*|GenerateBinomial\w*|GeneratePoissonMethod)": (
            "cuRAND's discrete distributions other than Poisson's"
        ),
        r"CURAND_ORDERING_PSEUDO_SEEDED": "this order of cuRAND's results",
        r"cublas(Lt|Xt)?[A-Z]\w*|CUBLAS_\w+": "cuBLAS",
        r"cudnn[A-Z]\w*|CUDNN_\w+": "cuDNN",
        r"cusparse[A-Z]\w*": "cuSPARSE",
        r"cusolver[A-Z]\w*": "cuSOLVER",
        r"cufft[A-Z]\w*": "cuFFT",
        r"nccl[A-Z]\w*": "NCCL",
        r"nvrtc[A-Z]\w*": "compiling at run time (NVRTC)",
        r"cu(Init|(Device|Ctx|Module|Mem|Launch|Func|Stream|Event|Link|Library|Kernel)[A-Z]\w*)"
        r"|CU(module|function)": (
            "this part of the CUDA driver API (contexts, memory, streams and events work; launch with <<<>>>)"
        ),
        r"cuda(Memcpy3DPeer\w*|LaunchCooperativeKernelMultiDevice)": "a second GPU",
        r"cudaIpc\w+": "memory that processes share",
        r"cudaMemPool(Export|Import)\w*": "memory that processes share",
        r"__nvvm_\w+": "the compiler's own functions",
    }.items()
]

# Libraries by their namespaces, and the names that work here (None: none of them).
_LIBRARIES: dict[str, tuple[str, re.Pattern | None]] = {
    "thrust": (
        "this part of the thrust library",
        re.compile(
            r"(?!(async|mr|event|future|unique_eager_\w+|universal_\w+|allocate_unique|uninitialized_allocate_unique|"
            r"device_new\w*|device_delete|get_temporary_buffer|return_temporary_buffer|tabulate_output_iterator|"
            r"(make_)?transform_input_output_iterator|input_device_iterator_tag|shuffle\w*|optional|"
            r"(linear_feedback_shift|discard_block|subtract_with_carry|xor_combine)_engine|taus88|ranlux\w+|"
            r"set_\w+_by_key)$)\w+"
        ),
    ),
    "cutlass": ("the cutlass library", None),
    "cute": ("the cute library", None),
    "cub": (
        "this part of the cub library",
        re.compile(
            r"(Warp|Block)(Reduce|Scan)|Block(Load|Store)|BLOCK_(REDUCE|SCAN|LOAD|STORE)_\w+|(Block|Warp)(Reduce|Scan|Load|Store)Algorithm|"
            r"Sum|Difference|Division|Max|Min|ArgMax|ArgMin|KeyValuePair|Equality|Inequality|CTA_SYNC|WARP_SYNC|LaneId|WarpId|Uninitialized|"
            r"Device(Reduce|RunLengthEncode|Scan|Select|Partition|RadixSort|MergeSort|Merge|SegmentedReduce|"
            r"SegmentedRadixSort|SegmentedSort|Histogram|For|Transform|AdjacentDifference|Copy|Memcpy)|DoubleBuffer|"
            r"CachingDeviceAllocator|(Counting|Constant|Transform|CacheModified|ArgIndex)InputIterator|"
            r"(CacheModified|Discard)OutputIterator|__VA_ARGS__|Cache(Load|Store)Modifier|(LOAD|STORE)_\w+"
        ),
    ),
}
# libcu++ shares its namespace with torch's at::cuda and c10::cuda, so this lists the names that do not work.
_LIBCUDACXX = re.compile(
    r"ptx|device|experimental|mr|stream_ref|latch|(counting|binary)_semaphore|annotated_ptr|access_property|apply_access_property|"
    r"associate_access_property|discard_memory|memcpy_async_tx|mdspan"
)


def refuse(source: Source) -> None:
    """Raise Unsupported with every refused name in the source and its line."""
    words = source.code
    found, skip, own = {}, -1, source.macros
    for i, token in enumerate(words):
        if i <= skip or token.kind != "word":
            continue
        if token.text in CONDITIONALS and i and words[i - 1].text == "#":
            skip = _find_line_end(words, i)  # a test of a name does not use it
            continue
        if token.text == "include" and i and words[i - 1].text == "#":
            skip, name = _read_include(words, i)
            what = _find_refused_header(name)
            name = f"#include <{name}>"
        else:
            name, what = _find_refused_name(words, i)
        if token.text in _INSTEAD and token.text not in own and words[i - 1].text not in (".", "->"):
            sentence = f"CUDA has removed this or advises against it. Write {_INSTEAD[token.text]} instead."
            found.setdefault((token.line, sentence), token.text)
        elif what in _REFERENCES:
            instead = f"Pass the kernel {_REFERENCES[what]}."
            sentence = f"CUDA has removed {what}, which cannot run on the CPU either. {instead}"
            found.setdefault((token.line, sentence), name)
        elif what:
            found.setdefault((token.line, f"{what} cannot run on the CPU. Use a GPU, or remove it."), name)
    if found:
        raise Unsupported([source.make_error(line, f"`{name}`: {text}") for (line, text), name in found.items()])


@lru_cache(maxsize=1)
def _list_driver_functions() -> frozenset[str]:
    """Return the names of the functions of CUDA's driver API that simt has."""
    header = (_INCLUDE / _DRIVER_HEADER).read_text(encoding="utf-8")
    return frozenset(re.findall(r"^(?:SIMT_INLINE|inline) CUresult (cu[A-Z]\w*)\(", header, re.MULTILINE))


def _read_include(words: Sequence[Token], i: int) -> tuple[int, str]:
    """Return the index of the last token of the #include directive at i, and the header's name."""
    end = _find_line_end(words, i)
    return end, "".join(t.text for t in words[i + 1 : end + 1]).strip('<>"')


def _find_line_end(words: Sequence[Token], i: int) -> int:
    """Return the index of the last token in the line of the token at i."""
    end = i
    while end + 1 < len(words) and words[end + 1].line == words[i].line:
        end += 1
    return end


def _find_refused_header(name: str) -> str | None:
    if (_SHIM / name).is_file():
        return None
    return next((what for start, what in _HEADERS.items() if name.startswith(start)), None)


def _find_refused_name(words: Sequence[Token], i: int) -> tuple[str, str | None]:
    """Return the name at i as the student wrote it, and the refused feature that it belongs to, or None."""

    def text(j: int) -> str:
        return words[j].text if 0 <= j < len(words) else ""

    name, before, after = text(i), text(i - 1), text(i + 1)
    inside = before == "::" and i >= 2 and words[i - 2].kind == "word"  # in another namespace
    if before in (".", "->"):
        return name, None
    if name in _LIBRARIES:
        what, works = _LIBRARIES[name]
        if after != "::" or inside or (works and works.fullmatch(text(i + 2))):
            return name, None
        return f"{name}::{text(i + 2)}", what
    if name == "cuda" and after == "::" and not inside:
        return f"cuda::{text(i + 2)}", "this part of libcu++ (cuda::…)" if _LIBCUDACXX.fullmatch(text(i + 2)) else None
    if name == "experimental" and before == "::" and text(i - 2) in ("wmma", "nvcuda"):
        return f"{text(i - 2)}::experimental", f"the experimental part of {text(i - 2)}"
    if before == "::" and text(i - 2) == "torch" and name in ("autograd", "nn") and after == "::":
        is_functional = name == "nn" and text(i + 2) == "functional"
        return f"torch::{name}", None if is_functional else _TORCH[name]
    if name == "class_" and before == "::" and text(i - 2) == "torch":
        return "torch::class_", "TorchScript's classes (py::class_ works)"
    if name in ("texture", "surface") and (after != "<" or before == "return" or before in set("(&|=,?:!+-*/%<[")):
        return name, None  # a variable
    if name in _NAMES:
        return name, _NAMES[name]
    if name.startswith("cu") and name in _list_driver_functions():
        return name, None
    what = next((what for pattern, what in _PATTERNS if pattern.fullmatch(name)), None)
    if what and name[:3] in ("tex", "sur") and after not in ("(", "<"):
        return name, None  # a variable
    return name, what


_TORCH = {
    "autograd": "C++ autograd functions (write a torch.autograd.Function in Python)",
    "nn": "torch's C++ modules (functions of torch::nn::functional, torch:: and at:: work)",
}
