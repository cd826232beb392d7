/* SPDX-License-Identifier: Apache-2.0 */
/* An object of another ABI version. */
#include <stdint.h>

const uint32_t dg_abi_version = 99;
