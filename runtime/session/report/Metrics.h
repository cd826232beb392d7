// SPDX-License-Identifier: Apache-2.0
// Metrics of an evaluation beyond loss and accuracy, from what the program "eval" tells of each sample. All that is
// counted are whole numbers, and the rest is summed up in double: any ranks and batches give the same.
#pragma once

#include "runtime/data/Dealing.h"
#include "runtime/device/ValueAccess.h"
#include "runtime/plan/Plan.h"
#include "runtime/support/Status.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dg::session {

/// What an evaluation tells beside loss and accuracy.
struct Metrics {
  std::vector<std::pair<std::string, double>> numbers; ///< top5, f1, auc, mse, mae: those that there are
  std::vector<double> perClass;                        ///< of each class, the part that was found; NaN: it never came
  std::vector<int64_t> firsts;                         ///< [k - 1]: positions whose class was among the first k
  int64_t positions = 0;

  /// One of the numbers, or top3, top10 …
  std::optional<double> find(const std::string &name) const;
};

/// Whether a program "eval" computes a metric of that name, as "f1" or "top3".
bool hasMetric(const plan::Program &program, const std::string &name);
/// Whether there is such a metric at all, and if so whether less of it is better.
std::optional<bool> isMetricLowerBetter(const std::string &name);

/// One class of two, and how much was in favour of class 1.
struct ScoredLabel {
  float score = 0, label = 0;
};
/// The area under the ROC curve: how often a sample of class 1 has a larger score than one of class 0, where equal ones
/// count half. NaN without samples of both.
double areaUnderCurve(std::vector<ScoredLabel> samples);

/// Counts of one rank, which add up.
class MetricSums {
public:
  /// Takes the ports of the program that this rank (one of those with the same rows) has.
  MetricSums(const plan::Plan &plan, const plan::Program &program, plan::Coordinates at);

  /// Whether the program has any.
  static bool areIn(const plan::Program &program);
  void clear();
  /// After a step of `count` samples. Fails (badInput) on a class that cannot be one.
  Status add(const ValueAccess &values, int64_t count);
  std::string pack() const;
  /// Adds what another rank has packed; false if it is not that.
  bool merge(std::string_view packed);
  Metrics finish() const;

private:
  struct PortRows {
    plan::ValueId id = 0;
    int64_t perSample = 1; ///< elements
  };
  /// The first so many samples of a slot, as floats.
  Status read(const ValueAccess &values, const std::string &port, uint32_t slot, int64_t rows,
              std::vector<float> &to) const;
  Status addClasses(const std::vector<float> &target, const std::vector<float> &predicted,
                    const std::vector<float> &rank, const std::vector<float> &score);

  data::Deal deal;
  int64_t dataRank = 0;
  std::map<std::string, PortRows> mine; ///< by name, those that this rank reads
  // What is counted.
  std::vector<int64_t> wanted, found, right; ///< by class: positions of it, taken for it, and both
  std::vector<int64_t> ranks;                ///< positions by how many classes came before theirs
  std::vector<ScoredLabel> scored;
  double square = 0, absolute = 0;
  int64_t errors = 0; ///< samples of these two
};

} // namespace dg::session
