#include <stdio.h>

#include "coccl/coccl.h"

/* One rank over the local transport: the sum is the input. */
int main(void) {
  cocclLocal_t local;
  cocclComm_t comm;
  float in[3] = {1, 2, 3}, out[3] = {0, 0, 0};
  if (cocclLocalCreate(&local, 1, cocclHost, NULL) != cocclSuccess ||
      cocclCommInitLocal(&comm, local, 0) != cocclSuccess ||
      cocclAllReduce(in, out, 3, cocclFloat32, cocclSum, "int8", comm, NULL) != cocclSuccess ||
      cocclCommDestroy(comm) != cocclSuccess || cocclLocalDestroy(local) != cocclSuccess) {
    fprintf(stderr, "%s\n", cocclGetLastError());
    return 1;
  }
  printf("coccl %s: %g %g %g\n", cocclGetVersion(), out[0], out[1], out[2]);
  return !(out[0] == 1 && out[1] == 2 && out[2] == 3);
}
