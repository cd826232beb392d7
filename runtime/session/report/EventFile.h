// SPDX-License-Identifier: Apache-2.0
// --log-dir: the numbers of a run as TensorBoard's event files. The format (records with CRC-32C around protocol
// buffers of three messages) is written here: dgrun links no protobuf.
#pragma once

#include "runtime/session/report/Reporter.h"

#include <memory>
#include <string>

namespace dg::session {

/// A reporter that writes DIRECTORY/events.out.tfevents.… and prints nothing. Tags: train/loss, train/lr,
/// train/samples_per_second and, where the job computes it, train/grad_norm of at most 20 steps a second, epoch/loss,
/// eval/loss and eval/accuracy, each at its step. Makes the folder; fails (usage) if it cannot write there.
Result<std::unique_ptr<Reporter>> makeEventReporter(const std::string &directory);

/// Passes everything on to both.
std::unique_ptr<Reporter> makeBoth(std::unique_ptr<Reporter> first, std::unique_ptr<Reporter> second);

/// CRC-32C (Castagnoli); public for its test.
uint32_t crc32c(const char *data, size_t bytes);

} // namespace dg::session
