// SPDX-License-Identifier: Apache-2.0
// What the split phase inserts between ranks. These ops have no gradient, sharding rule or evaluation of their own:
// they come after differentiation and partition, and the simulated ranks of ir/reference/ give them their meaning.
#include "ir/Dialect.h"
