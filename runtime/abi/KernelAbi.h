/* SPDX-License-Identifier: Apache-2.0 */
/* What generated code and the runtime share. Includes nothing but <stdint.h>; versioned like a schema: any change to
 * this file raises DG_ABI_VERSION, and the runtime refuses an object that was made for another version. */
#ifndef DG_RUNTIME_ABI_KERNELABI_H
#define DG_RUNTIME_ABI_KERNELABI_H

#include <stdint.h>

#define DG_ABI_VERSION 4u

/* Every object exports `const uint32_t dg_abi_version`. */
#define DG_ABI_VERSION_SYMBOL "dg_abi_version"

/* The first index outside its table that a kernel of the step has found. Who changes `buffers` from 0, atomically,
 * writes the rest; all is 0 when a step begins. The kernel goes on with the nearest index inside. */
typedef struct dg_index_fault {
  uint64_t buffers; /* offset 0: the address that the task was called with; + 1 where a graph inside its op found it */
  int64_t operand;  /* offset 8: which buffer of the kernel holds the index */
  int64_t element;  /* offset 16: which element of it */
  int64_t index;    /* offset 24 */
  int64_t places;   /* offset 32: the table has so many; below 0 where negative indices count from the end */
} dg_index_fault;

/* What a step knows only when it runs. Codegen reads the fields by these offsets (see the asserts in codegen). */
typedef struct dg_scalars {
  int64_t step;          /* offset 0: 1 in the first step (Adam's bias correction) */
  uint64_t seed;         /* offset 8 */
  float lr;              /* offset 16: learning rate of this step */
  dg_index_fault *fault; /* offset 24: where kernels report */
} dg_scalars;

/* A kernel computes one tile of its grid. `buffers` are the task's buffers in the plan's order (inputs, then outputs
 * that are not in place, then scratch), each aligned to DG_BUFFER_ALIGNMENT. Outputs alias no other buffer; a kernel
 * that works in place has its own symbol. Tiles of one call may run in any order and on any thread; they write disjoint
 * bytes. */
typedef void (*dg_kernel)(void *const *buffers, const dg_scalars *scalars, uint32_t tile);

/* An object exports `const uint32_t <kernel>_tiles`, the grid of the kernel. It depends on the target, so it is nowhere
 * else: the plan has none. */
#define DG_TILES_SUFFIX "_tiles"

#define DG_BUFFER_ALIGNMENT 64u

#endif
