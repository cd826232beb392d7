// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/Manifest.h"

#include "runtime/package/ContentHash.h"
#include "runtime/support/Json.h"

#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace dg::checkpoint {

static constexpr const char *formatName = "dg-checkpoint";
static constexpr int64_t formatVersion = 1;
/// The generator behind every seed; a checkpoint of another one could not be continued exactly.
static constexpr const char *generatorName = "philox4x32-10";

static std::string hashOfText(const nlohmann::json &json) { return package::hashOf(json.dump()); }

/// JSON has no NaN and no infinity: they stand there as the hexadecimal digits of their bits. A finite number is
/// printed with as many digits as it takes to read it back exactly.
static nlohmann::json fromDouble(double value) {
  return std::isfinite(value) ? nlohmann::json(value)
                              : nlohmann::json(fmt::format("0x{:016x}", std::bit_cast<uint64_t>(value)));
}

static double toDouble(const nlohmann::json &json) {
  if (json.is_null()) // what was written for NaN and infinity before 2026-11-17
    return std::numeric_limits<double>::quiet_NaN();
  if (json.is_string())
    return std::bit_cast<double>(uint64_t(std::strtoull(json.get_ref<const std::string &>().c_str(), nullptr, 16)));
  return json.get<double>();
}

/// A run counts on from what its checkpoint says, without an overflow.
static constexpr int64_t mostCount = int64_t(1) << 53;

/// A whole number from `least` to mostCount; of another, `fault` says so.
static int64_t countIn(const nlohmann::json &json, const char *key, std::string &fault, int64_t least = 0) {
  const nlohmann::json &value = json.at(key);
  const bool isWhole = value.is_number_unsigned() ? value.get<uint64_t>() <= uint64_t(mostCount)
                                                  : value.is_number_integer() && value.get<int64_t>() >= least;
  if (isWhole)
    return value.get<int64_t>();
  fault =
      fmt::format("has {} under \"{}\", expected a whole number from {} to {}", value.dump(), key, least, mostCount);
  return 0;
}

/// A number of 64 bits, of which each value is one.
static uint64_t wordIn(const nlohmann::json &json, const char *key, std::string &fault) {
  const nlohmann::json &value = json.at(key);
  if (value.is_number_unsigned())
    return value.get<uint64_t>();
  fault = fmt::format("has {} under \"{}\", expected a whole number from 0", value.dump(), key);
  return 0;
}

static nlohmann::json toJson(const Plateau &plateau) {
  nlohmann::json json = {{"factor", fromDouble(plateau.factor)}, {"bad", plateau.bad}, {"cooldown", plateau.cooldown}};
  if (plateau.best)
    json["best"] = fromDouble(*plateau.best);
  return json;
}

static nlohmann::json toJson(const Best &best) {
  return {{"metric", best.metric}, {"value", fromDouble(best.value)}, {"step", best.step}, {"since", best.since}};
}

static Best toBest(const nlohmann::json &json, std::string &fault) {
  return {json.at("metric").get<std::string>(), toDouble(json.at("value")), countIn(json, "step", fault),
          countIn(json, "since", fault)};
}

static Plateau toPlateau(const nlohmann::json &json, std::string &fault) {
  Plateau plateau;
  plateau.factor = toDouble(json.at("factor"));
  plateau.bad = countIn(json, "bad", fault);
  plateau.cooldown = countIn(json, "cooldown", fault);
  if (json.contains("best"))
    plateau.best = toDouble(json.at("best"));
  return plateau;
}

std::string toJson(const Manifest &manifest) {
  const TrainingState &state = manifest.state;
  nlohmann::json json = {{"format", formatName},
                         {"version", formatVersion},
                         {"model", state.model},
                         {"step", state.step},
                         {"epoch", state.epoch},
                         {"position", state.position},
                         {"seed", state.seed},
                         {"rng", generatorName},
                         {"samples", state.numSamples},
                         {"shuffle", state.shuffle},
                         {"loss_sum", fromDouble(state.lossSum)},
                         {"mean_loss", fromDouble(state.position > 0 ? state.lossSum / double(state.position) : 0.0)},
                         {"learning_rate", fromDouble(state.learningRate)},
                         {"lr_schedule", state.schedule},
                         {"file", tensorFileName},
                         {"file_bytes", manifest.fileBytes},
                         {"file_xxh3", manifest.fileHash}};
  json["evaluated_step"] = state.evaluatedStep;
  if (state.kept)
    json["best"] = toJson(*state.kept);
  if (state.stopping)
    json["stopping"] = toJson(*state.stopping);
  if (state.validation > 0)
    json["validation"] = state.validation;
  if (state.plateau != Plateau())
    json["plateau"] = toJson(state.plateau);
  if (!state.origin.empty())
    json["origin_xxh3"] = state.origin;
  json["manifest_xxh3"] = hashOfText(json);
  return json.dump(2) + "\n";
}

Result<Manifest> manifestFromJson(const std::string &text, const std::string &path) {
  auto damaged = [&](const std::string &what) {
    return Status::error(ErrorKind::badInput, "{}: {}; this checkpoint cannot be used", path, what);
  };
  auto read = parseJson(text, path);
  if (!read || !read->is_object())
    return read ? damaged("is not whole JSON")
                : Status::error(ErrorKind::badInput, "{}; this checkpoint cannot be used", read.status().message());
  nlohmann::json &json = *read;
  try {
    if (json.at("format") != formatName)
      return damaged("is not the manifest of a checkpoint");
    if (json.at("version") != formatVersion)
      return damaged(fmt::format("has format version {}, expected {}", json.at("version").dump(), formatVersion));
    // The hash is of what the text says; so is every byte then.
    if (text != json.dump(2) + "\n" && text != json.dump())
      return damaged("was altered: it is not as it was written");
    std::string hash = json.at("manifest_xxh3").get<std::string>();
    nlohmann::json rest = json;
    rest.erase("manifest_xxh3");
    if (hashOfText(rest) != hash)
      return damaged("was altered: its hash differs");
    if (json.at("rng") != generatorName)
      return damaged(fmt::format("was made with generator {}, expected {}", json.at("rng").dump(), generatorName));
    Manifest manifest;
    TrainingState &state = manifest.state;
    json.at("model").get_to(state.model);
    std::string fault;
    state.step = countIn(json, "step", fault);
    state.epoch = countIn(json, "epoch", fault);
    state.position = countIn(json, "position", fault);
    state.seed = wordIn(json, "seed", fault);
    state.numSamples = countIn(json, "samples", fault);
    json.at("shuffle").get_to(state.shuffle);
    state.lossSum = toDouble(json.at("loss_sum"));
    state.learningRate = toDouble(json.at("learning_rate"));
    json.at("lr_schedule").get_to(state.schedule);
    // Before 2026-11-18 an epoch that was closed had been evaluated, and nothing else was known.
    state.evaluatedStep = json.contains("evaluated_step") ? countIn(json, "evaluated_step", fault, -1)
                          : state.position == 0           ? state.step
                                                          : -1;
    if (json.contains("best"))
      state.kept = toBest(json.at("best"), fault);
    if (json.contains("stopping"))
      state.stopping = toBest(json.at("stopping"), fault);
    state.validation = json.value("validation", 0.0);
    if (json.contains("plateau"))
      state.plateau = toPlateau(json.at("plateau"), fault);
    if (json.contains("origin_xxh3"))
      json.at("origin_xxh3").get_to(state.origin);
    manifest.fileBytes = wordIn(json, "file_bytes", fault);
    json.at("file_xxh3").get_to(manifest.fileHash);
    if (!fault.empty())
      return damaged(fault);
    if (state.position > state.numSamples)
      return damaged(fmt::format("is at sample {} of an epoch of {}", state.position, state.numSamples));
    if (!(state.validation >= 0 && state.validation < 1))
      return damaged(fmt::format("held out {} of the data, expected a part from 0 to below 1", state.validation));
    return manifest;
  } catch (const nlohmann::json::exception &error) {
    return damaged(fmt::format("lacks something: {}", error.what()));
  }
}

} // namespace dg::checkpoint
