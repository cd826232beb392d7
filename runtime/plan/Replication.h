// SPDX-License-Identifier: Apache-2.0
// From the plan of one replica to the plan of several, whose number is known only when a job is launched. It is again a
// plan, so that the verifier, the executor and whoever else reads plans need no second way.
#pragma once

#include "runtime/plan/Plan.h"

#include <cstdint>
#include <vector>

namespace dg::plan {

/// Micro-batches for each replica, as equal as they can be, the larger shares first: 8 over 3 is 3, 3, 2.
std::vector<uint32_t> dealEvenly(uint32_t microbatches, int64_t replicas);

/// The plan of `replicas` replicas of `plan`, which is of one:
///
///   - the mesh has them as its outermost axis; values, chunks and actions stay;
///   - the micro-batches of every program with a batch are dealt evenly, as wholes, and each replica skips the others';
///   - every sum over micro-batches is reduced over replicas in the update, before anything but a reduction of the
///     replica's own ranks reads it: gradients, statistics, losses. Nothing else crosses.
///
///     sum → all_reduce data → update      becomes      sum → all_reduce data → all_reduce replica → update
///
/// Where a plan has too few micro-batches, or no batch, the error (usage) says so. How each sum is bracketed depends on
/// its bytes and the number of replicas only.
Result<Plan> replicate(const Plan &plan, int64_t replicas);

/// The program as that replica runs it: without the actions of others' micro-batches. For who predicts or shows one of
/// them; a plan has whole programs.
Program programOf(const Plan &plan, const Program &program, int64_t replica);
/// The replica with the most micro-batches, for which the others wait.
int64_t longestReplica(const Program &program);

} // namespace dg::plan
