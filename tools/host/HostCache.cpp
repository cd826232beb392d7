// SPDX-License-Identifier: Apache-2.0
#include "tools/host/HostCache.h"

#include "runtime/support/CacheFolder.h"
#include "runtime/support/FileReading.h"
#include "runtime/support/FileWriting.h"
#include "runtime/support/HostCores.h"
#include "runtime/support/Json.h"
#include "runtime/support/Sha256.h"

#include <chrono>
#include <filesystem>
#include <unistd.h>

namespace dg::tools {

namespace {

constexpr size_t mostBytes = size_t(1) << 20;

/// The processor by its name, "" where the system does not say.
std::string processorName() {
  auto text = readText("/proc/cpuinfo", size_t(64) << 20);
  if (!text)
    return "";
  const size_t line = text->find("model name"), colon = line == text->npos ? line : text->find(": ", line);
  return colon == text->npos ? "" : text->substr(colon + 2, text->find('\n', colon) - colon - 2);
}

std::string pathOf(const std::string &folder, const std::string &key) {
  constexpr size_t digits = 16;
  return folder + "/host-" + hexOf(sha256(key)).substr(0, digits) + ".json";
}

bool isOlderThanAnHour(const std::string &path) {
  std::error_code error;
  const auto written = std::filesystem::last_write_time(path, error);
  return error || written < std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
}

} // namespace

std::string hostKey() {
  return fmt::format("{}, {} cores, {} pages, dg {}", processorName(), usableCores().size(), sysconf(_SC_PHYS_PAGES),
                     DG_VERSION);
}

std::optional<MeasuredHost> findHost(const std::string &folder, const std::string &key) {
  const std::string path = pathOf(folder, key);
  auto text = readOwnText(path, mostBytes);
  auto read = text ? parseJson(*text, path) : Result<nlohmann::json>(text.status());
  if (!read || !read->is_object() || read->value("key", nlohmann::json()) != key || !read->contains("cluster"))
    return std::nullopt;
  Result<partitioner::Cluster> cluster = partitioner::parseCluster((*read)["cluster"].dump(), path);
  MeasuredHost host;
  const nlohmann::json when = read->value("when", nlohmann::json());
  host.when = when.is_string() ? when.get<std::string>() : "";
  host.isBusy = read->value("busy", nlohmann::json()) != false;
  if (!cluster || cluster->numNodes != 1 || cluster->devicesPerNode != usableCores().size() || host.when.empty() ||
      (host.isBusy && isOlderThanAnHour(path)))
    return std::nullopt;
  host.cluster = std::move(*cluster);
  return host;
}

Status keepHost(const std::string &folder, const std::string &key, const MeasuredHost &host) {
  DG_RETURN_IF_ERROR(makePrivateFolder(folder, "what plans are made for"));
  Result<nlohmann::ordered_json> cluster = parseJson<nlohmann::ordered_json>(toJson(host.cluster), "the measurement");
  if (!cluster)
    return cluster.status();
  nlohmann::ordered_json document;
  document["key"] = key;
  document["when"] = host.when;
  document["busy"] = host.isBusy;
  document["cluster"] = std::move(*cluster);
  const auto replace = nlohmann::ordered_json::error_handler_t::replace;
  return writeFile(pathOf(folder, key), document.dump(2, ' ', false, replace) + "\n");
}

Result<MeasuredHost> knowHost(const std::string &folder) {
  const std::string key = hostKey();
  if (!folder.empty())
    if (auto kept = findHost(folder, key))
      return *kept;
  Result<MeasuredHost> host = probeHost();
  if (host && !folder.empty())
    (void)keepHost(folder, key, *host); // it is measured again the next time
  return host;
}

std::string describeHost(const MeasuredHost &host) {
  const partitioner::Cluster &cluster = host.cluster;
  const std::string processor = processorName();
  return fmt::format(
      "{} core{}{}, {:.3g} Gflop/s and {:.3g} GB/s each, {:.1f} GiB, measured {}{}", cluster.devicesPerNode,
      cluster.devicesPerNode == 1 ? "" : "s", processor.empty() ? "" : " of " + processor,
      cluster.device.flopsPerSecond.at(plan::DType::f32) / 1e9, cluster.device.memoryBytesPerSecond / 1e9,
      double(cluster.device.memoryBytes) * cluster.devicesPerNode / 0x1p30, host.when,
      host.isBusy ? " beside other work" : "");
}

} // namespace dg::tools
