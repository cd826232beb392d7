// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/report/Metrics.h"

#include "runtime/plan/MetricPorts.h"
#include "runtime/plan/SampleRows.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

namespace dg::session {

/// Classes are told apart by floats, which hold whole numbers up to here.
static constexpr float mostClasses = 1 << 24;
static constexpr int64_t toldFirsts = 5;

/// "top3" → 3; nothing if it is no such name.
static std::optional<int64_t> countOfTop(const std::string &name) {
  int64_t count = 0;
  const char *begin = name.data() + 3, *end = name.data() + name.size();
  if (!name.starts_with("top") || begin == end || *begin == '0')
    return std::nullopt;
  auto [stop, error] = std::from_chars(begin, end, count);
  return error == std::errc() && stop == end && count > 0 ? std::optional(count) : std::nullopt;
}

std::optional<bool> isMetricLowerBetter(const std::string &name) {
  if (name == "mse" || name == "mae")
    return true;
  if (name == "f1" || name == "auc" || countOfTop(name))
    return false;
  return std::nullopt;
}

static bool hasOutput(const plan::Program &program, const char *name) {
  return std::any_of(program.outputs.begin(), program.outputs.end(),
                     [&](const plan::Port &port) { return port.name == name; });
}

bool hasMetric(const plan::Program &program, const std::string &name) {
  const char *port = name == "f1"    ? plan::predictedPort
                     : name == "auc" ? plan::scorePort
                     : name == "mse" ? plan::squarePort
                     : name == "mae" ? plan::absolutePort
                                     : plan::rankPort;
  return isMetricLowerBetter(name) && hasOutput(program, port);
}

std::optional<double> Metrics::find(const std::string &name) const {
  for (const auto &[own, value] : numbers)
    if (own == name)
      return value;
  std::optional<int64_t> count = countOfTop(name);
  if (!count || positions == 0 || firsts.empty())
    return std::nullopt;
  return double(firsts[std::min(size_t(*count), firsts.size()) - 1]) / double(positions);
}

double areaUnderCurve(std::vector<ScoredLabel> samples) {
  std::sort(samples.begin(), samples.end(),
            [](const ScoredLabel &a, const ScoredLabel &b) { return a.score < b.score; });
  // Pairs of a sample of class 1 and one of class 0 below it, twice: equal ones count half.
  double twice = 0, ones = 0, zeros = 0;
  for (size_t begin = 0, end = 0; begin < samples.size(); begin = end) {
    double equalOnes = 0, equalZeros = 0;
    for (; end < samples.size() && samples[end].score == samples[begin].score; ++end)
      (samples[end].label > 0.5f ? equalOnes : equalZeros) += 1;
    twice += equalOnes * (2 * zeros + equalZeros);
    ones += equalOnes, zeros += equalZeros;
  }
  return ones > 0 && zeros > 0 ? twice / (2 * ones * zeros) : std::nan("");
}

bool MetricSums::areIn(const plan::Program &program) {
  return hasOutput(program, plan::predictedPort) || hasOutput(program, plan::squarePort);
}

MetricSums::MetricSums(const plan::Plan &plan, const plan::Program &program, plan::Coordinates at)
    : deal(data::dealOf(plan, program, at)), dataRank(at.data) {
  for (const plan::Port &port : program.outputs) {
    if (!port.name.starts_with("metric.") || port.values.empty())
      continue;
    const plan::Value &value = plan.values[port.values.front()];
    if (int64_t(value.stage) != at.pipe || at.tensor != 0 || !plan::hasSampleRows(plan, program, value) ||
        value.dtype != plan::DType::f32)
      continue;
    PortRows rows{port.values.front(), 1};
    for (size_t dim = 1; dim < value.shape.size(); ++dim)
      rows.perSample *= value.shape[dim];
    mine[port.name] = rows;
  }
}

void MetricSums::clear() {
  wanted.clear(), found.clear(), right.clear(), ranks.clear(), scored.clear();
  square = absolute = 0;
  errors = 0;
}

Status MetricSums::read(const ValueAccess &values, const std::string &port, uint32_t slot, int64_t rows,
                        std::vector<float> &to) const {
  to.clear();
  auto own = mine.find(port);
  if (own == mine.end())
    return Status::ok();
  to.resize(size_t(rows * own->second.perSample));
  return values.inspect(own->second.id, slot, [&](std::span<const std::byte> bytes) {
    if (bytes.size() < to.size() * sizeof(float))
      return Status::error(ErrorKind::badInput, "plan: output '{}' holds fewer rows than a batch needs", port);
    if (!to.empty())
      std::memcpy(to.data(), bytes.data(), to.size() * sizeof(float));
    return Status::ok();
  });
}

/// One more of that kind.
static void count(std::vector<int64_t> &counts, size_t kind) {
  if (counts.size() <= kind)
    counts.resize(kind + 1);
  ++counts[kind];
}

Status MetricSums::addClasses(const std::vector<float> &target, const std::vector<float> &predicted,
                              const std::vector<float> &rank, const std::vector<float> &score) {
  for (size_t i = 0; i < target.size() && i < predicted.size(); ++i) {
    if (target[i] < 0)
      continue;
    for (float number : {target[i], predicted[i]})
      if (!(number >= 0 && number < mostClasses))
        return Status::error(ErrorKind::badInput, "an evaluation found class {}, expected 0 to {}", number,
                             mostClasses - 1);
    count(wanted, size_t(target[i]));
    count(found, size_t(predicted[i]));
    if (target[i] == predicted[i])
      count(right, size_t(target[i]));
    if (i < rank.size())
      count(ranks, size_t(std::clamp(rank[i], 0.0f, mostClasses)));
    if (i < score.size())
      scored.push_back({score[i], target[i]});
  }
  return Status::ok();
}

Status MetricSums::add(const ValueAccess &values, int64_t samples) {
  if (mine.empty())
    return Status::ok();
  std::vector<float> target, predicted, rank, score;
  for (uint32_t slot = 0; slot < uint32_t(deal.microbatches); ++slot) {
    const int64_t rows = data::dealtTo(samples, deal, slot, dataRank).size;
    for (auto [port, to] : {std::pair(plan::targetPort, &target),
                            {plan::predictedPort, &predicted},
                            {plan::rankPort, &rank},
                            {plan::scorePort, &score}})
      DG_RETURN_IF_ERROR(read(values, port, slot, rows, *to));
    DG_RETURN_IF_ERROR(addClasses(target, predicted, rank, score));
    DG_RETURN_IF_ERROR(read(values, plan::squarePort, slot, rows, target));
    for (float each : target)
      square += double(each), ++errors;
    DG_RETURN_IF_ERROR(read(values, plan::absolutePort, slot, rows, target));
    for (float each : target)
      absolute += double(each);
  }
  return Status::ok();
}

template <typename T> static void append(std::string &bytes, const std::vector<T> &list) {
  const uint64_t size = list.size();
  bytes.append(reinterpret_cast<const char *>(&size), sizeof size);
  bytes.append(reinterpret_cast<const char *>(list.data()), list.size() * sizeof(T));
}

template <typename T> static bool take(std::string_view &bytes, std::vector<T> &list) {
  uint64_t size = 0;
  if (bytes.size() < sizeof size)
    return false;
  std::memcpy(&size, bytes.data(), sizeof size);
  bytes.remove_prefix(sizeof size);
  if (size > bytes.size() / sizeof(T))
    return false;
  list.resize(size);
  if (size > 0) // an empty list has no address, and memcpy takes none
    std::memcpy(list.data(), bytes.data(), size * sizeof(T));
  bytes.remove_prefix(size * sizeof(T));
  return true;
}

std::string MetricSums::pack() const {
  std::string bytes;
  for (const auto *list : {&wanted, &found, &right, &ranks})
    append(bytes, *list);
  append(bytes, scored);
  append(bytes, std::vector<double>{square, absolute, double(errors)});
  return bytes;
}

bool MetricSums::merge(std::string_view packed) {
  for (auto *list : {&wanted, &found, &right, &ranks}) {
    std::vector<int64_t> theirs;
    if (!take(packed, theirs))
      return false;
    list->resize(std::max(list->size(), theirs.size()));
    for (size_t i = 0; i < theirs.size(); ++i)
      (*list)[i] += theirs[i];
  }
  std::vector<ScoredLabel> labels;
  std::vector<double> sums;
  if (!take(packed, labels) || !take(packed, sums) || sums.size() != 3)
    return false;
  scored.insert(scored.end(), labels.begin(), labels.end());
  square += sums[0], absolute += sums[1], errors += int64_t(sums[2]);
  return true;
}

Metrics MetricSums::finish() const {
  Metrics metrics;
  auto at = [](const std::vector<int64_t> &counts, size_t kind) { return kind < counts.size() ? counts[kind] : 0; };
  double f1 = 0, classes = 0;
  for (size_t kind = 0; kind < std::max(wanted.size(), found.size()); ++kind) {
    const double own = double(at(wanted, kind)), taken = double(at(found, kind)), both = double(at(right, kind));
    metrics.positions += at(wanted, kind);
    metrics.perClass.push_back(own > 0 ? both / own : std::nan(""));
    // A class that neither came nor was found says nothing.
    if (own + taken > 0)
      f1 += 2 * both / (own + taken), classes += 1;
  }
  for (int64_t sum = 0, before = 0; before < int64_t(ranks.size()); ++before)
    metrics.firsts.push_back(sum += ranks[size_t(before)]);
  if (!metrics.firsts.empty())
    metrics.numbers.emplace_back("top5", *metrics.find(fmt::format("top{}", toldFirsts)));
  if (classes > 0)
    metrics.numbers.emplace_back("f1", f1 / classes);
  if (!scored.empty())
    metrics.numbers.emplace_back("auc", areaUnderCurve(scored));
  if (errors > 0) {
    metrics.numbers.emplace_back("mse", square / double(errors));
    metrics.numbers.emplace_back("mae", absolute / double(errors));
  }
  return metrics;
}

} // namespace dg::session
