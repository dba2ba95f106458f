/* coccl's C API, shaped like nccl.h: collectives that compress what they send.
 *
 * Functions return a cocclResult_t and keep the message of a failure, see cocclGetLastError. A call
 * on a communicator that fails closes it: every later call of any rank fails with the reason. */
#ifndef COCCL_H_
#define COCCL_H_

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define COCCL_API __attribute__((visibility("default")))
#else
#define COCCL_API
#endif

struct ncclComm;
struct CUstream_st;

typedef struct cocclComm* cocclComm_t;
typedef struct cocclLocal* cocclLocal_t;

/* The bytes of an ncclUniqueId. */
typedef struct {
  char internal[128];
} cocclUniqueId;

typedef enum {
  cocclSuccess = 0,
  cocclCudaError = 1,       /* a CUDA call failed */
  cocclInternalError = 3,   /* out of memory, or a bug in coccl */
  cocclInvalidArgument = 4, /* the message names the value and what is accepted */
  cocclUnsupported = 5,     /* this build, machine or NCCL cannot do it */
  cocclTransportError = 6   /* bytes could not be moved, or the communicator was closed */
} cocclResult_t;

/* The numbers are those of ncclDataType_t. */
typedef enum {
  cocclInt8 = 0,
  cocclUint8 = 1,
  cocclInt32 = 2,
  cocclUint32 = 3,
  cocclInt64 = 4,
  cocclUint64 = 5,
  cocclFloat16 = 6,
  cocclFloat32 = 7,
  cocclFloat64 = 8,
  cocclBfloat16 = 9
} cocclDataType_t;

/* The numbers are those of ncclRedOp_t. */
typedef enum { cocclSum = 0, cocclProd = 1, cocclMax = 2, cocclMin = 3, cocclAvg = 4 } cocclRedOp_t;

typedef enum { cocclHost = 0, cocclCuda = 1 } cocclPlace_t;

/* Start from COCCL_CONFIG_INITIALIZER and set what you need. */
typedef struct {
  size_t size;           /* sizeof(cocclConfig_t) */
  double timeout;        /* seconds that making the group, or connecting to a peer, may take */
  const char* algorithm; /* of every call: "auto", or a name that its collective knows */
  const char*
      nccl_library; /* a libnccl.so.2 to use where the process has none; NULL: the system's */
} cocclConfig_t;

#define COCCL_CONFIG_INITIALIZER {sizeof(cocclConfig_t), 600.0, "auto", NULL}

COCCL_API const char* cocclGetVersion(void);
COCCL_API const char* cocclGetErrorString(cocclResult_t result);
/* The message of this thread's last failure. Never NULL; valid until the thread's next coccl call.
 */
COCCL_API const char* cocclGetLastError(void);

/* Ranks over NCCL, one GPU each: one rank makes the id and hands it to the others. The current
 * device is the rank's. `config` may be NULL. */
COCCL_API cocclResult_t cocclGetUniqueId(cocclUniqueId* id);
COCCL_API cocclResult_t cocclCommInitRank(cocclComm_t* comm, int nranks, cocclUniqueId id, int rank,
                                          const cocclConfig_t* config);
/* Over a communicator of the caller's, which must outlive coccl's and is not destroyed with it. */
COCCL_API cocclResult_t cocclCommInitNccl(cocclComm_t* comm, struct ncclComm* nccl,
                                          const cocclConfig_t* config);

/* Ranks that are threads of this process, over host or device memory, without NCCL. The meeting
 * place may be destroyed once every rank has its communicator. */
COCCL_API cocclResult_t cocclLocalCreate(cocclLocal_t* local, int nranks, cocclPlace_t place,
                                         const cocclConfig_t* config);
COCCL_API cocclResult_t cocclLocalDestroy(cocclLocal_t local);
COCCL_API cocclResult_t cocclCommInitLocal(cocclComm_t* comm, cocclLocal_t local, int rank);

COCCL_API cocclResult_t cocclCommCount(cocclComm_t comm, int* count);
COCCL_API cocclResult_t cocclCommUserRank(cocclComm_t comm, int* rank);
/* Bytes handed to other ranks by compressed calls. */
COCCL_API cocclResult_t cocclCommSentBytes(cocclComm_t comm, unsigned long long* bytes);
/* Ends the group with a reason, for all of its ranks. */
COCCL_API cocclResult_t cocclCommAbort(cocclComm_t comm, const char* reason);
COCCL_API cocclResult_t cocclCommDestroy(cocclComm_t comm);

/* Collectives, ordered on `stream` (ignored in host memory, where they are done on return). Buffers
 * and counts as in nccl.h; in place too.
 *
 * `compressor` is a name from cocclCompressorName. It takes float32, bfloat16 and float16, and the
 * ops sum and avg; anything else is cocclInvalidArgument. With NULL the call is exact: NCCL's own,
 * of any type and op, or the compressor "none" between local ranks. */
COCCL_API cocclResult_t cocclAllReduce(const void* sendbuff, void* recvbuff, size_t count,
                                       cocclDataType_t type, cocclRedOp_t op,
                                       const char* compressor, cocclComm_t comm,
                                       struct CUstream_st* stream);
COCCL_API cocclResult_t cocclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount,
                                           cocclDataType_t type, cocclRedOp_t op,
                                           const char* compressor, cocclComm_t comm,
                                           struct CUstream_st* stream);
COCCL_API cocclResult_t cocclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount,
                                       cocclDataType_t type, const char* compressor,
                                       cocclComm_t comm, struct CUstream_st* stream);

/* The names of compressors: 0, 1, … until NULL. */
COCCL_API const char* cocclCompressorName(int index);

#ifdef __cplusplus
}
#endif

#endif
