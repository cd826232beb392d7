/* SPDX-License-Identifier: Apache-2.0 */
/* An object as dgc makes them: the ABI version, a kernel and its grid. */
#include "runtime/abi/KernelAbi.h"

const uint32_t dg_abi_version = DG_ABI_VERSION;

const uint32_t add_one_tiles = 3;

void add_one(void *const *buffers, const dg_scalars *scalars, uint32_t tile) {
  const float *input = (const float *)buffers[0];
  float *output = (float *)buffers[1];
  output[tile] = input[tile] + 1.0f + scalars->lr;
}
