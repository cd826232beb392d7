// SPDX-License-Identifier: Apache-2.0
// A copy of what a checkpoint has trained, without the state of the optimizer: a half or a third of its size, for
// `dgc --weights` and for others that read safetensors.
#pragma once

#include "runtime/checkpoint/Checkpoint.h"

namespace dg::checkpoint {

/// Bytes of the copy of a checkpoint of this plan. Fails with badInput where a name cannot be written.
Result<uint64_t> exportedBytes(const plan::Plan &plan);

/// Writes the parameters of the plan, whole tensors by name, to `path`: whole or not at all. Call Checkpoint::check
/// first. Returns the bytes of the file; fails with unwritten.
Result<uint64_t> exportWeights(const Checkpoint &from, const plan::Plan &plan, const std::string &path);

} // namespace dg::checkpoint
