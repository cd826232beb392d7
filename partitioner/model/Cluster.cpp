// SPDX-License-Identifier: Apache-2.0
// Presets and the JSON of a cluster file. The only file of this folder that includes the JSON library.
#include "partitioner/model/Cluster.h"

#include "runtime/support/FileReading.h"
#include "runtime/support/Json.h"

#include <charconv>
#include <set>
#include <vector>

namespace dg::partitioner {

namespace {

using nlohmann::json;
using plan::DType;

constexpr int64_t clusterVersion = 1;

/// As many as --mesh takes ranks.
constexpr uint64_t maxDevices = 1 << 20;

/// Speeds and times beyond these are of no machine, and what follows from them is no number any more.
constexpr double leastNumber = 1e-9, mostNumber = 1e24;
bool isNumber(const nlohmann::json &value, double least = leastNumber) {
  return value.is_number() && value.get<double>() >= least && value.get<double>() <= mostNumber;
}
std::string rangeFrom(double least) { return fmt::format("from {} to {}", least, mostNumber); }

/// One core of a Zen 3 host as measured: OpenBLAS f32, memcpy, UCX by shared memory and by TCP.
Cluster cpuPreset() {
  Device core{"cpu", {{DType::f32, 97e9}, {DType::f64, 48e9}}, uint64_t(16) << 30, 13.8e9, 0.9, 0.1};
  return {"cpu", 1, 1, core, {7.5e9, 0.16}, {6e9, 6}};
}

/// A100 SXM 80 GB with NVLink 3 and one 200 Gb/s adapter a device: dense tensor-core rates and memory of the data
/// sheet; efficiency, bandwidths and launch time calibrated on published training runs
/// (docs/decisions/2026-11-16-prediction.md).
Cluster a100Preset() {
  Device gpu{"a100-80gb",
             {{DType::f32, 19.5e12}, {DType::f64, 19.5e12}, {DType::bf16, 312e12}, {DType::f16, 312e12}},
             uint64_t(80) << 30,
             1.1e12,
             0.695,
             10};
  gpu.storesScores = true;
  return {"a100x8", 1, 8, gpu, {300e9, 3}, {20e9, 5}};
}

/// H100 SXM 80 GB with NVLink 4 and one 400 Gb/s adapter a device.
Cluster h100Preset() {
  Device gpu{"h100-80gb",
             {{DType::f32, 67e12}, {DType::f64, 67e12}, {DType::bf16, 989e12}, {DType::f16, 989e12}},
             uint64_t(80) << 30,
             3.35e12,
             0.5,
             4};
  gpu.storesScores = true;
  return {"h100x8", 1, 8, gpu, {450e9, 3}, {50e9, 5}};
}

constexpr struct {
  std::string_view name;
  Cluster (*make)();
} presets[] = {{"cpu", cpuPreset}, {"a100x8", a100Preset}, {"h100x8", h100Preset}};

/// Applies "nodes=4,devices=2" to a preset.
Status applyOptions(Cluster &cluster, std::string_view spec, std::string_view options) {
  while (!options.empty()) {
    std::string_view option = options.substr(0, options.find(','));
    options.remove_prefix(std::min(options.size(), option.size() + 1));
    size_t equals = option.find('=');
    std::string_view key = option.substr(0, equals);
    std::string_view text = equals == option.npos ? std::string_view() : option.substr(equals + 1);
    uint32_t *field = key == "nodes" ? &cluster.numNodes : key == "devices" ? &cluster.devicesPerNode : nullptr;
    if (!field)
      return Status::error(ErrorKind::usage, "cluster '{}': unknown option '{}'; expected nodes=N or devices=N", spec,
                           option);
    uint32_t value = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value == 0)
      return Status::error(ErrorKind::usage, "cluster '{}': {} is '{}'; expected a whole number of at least 1", spec,
                           key, text);
    *field = value;
  }
  if (cluster.numDevices() > maxDevices)
    return Status::error(ErrorKind::usage, "cluster '{}': has {} nodes of {} devices; expected at most {} devices",
                         spec, cluster.numNodes, cluster.devicesPerNode, maxDevices);
  return Status::ok();
}

/// One JSON object. Each get takes its key; finish complains about the keys that nobody took. The first failure is
/// kept.
class ObjectReader {
public:
  ObjectReader(const json &object, std::string where, std::string path)
      : object(object), where(std::move(where)), path(std::move(path)) {
    if (!object.is_object())
      fail(this->path.empty() ? "the document" : this->path, object, "an object");
  }

  double getNumber(const char *key, double least = leastNumber) {
    const json *value = find(key);
    if (!value)
      return 1;
    if (!isNumber(*value, least)) {
      fail(keyPath(key), *value, "a number " + rangeFrom(least));
      return 1;
    }
    return value->get<double>();
  }
  uint64_t getCount(const char *key, uint64_t most) {
    const json *value = find(key);
    if (!value)
      return 1;
    bool isWhole = value->is_number_integer() && *value > 0;
    if (!isWhole || value->get<uint64_t>() > most) {
      fail(keyPath(key), *value, fmt::format("a whole number from 1 to {}", most));
      return 1;
    }
    return value->get<uint64_t>();
  }
  std::string getString(const char *key) {
    const json *value = find(key);
    if (!value || !value->is_string()) {
      if (value)
        fail(keyPath(key), *value, "a string");
      return "";
    }
    return value->get<std::string>();
  }
  /// The object under `key`, read by `read`.
  template <typename Read> void getObject(const char *key, Read read) {
    const json *value = find(key);
    if (!value)
      return;
    ObjectReader reader(*value, where, keyPath(key));
    if (reader.status.isOk())
      read(reader);
    if (Status inner = reader.finish(); status.isOk())
      status = inner;
  }
  /// Empty where the key is not there.
  std::vector<double> getOptionalNumbers(const char *key) {
    taken.insert(key);
    auto found = object.find(key);
    std::vector<double> numbers;
    if (!status.isOk() || found == object.end())
      return numbers;
    for (const json &value : found->is_array() ? *found : json::array({*found})) {
      if (!isNumber(value))
        fail(keyPath(key), *found, "a list of numbers " + rangeFrom(leastNumber));
      else
        numbers.push_back(value.get<double>());
    }
    return numbers;
  }
  /// [[x, y], …] with rising x.
  KernelCurve getCurve(const char *key) {
    const json *value = find(key);
    KernelCurve curve;
    for (const json &point : value && value->is_array() ? *value : json::array()) {
      const bool isPoint = point.is_array() && point.size() == 2 && isNumber(point[0]) && isNumber(point[1]) &&
                           (curve.empty() || point[0].get<double>() > curve.back().first);
      if (!isPoint) {
        fail(
            keyPath(key), point,
            fmt::format("a pair of numbers {}, the first larger than that of the pair before", rangeFrom(leastNumber)));
        return {};
      }
      curve.push_back({point[0].get<double>(), point[1].get<double>()});
    }
    if (value && curve.empty())
      fail(keyPath(key), *value, "a list of pairs [roofline us, measured us]");
    return curve;
  }
  bool has(const char *key) const { return object.is_object() && object.contains(key); }
  std::vector<std::string> keys() const {
    std::vector<std::string> names;
    for (const auto &[key, value] : object.items())
      names.push_back(key);
    return names;
  }
  Status finish() {
    if (!status.isOk())
      return status;
    for (const auto &[key, value] : object.items())
      if (!taken.count(key))
        fail(keyPath(key.c_str()), value, "no such key here; docs/reference/cluster.md lists the keys");
    return status;
  }
  void fail(const std::string &key, const json &found, const std::string &expected) {
    if (status.isOk())
      status = Status::error(ErrorKind::badInput, "{}: {} is {}; expected {}", where, key, excerpt(found), expected);
  }
  std::string keyPath(const std::string &key) const { return path.empty() ? key : path + "." + key; }

private:
  const json *find(const char *key) {
    taken.insert(key);
    if (!status.isOk())
      return nullptr;
    if (auto found = object.find(key); found != object.end())
      return &*found;
    status = Status::error(ErrorKind::badInput, "{}: key {} is missing; add it", where, keyPath(key));
    return nullptr;
  }
  static std::string excerpt(const json &value) {
    std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
    return text.size() > 60 ? text.substr(0, 60) + "…" : text;
  }

  const json &object;
  std::string where, path;
  std::set<std::string> taken;
  Status status = Status::ok();
};

void readRates(ObjectReader &reader, std::map<DType, double> &rates) {
  for (const std::string &key : reader.keys()) {
    if (std::optional<DType> type = enumNamed<DType>(key)) // finish() names any other
      rates[*type] = reader.getNumber(key.c_str());
  }
  if (!rates.count(DType::f32))
    reader.getNumber("f32"); // other types fall back to it, so it must be there
}

void readDevice(ObjectReader &reader, Device &device) {
  device.name = reader.getString("name");
  reader.getObject("flops_per_second", [&](ObjectReader &rates) { readRates(rates, device.flopsPerSecond); });
  device.memoryBytes = reader.getCount("memory_bytes", uint64_t(1) << 50);
  device.memoryBytesPerSecond = reader.getNumber("memory_bytes_per_second");
  device.efficiency = reader.getNumber("efficiency");
  if (device.efficiency > 1)
    reader.fail(reader.keyPath("efficiency"), device.efficiency, "a share of the peak, at most 1");
  device.launchUs = reader.getNumber("launch_us", 0);
  if (reader.has("stores_scores"))
    device.storesScores = reader.getCount("stores_scores", 1) == 1;
  for (auto [key, curves] : {std::pair{"kernels", &device.kernels}, {"busy_kernels", &device.busyKernels}})
    if (reader.has(key))
      reader.getObject(key, [curves = curves](ObjectReader &kernels) {
        for (const std::string &op : kernels.keys())
          (*curves)[op] = kernels.getCurve(op.c_str());
      });
}

void readLink(ObjectReader &reader, Link &link) {
  link.bytesPerSecond = reader.getNumber("bytes_per_second");
  link.latencyUs = reader.getNumber("latency_us", 0);
}

json linkToJson(const Link &link) {
  return {{"bytes_per_second", link.bytesPerSecond}, {"latency_us", link.latencyUs}};
}

} // namespace

Cluster Cluster::forRanks(uint64_t numRanks) const {
  Cluster own = *this;
  if (std::min<uint64_t>(numRanks, devicesPerNode) > 1 && !device.busyKernels.empty())
    own.device.kernels = device.busyKernels;
  return own;
}

Cluster Cluster::withCoresOf(uint32_t numCores, uint64_t numRanks) const {
  Cluster own = *this;
  if (numCores == 0 || numRanks <= numCores)
    return own;
  const double share = double(numCores) / double(numRanks);
  for (auto &[type, flopsPerSecond] : own.device.flopsPerSecond)
    flopsPerSecond *= share;
  own.device.memoryBytesPerSecond *= share;
  return own;
}

Cluster Cluster::withSharedCores() const { return withCoresOf(coresPerNode, devicesPerNode); }

Cluster hostCluster(uint32_t numRanks) {
  Cluster cluster = cpuPreset();
  cluster.devicesPerNode = std::max<uint32_t>(1, numRanks);
  return cluster;
}

Result<Cluster> findCluster(std::string_view spec) {
  std::string_view name = spec.substr(0, spec.find(':'));
  for (const auto &preset : presets) {
    if (preset.name != name)
      continue;
    Cluster cluster = preset.make();
    if (name.size() < spec.size())
      DG_RETURN_IF_ERROR(applyOptions(cluster, spec, spec.substr(name.size() + 1)));
    return cluster;
  }
  constexpr size_t mostBytes = size_t(16) << 20; // the speeds of a million devices
  auto text = readText(std::string(spec), mostBytes);
  if (!text)
    return Status::error(ErrorKind::badInput,
                         "cannot read cluster file '{}'; expected a readable JSON file, host or a preset (cpu, "
                         "a100x8, h100x8, with :nodes=N)",
                         spec);
  return parseCluster(*text, std::string(spec));
}

Result<Cluster> parseCluster(const std::string &text, const std::string &where) {
  auto read = parseJson(text, where);
  if (!read)
    return read.status();
  json &document = *read;
  ObjectReader reader(document, where, "");
  Cluster cluster;
  if (uint64_t version = reader.getCount("version", INT32_MAX); version != clusterVersion)
    reader.fail("version", version, fmt::format("{}", clusterVersion));
  cluster.name = reader.getString("name");
  cluster.numNodes = uint32_t(reader.getCount("nodes", maxDevices));
  cluster.devicesPerNode = uint32_t(reader.getCount("devices_per_node", maxDevices));
  if (cluster.numDevices() > maxDevices)
    reader.fail("nodes", cluster.numNodes,
                fmt::format("at most {} devices, with {} to a node", maxDevices, cluster.devicesPerNode));
  reader.getObject("device", [&](ObjectReader &device) { readDevice(device, cluster.device); });
  reader.getObject("links", [&](ObjectReader &links) {
    links.getObject("intra_node", [&](ObjectReader &link) { readLink(link, cluster.intraNode); });
    links.getObject("inter_node", [&](ObjectReader &link) { readLink(link, cluster.interNode); });
  });
  cluster.deviceSpeeds = reader.getOptionalNumbers("device_speeds");
  if (!cluster.deviceSpeeds.empty() && cluster.deviceSpeeds.size() != cluster.numDevices())
    reader.fail("device_speeds", document["device_speeds"],
                fmt::format("one number for each of the {} devices", cluster.numDevices()));
  if (reader.has("cores_per_node"))
    cluster.coresPerNode = uint32_t(reader.getCount("cores_per_node", 1 << 16));
  if (reader.has("turn_us"))
    cluster.turnUs = reader.getNumber("turn_us", 0);
  if (reader.has("slice_us"))
    cluster.sliceUs = reader.getNumber("slice_us", 0);
  DG_RETURN_IF_ERROR(reader.finish());
  return cluster;
}

std::string toJson(const Cluster &cluster) {
  json rates = json::object();
  for (auto [type, rate] : cluster.device.flopsPerSecond)
    rates[plan::nameOf(type)] = rate;
  nlohmann::ordered_json document;
  document["version"] = clusterVersion;
  document["name"] = cluster.name;
  document["nodes"] = cluster.numNodes;
  document["devices_per_node"] = cluster.devicesPerNode;
  document["device"] = {{"name", cluster.device.name},
                        {"flops_per_second", rates},
                        {"memory_bytes", cluster.device.memoryBytes},
                        {"memory_bytes_per_second", cluster.device.memoryBytesPerSecond},
                        {"efficiency", cluster.device.efficiency},
                        {"launch_us", cluster.device.launchUs}};
  document["links"] = {{"intra_node", linkToJson(cluster.intraNode)}, {"inter_node", linkToJson(cluster.interNode)}};
  if (cluster.device.storesScores)
    document["device"]["stores_scores"] = 1;
  for (const auto &[op, curve] : cluster.device.kernels)
    document["device"]["kernels"][op] = curve;
  for (const auto &[op, curve] : cluster.device.busyKernels)
    document["device"]["busy_kernels"][op] = curve;
  if (!cluster.deviceSpeeds.empty())
    document["device_speeds"] = cluster.deviceSpeeds;
  if (cluster.coresPerNode > 0)
    document["cores_per_node"] = cluster.coresPerNode;
  if (cluster.turnUs > 0)
    document["turn_us"] = cluster.turnUs;
  if (cluster.sliceUs > 0)
    document["slice_us"] = cluster.sliceUs;
  return document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

} // namespace dg::partitioner
