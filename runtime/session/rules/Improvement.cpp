// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/rules/Improvement.h"

#include <cmath>
#include <cstdlib>
#include <limits>

namespace dg::session {

static constexpr std::string_view prefix = "eval.";

Result<WatchedMetric> WatchedMetric::parse(const char *flag, const std::string &text) {
  for (auto [name, isLowerBetter] : {std::pair("loss", true), {"accuracy", false}, {"perplexity", true}})
    if (text == std::string(prefix) + name)
      return WatchedMetric{name, isLowerBetter};
  if (text.starts_with(prefix))
    if (const std::string name = text.substr(prefix.size()); auto isLowerBetter = isMetricLowerBetter(name))
      return WatchedMetric{name, *isLowerBetter};
  return Status::error(ErrorKind::usage,
                       "{} '{}': expected eval.loss, eval.accuracy or eval.perplexity, or of a job compiled with "
                       "--metrics eval.f1, eval.top5, eval.auc, eval.mse or eval.mae",
                       flag, text);
}

Status WatchedMetric::check(const char *flag, const plan::Plan &plan) const {
  const plan::Program *eval = plan.findProgram(plan::ProgramKind::eval);
  if (isMetricLowerBetter(name)) {
    if (eval && hasMetric(*eval, name))
      return Status::ok();
    return Status::error(ErrorKind::usage,
                         "{} eval.{}: the job does not compute it; compile the model with --metrics, with a loss that "
                         "has it (top-k: of more than 5 classes; auc: of 2)",
                         flag, name);
  }
  const std::string port = name == "perplexity" ? "loss" : name;
  if (const plan::Program *program = plan.findProgram(plan::ProgramKind::eval))
    for (const plan::Port &output : program->outputs)
      if (output.name == port)
        return Status::ok();
  return Status::error(ErrorKind::usage, "{} eval.{}: the model has no output '{}' in its evaluation", flag, name,
                       port);
}

bool WatchedMetric::observe(const EvaluationInfo &info, double least, std::optional<checkpoint::Best> &best) const {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (!best || best->metric != name)
    best = checkpoint::Best{name, isLowerBetter ? infinity : -infinity, info.step, 0};
  const double value = info.find(name).value_or(std::nan(""));
  if (isLowerBetter ? value < best->value - least : value > best->value + least) {
    *best = {name, value, info.step, 0};
    return true;
  }
  ++best->since;
  return false;
}

Result<StopRule> StopRule::parse(const std::string &text) {
  auto malformed = [&] {
    return Status::error(ErrorKind::usage,
                         "--stop-when '{}': expected METRIC:patience=EVALUATIONS[,min_delta=NUMBER], as "
                         "eval.loss:patience=5",
                         text);
  };
  StopRule rule;
  rule.text = text;
  size_t colon = text.find(':');
  auto metric = WatchedMetric::parse("--stop-when", text.substr(0, colon));
  if (!metric)
    return metric.status();
  rule.metric = *metric;
  if (colon == std::string::npos)
    return malformed();
  for (size_t begin = colon + 1; begin <= text.size();) {
    size_t end = std::min(text.find(',', begin), text.size());
    std::string item = text.substr(begin, end - begin);
    size_t equals = item.find('=');
    char *stop = nullptr;
    const std::string value = equals == std::string::npos ? "" : item.substr(equals + 1);
    double number = std::strtod(value.c_str(), &stop);
    if (value.empty() || *stop != '\0' || !(number >= 0 && number <= 1e15))
      return malformed();
    if (item.starts_with("patience=") && rule.patience == 0 && number >= 1 && number == std::floor(number))
      rule.patience = int64_t(number);
    else if (item.starts_with("min_delta=") && rule.least == 0)
      rule.least = number;
    else
      return malformed();
    begin = end + 1;
  }
  return rule.patience > 0 ? Result<StopRule>(rule) : Result<StopRule>(malformed());
}

std::string StopRule::describe(const checkpoint::Best &best) const {
  return fmt::format("eval.{} has not {} for {} evaluation{}; the best was {:.6g} at step {}", metric.name,
                     metric.isLowerBetter ? "fallen" : "risen", best.since, best.since == 1 ? "" : "s", best.value,
                     best.step);
}

} // namespace dg::session
