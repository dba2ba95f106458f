#pragma once

// Marks a function that host loops and kernels share.
#ifdef __CUDACC__
#define COCCL_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define COCCL_HOST_DEVICE inline
#endif

// Unrolls a loop whose arrays must stay in registers on a GPU. The host compiler decides for
// itself.
#ifdef __CUDA_ARCH__
#define COCCL_UNROLL _Pragma("unroll")
#else
#define COCCL_UNROLL
#endif
