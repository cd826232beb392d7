/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of a linear model with squared loss and momentum, as an object of dgc would export them. The number of
 * rows comes as a constant buffer, because these kernels serve every batch. */
#include "runtime/abi/KernelAbi.h"

#include <math.h>

#define TOY_FEATURES 3

const uint32_t dg_abi_version = DG_ABI_VERSION;
const uint32_t toy_predict_tiles = 1, toy_loss_tiles = 1, toy_accuracy_tiles = 1, toy_gradient_tiles = 1,
               toy_update_tiles = 1;

/* rows, x, w -> p */
void toy_predict(void *const *buffers, const dg_scalars *scalars, uint32_t tile) {
  int64_t rows = *(const int64_t *)buffers[0];
  const float *x = buffers[1], *w = buffers[2];
  float *p = buffers[3];
  for (int64_t i = 0; i < rows; ++i) {
    p[i] = 0;
    for (int k = 0; k < TOY_FEATURES; ++k)
      p[i] += x[i * TOY_FEATURES + k] * w[k];
  }
}

/* rows, p, y, weight -> dp, loss (summed up) */
void toy_loss(void *const *buffers, const dg_scalars *scalars, uint32_t tile) {
  int64_t rows = *(const int64_t *)buffers[0];
  const float *p = buffers[1], *y = buffers[2], *weight = buffers[3];
  float *dp = buffers[4], *loss = buffers[5];
  for (int64_t i = 0; i < rows; ++i) {
    float error = p[i] - y[i];
    dp[i] = 2 * weight[i] * error;
    *loss += weight[i] * error * error;
  }
}

/* rows, p, y, weight -> accuracy (summed up): how many are off by less than one */
void toy_accuracy(void *const *buffers, const dg_scalars *scalars, uint32_t tile) {
  int64_t rows = *(const int64_t *)buffers[0];
  const float *p = buffers[1], *y = buffers[2], *weight = buffers[3];
  float *accuracy = buffers[4];
  for (int64_t i = 0; i < rows; ++i)
    *accuracy += fabsf(p[i] - y[i]) < 1 ? weight[i] : 0;
}

/* rows, x, dp -> gradient (summed up) */
void toy_gradient(void *const *buffers, const dg_scalars *scalars, uint32_t tile) {
  int64_t rows = *(const int64_t *)buffers[0];
  const float *x = buffers[1], *dp = buffers[2];
  float *gradient = buffers[3];
  for (int64_t i = 0; i < rows; ++i)
    for (int k = 0; k < TOY_FEATURES; ++k)
      gradient[k] += dp[i] * x[i * TOY_FEATURES + k];
}

/* gradient -> momentum, w (in place) */
void toy_update(void *const *buffers, const dg_scalars *scalars, uint32_t tile) {
  const float *gradient = buffers[0];
  float *momentum = buffers[1], *w = buffers[2];
  for (int k = 0; k < TOY_FEATURES; ++k) {
    momentum[k] = 0.5f * momentum[k] + gradient[k];
    w[k] -= scalars->lr * momentum[k];
  }
}
