// SPDX-License-Identifier: Apache-2.0
// Learning-rate schedules: a factor of the base rate for each step, a pure function of where the training stands, so
// that a resumed run continues exactly. What a plateau remembers of evaluations is a state that a checkpoint keeps.
#pragma once

#include "runtime/checkpoint/Manifest.h"
#include "runtime/support/Status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dg::session {

/// Where a training stands before a step.
struct TrainingPoint {
  int64_t step = 0, epoch = 0; ///< done since the very beginning
  int64_t stepsPerEpoch = 1;
};

/// Segments joined by '+', each from the factor that the one before it reached; after the last its factor stays. N is
/// steps=N, or epochs=N: then the factor changes between epochs only, counted from the one in which the segment begins.
///
///   constant[:N]                                      stays
///   warmup:N[,from=F]                                 line from F (default 1 / N) to 1
///   linear:N[,to=F] · cosine:N[,to=F]                 to F (default 0)
///   polynomial:N,power=P[,to=F]                       (1 - t/N)^P
///   one-cycle:N[,rise=0.3,from=0.04,to=0.000004]      up to 1 and down again, by cosines
///   step:every=N[steps|epochs][,gamma=0.1][,N]        times gamma after every N epochs, or steps
///   plateau:factor=0.1,patience=10[,threshold=0.0001,cooldown=0,min=0]   as long as the evaluated loss falls
///
/// The formulas are PyTorch's: LinearLR, CosineAnnealingLR, PolynomialLR, OneCycleLR, StepLR, ReduceLROnPlateau.
class LearningRateSchedule {
public:
  LearningRateSchedule() = default;
  /// Fails (usage) with what was found and the form that was expected.
  static Result<LearningRateSchedule> parse(const std::string &text);

  /// Of the base rate, in the step after that point; without what a plateau took off. Does not allocate.
  double factorAt(TrainingPoint at) const;
  /// The step after which its last part begins.
  int64_t stepOfLastPart(int64_t stepsPerEpoch) const;
  /// The step after which its last part has come to its end; none where that part stays as it is or goes on for ever.
  std::optional<int64_t> stepOfEnd(int64_t stepsPerEpoch) const;
  /// Whether it needs evaluations.
  bool watchesEvaluations() const;
  /// Takes the loss of an evaluation; nothing happens unless a plateau has begun.
  void observe(double loss, TrainingPoint at, checkpoint::Plateau &plateau) const;
  /// What parse reads back.
  const std::string &describe() const { return text; }

  /// One part of a schedule; public for the table that reads it.
  struct Segment {
    enum class Kind { constant, warmup, linear, cosine, polynomial, oneCycle, step, plateau } kind = Kind::constant;
    double steps = 0, epochs = 0; ///< its length; both 0: to the end of the training
    double from = 0, to = 0, power = 1, rise = 0.3;
    double every = 0, gamma = 0.1;
    bool isEveryEpochs = true;
    double factor = 0.1, patience = 10, threshold = 1e-4, cooldown = 0, least = 0;

    bool isEndless() const { return steps == 0 && epochs == 0; }
    /// From factor `level`, after so many steps and epochs of it.
    double factorAt(double level, int64_t stepsGone, int64_t epochsGone) const;
  };

private:
  /// A point as its segment sees it; no segment after the last.
  struct Place {
    const Segment *segment = nullptr;
    double level = 1;
    int64_t stepsGone = 0, epochsGone = 0;
  };
  Place find(TrainingPoint at) const;
  std::string text = "constant";
  std::vector<Segment> segments = {Segment()};
};

} // namespace dg::session
