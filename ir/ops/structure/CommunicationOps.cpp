// SPDX-License-Identifier: Apache-2.0
// What the split phase inserts between ranks. These ops have no gradient, sharding rule or evaluation of their own:
// they come after differentiation and partition, and the simulated ranks of ir/reference/ give them their meaning.
#include "ir/ops/structure/CommunicationOps.h"

namespace dg::ir {} // namespace dg::ir

#define DG_OPS "ir/ops/structure/CommunicationOps.cpp.inc"
#define DG_ADD_OPS addCommunicationOps
#include "ir/ops/Family.inc"
