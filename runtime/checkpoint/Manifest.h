// SPDX-License-Identifier: Apache-2.0
// manifest.json of a checkpoint: where the run stood and the hash of its tensors. A checkpoint without a whole manifest
// does not exist.
#pragma once

#include "runtime/support/Status.h"

#include <cstdint>
#include <optional>
#include <string>

namespace dg::checkpoint {

/// What a learning-rate schedule that watches evaluations remembers of them.
struct Plateau {
  double factor = 1;          ///< of the rate: what it took off so far
  std::optional<double> best; ///< the lowest loss
  int64_t bad = 0;            ///< evaluations since that were not better
  int64_t cooldown = 0;       ///< evaluations that do not count yet
  bool operator==(const Plateau &) const = default;
};

/// The best evaluation so far, by one metric.
struct Best {
  std::string metric; ///< "accuracy"
  double value = 0;
  int64_t step = 0;  ///< of that evaluation
  int64_t since = 0; ///< evaluations after it
  bool operator==(const Best &) const = default;
};

/// Everything besides tensors that a run needs to continue as if it had not stopped.
struct TrainingState {
  std::string model;                            ///< the plan's model name
  int64_t step = 0;                             ///< steps done
  int64_t epoch = 0;                            ///< epochs done
  int64_t position = 0;                         ///< samples of the current epoch done
  uint64_t seed = 0;                            ///< of shuffles and everything else that is drawn
  int64_t numSamples = 0;                       ///< of the data set
  std::string shuffle;                          ///< as data::Shuffle::describe says it
  double lossSum = 0;                           ///< of the current epoch: sum of loss × samples
  double learningRate = 0;                      ///< before its schedule
  std::string schedule;                         ///< of the learning rate, as --lr-schedule takes it
  Plateau plateau = {};                         ///< of the schedule
  int64_t evaluatedStep = -1;                   ///< the last step after which was evaluated
  std::optional<Best> kept = {}, stopping = {}; ///< of --keep-best and --stop-when
  double validation = 0;                        ///< part of the data set that was held out
  /// Hash of the tensors of the checkpoint in another folder that the training in this folder continues; empty if it
  /// began here. By it a run that is started anew knows its own checkpoints.
  std::string origin = {};
  bool operator==(const TrainingState &) const = default;
};

struct Manifest {
  TrainingState state;
  uint64_t fileBytes = 0; ///< of model.safetensors
  std::string fileHash;   ///< its xxh3-128, 32 hexadecimal digits
};

inline constexpr const char *tensorFileName = "model.safetensors";
inline constexpr const char *manifestFileName = "manifest.json";

/// The text holds its own hash too, so that a damaged manifest is not taken for a whole one.
std::string toJson(const Manifest &manifest);
/// Fails (badInput) on anything that toJson did not write; `path` is for the message.
Result<Manifest> manifestFromJson(const std::string &text, const std::string &path);

} // namespace dg::checkpoint
