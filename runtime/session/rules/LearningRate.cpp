// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/rules/LearningRate.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numbers>
#include <optional>
#include <string_view>

namespace dg::session {

using Segment = LearningRateSchedule::Segment;
using Kind = Segment::Kind;

namespace {

enum class Range { any, count, countOrZero, fraction, notNegative };

struct Key {
  const char *name;
  double Segment::*number;
  Range range;
  bool isNeeded = false;
};

constexpr Key stepsKey = {"steps", &Segment::steps, Range::count},
              epochsKey = {"epochs", &Segment::epochs, Range::count}, toKey = {"to", &Segment::to, Range::notNegative},
              fromKey = {"from", &Segment::from, Range::notNegative};

enum class Length { needed, optional, none };

/// One kind of segment, as the user writes it.
struct Form {
  const char *name;
  Segment defaults;
  Length length;
  std::vector<Key> keys;
  const char *example;
};

/// The number of a `from` that was not given: it depends on the length.
constexpr double notGiven = -1;

const std::vector<Form> &forms() {
  static const std::vector<Form> all = {
      {"constant", {.kind = Kind::constant}, Length::optional, {}, "constant or constant:steps=500"},
      {"warmup", {.kind = Kind::warmup, .from = notGiven}, Length::needed, {fromKey}, "warmup:steps=500"},
      {"linear", {.kind = Kind::linear}, Length::needed, {toKey}, "linear:steps=10000,to=0"},
      {"cosine", {.kind = Kind::cosine}, Length::needed, {toKey}, "cosine:steps=10000,to=0 or cosine:epochs=10"},
      {"polynomial",
       {.kind = Kind::polynomial},
       Length::needed,
       {toKey, {"power", &Segment::power, Range::notNegative, true}},
       "polynomial:steps=10000,power=2"},
      {"one-cycle",
       {.kind = Kind::oneCycle, .from = 1.0 / 25, .to = 1.0 / 25 / 1e4},
       Length::needed,
       {fromKey, toKey, {"rise", &Segment::rise, Range::fraction}},
       "one-cycle:steps=10000,rise=0.3"},
      {"step",
       {.kind = Kind::step},
       Length::optional,
       {{"every", &Segment::every, Range::count, true}, {"gamma", &Segment::gamma, Range::any}},
       "step:every=EPOCHS,gamma=FACTOR or step:every=500steps,gamma=0.5"},
      {"plateau",
       {.kind = Kind::plateau},
       Length::none,
       {{"factor", &Segment::factor, Range::fraction},
        {"patience", &Segment::patience, Range::countOrZero},
        {"threshold", &Segment::threshold, Range::notNegative},
        {"cooldown", &Segment::cooldown, Range::countOrZero},
        {"min", &Segment::least, Range::notNegative}},
       "plateau:factor=0.1,patience=10"},
  };
  return all;
}

bool isIn(Range range, double value) {
  const bool isCount = value == std::floor(value) && value <= 1e15;
  switch (range) {
  case Range::any:
    return true;
  case Range::count:
    return isCount && value >= 1;
  case Range::countOrZero:
    return isCount && value >= 0;
  case Range::fraction:
    return value >= 0 && value <= 1;
  case Range::notNegative:
    return value >= 0;
  }
  return false;
}

std::vector<std::string> split(const std::string &text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

/// Takes "500steps" and "3epochs" of step:every=.
void takeUnit(std::string &value, Segment &segment) {
  for (const char *unit : {"steps", "epochs"})
    if (value.ends_with(unit)) {
      segment.isEveryEpochs = std::string_view(unit) == "epochs";
      value.resize(value.size() - std::string_view(unit).size());
      return;
    }
}

/// Sets one key=value; false if the form has no such key, it was set before, or the number is not in its range.
bool take(const std::string &item, const std::vector<Key> &keys, std::vector<const char *> &seen, Segment &segment) {
  size_t equals = item.find('=');
  if (equals == std::string::npos)
    return false;
  std::string name = item.substr(0, equals), value = item.substr(equals + 1);
  auto key = std::find_if(keys.begin(), keys.end(), [&](const Key &known) { return known.name == name; });
  if (key == keys.end() || std::find(seen.begin(), seen.end(), key->name) != seen.end())
    return false;
  seen.push_back(key->name);
  if (key->number == &Segment::every)
    takeUnit(value, segment);
  char *stop = nullptr;
  double number = std::strtod(value.c_str(), &stop);
  if (value.empty() || *stop != '\0' || !std::isfinite(number) || !isIn(key->range, number))
    return false;
  segment.*key->number = number;
  return true;
}

/// Nothing if it is malformed.
std::optional<Segment> parseSegment(const Form &form, const std::string &settings) {
  std::vector<Key> keys = form.keys;
  if (form.length != Length::none)
    keys.insert(keys.end(), {stepsKey, epochsKey});
  Segment segment = form.defaults;
  std::vector<const char *> seen;
  if (!settings.empty())
    for (const std::string &item : split(settings, ','))
      if (!take(item, keys, seen, segment))
        return std::nullopt;
  for (const Key &key : keys)
    if (key.isNeeded && std::find(seen.begin(), seen.end(), key.name) == seen.end())
      return std::nullopt;
  if ((segment.steps > 0 && segment.epochs > 0) || (segment.isEndless() && form.length == Length::needed))
    return std::nullopt;
  if (segment.from == notGiven)
    segment.from = 1 / std::max(segment.steps, segment.epochs);
  return segment;
}

} // namespace

Result<LearningRateSchedule> LearningRateSchedule::parse(const std::string &text) {
  LearningRateSchedule schedule;
  schedule.text = text;
  schedule.segments.clear();
  for (const std::string &part : split(text, '+')) {
    if (!schedule.segments.empty() && schedule.segments.back().isEndless())
      return Status::error(
          ErrorKind::usage,
          "--lr-schedule '{}': found '+{}', expected nothing after a part without an end; give that part "
          "steps= or epochs= (a plateau comes last)",
          text, part);
    size_t colon = part.find(':');
    std::string name = part.substr(0, colon);
    auto form = std::find_if(forms().begin(), forms().end(), [&](const Form &known) { return known.name == name; });
    if (form == forms().end()) {
      std::vector<std::string> names;
      for (const Form &known : forms())
        names.push_back(known.name);
      return Status::error(ErrorKind::usage,
                           "--lr-schedule '{}': found '{}', expected one of {}, or several joined by '+', as "
                           "warmup:steps=500+cosine:steps=10000",
                           text, name, fmt::join(names, ", "));
    }
    auto segment = parseSegment(*form, colon == std::string::npos ? "" : part.substr(colon + 1));
    if (!segment)
      return Status::error(ErrorKind::usage, "--lr-schedule '{}': found '{}', expected {}", text, part, form->example);
    schedule.segments.push_back(*segment);
  }
  return schedule;
}

/// From `start` to `end` along half a cosine.
static double alongCosine(double start, double end, double part) {
  return end + (start - end) * (1 + std::cos(std::numbers::pi * part)) / 2;
}

double Segment::factorAt(double level, int64_t stepsGone, int64_t epochsGone) const {
  const double length = epochs > 0 ? epochs : steps, gone = double(epochs > 0 ? epochsGone : stepsGone);
  switch (kind) {
  case Kind::constant:
  case Kind::plateau:
    return level;
  case Kind::warmup:
    return from + (1 - from) * gone / length;
  case Kind::linear:
    return level + (to - level) * gone / length;
  case Kind::cosine:
    return alongCosine(level, to, gone / length);
  case Kind::polynomial:
    return to + (level - to) * std::pow(1 - gone / length, power);
  case Kind::oneCycle: {
    const double top = rise * length - 1, last = length - 1;
    if (gone <= top && top > 0)
      return alongCosine(from, 1, gone / top);
    return last > std::max(top, 0.0) ? alongCosine(1, to, (gone - std::max(top, 0.0)) / (last - std::max(top, 0.0)))
                                     : 1;
  }
  case Kind::step:
    return level * std::pow(gamma, std::floor(double(isEveryEpochs ? epochsGone : stepsGone) / every));
  }
  return level;
}

namespace {

/// Where a segment begins. What lies behind all that a training can do is the end of numbers.
struct Begin {
  int64_t step = 0, epoch = 0;

  void skip(const Segment &segment, int64_t stepsPerEpoch) {
    constexpr int64_t never = std::numeric_limits<int64_t>::max();
    if (segment.epochs > 0) {
      if (__builtin_add_overflow(epoch, int64_t(segment.epochs), &epoch))
        epoch = never;
      if (__builtin_mul_overflow(epoch, stepsPerEpoch, &step))
        step = never;
    } else {
      if (__builtin_add_overflow(step, int64_t(segment.steps), &step))
        step = never;
      epoch = step / stepsPerEpoch;
    }
  }
};

} // namespace

int64_t LearningRateSchedule::stepOfLastPart(int64_t stepsPerEpoch) const {
  Begin begin;
  for (size_t i = 0; i + 1 < segments.size(); ++i)
    begin.skip(segments[i], stepsPerEpoch);
  return begin.step;
}

std::optional<int64_t> LearningRateSchedule::stepOfEnd(int64_t stepsPerEpoch) const {
  using Kind = Segment::Kind;
  const Segment &last = segments.back();
  if (last.isEndless() || last.kind == Kind::constant || last.kind == Kind::step || last.kind == Kind::plateau)
    return std::nullopt;
  Begin begin;
  for (const Segment &segment : segments)
    begin.skip(segment, stepsPerEpoch);
  return begin.step;
}

LearningRateSchedule::Place LearningRateSchedule::find(TrainingPoint at) const {
  Place place;
  Begin first;
  for (const Segment &segment : segments) {
    const bool isByEpochs = segment.epochs > 0;
    place.segment = &segment;
    place.stepsGone = at.step - first.step;
    place.epochsGone = at.epoch - first.epoch;
    if (segment.isEndless() ||
        (isByEpochs ? place.epochsGone < int64_t(segment.epochs) : place.stepsGone < int64_t(segment.steps)))
      return place;
    const Begin begin = first;
    first.skip(segment, at.stepsPerEpoch);
    // One cycle is down with its last step, the others with the step after it.
    place.level = segment.kind == Kind::oneCycle
                      ? segment.to
                      : segment.factorAt(place.level, first.step - begin.step, first.epoch - begin.epoch);
  }
  place.segment = nullptr;
  return place;
}

double LearningRateSchedule::factorAt(TrainingPoint at) const {
  Place place = find(at);
  return place.segment ? place.segment->factorAt(place.level, place.stepsGone, place.epochsGone) : place.level;
}

bool LearningRateSchedule::watchesEvaluations() const { return segments.back().kind == Kind::plateau; }

void LearningRateSchedule::observe(double loss, TrainingPoint at, checkpoint::Plateau &plateau) const {
  const Segment *segment = find(at).segment;
  if (!segment || segment->kind != Kind::plateau)
    return;
  if (!plateau.best || loss < *plateau.best * (1 - segment->threshold)) {
    plateau.best = loss;
    plateau.bad = 0;
  } else {
    ++plateau.bad;
  }
  if (plateau.cooldown > 0) {
    --plateau.cooldown;
    plateau.bad = 0;
  }
  if (plateau.bad <= int64_t(segment->patience))
    return;
  plateau.factor = std::max(plateau.factor * segment->factor, segment->least);
  plateau.cooldown = int64_t(segment->cooldown);
  plateau.bad = 0;
}

} // namespace dg::session
