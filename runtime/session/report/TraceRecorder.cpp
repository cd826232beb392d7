// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/report/TraceRecorder.h"

#include "runtime/session/report/JsonLine.h"
#include "runtime/support/FileWriting.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <unistd.h>
#include <utility>

namespace dg::session {

static std::string partOf(const std::string &path, int64_t rank) {
  return fmt::format("{}.rank{}.partial", path, rank);
}

void TraceRecorder::collect(plan::ProgramKind program, int64_t step) {
  if (uses.profile)
    sums.add(program, trace);
  if (uses.file && steps++ < maxSteps)
    for (size_t lane = 0; lane < trace.numLanes(); ++lane)
      for (const TraceEvent &event : trace.events(lane)) {
        const plan::Task &task = plan.tasks[event.task];
        events += fmt::format(
            "{{\"name\":{},\"cat\":{},\"ph\":\"X\",\"ts\":{:.3f},\"dur\":{:.3f},\"pid\":{},\"tid\":{},"
            "\"args\":{{\"program\":{},\"step\":{},\"microbatch\":{},\"tiles\":{},\"op\":{},\"source\":{}}}}},\n",
            JsonLine::quoted(task.name), JsonLine::quoted(task.op), double(event.startNs) / 1000,
            double(event.endNs - event.startNs) / 1000, rank, lane, JsonLine::quoted(nameOf(program)), step,
            event.microbatch, event.tiles, event.task, JsonLine::quoted(task.source));
      }
  trace.clear();
}

static Status cannotWrite(const std::string &path) {
  return Status::error(ErrorKind::unwritten, "{}: the trace cannot be written: {}", path, std::strerror(errno));
}

namespace {

/// A file of a name that other ranks know, written from its beginning to its end.
class TraceFile {
public:
  explicit TraceFile(const std::string &path) : file(makeFileAnew(path)) {}
  ~TraceFile() { close(); }
  TraceFile(const TraceFile &) = delete;
  TraceFile &operator=(const TraceFile &) = delete;
  void add(std::string_view text) {
    isWhole = isWhole && file >= 0 && writeAllAt(file, text.data(), text.size(), bytes) == 0;
    bytes += text.size();
  }
  /// Whether all of it was written; errno says why not.
  bool close() {
    if (file >= 0)
      isWhole = ::close(std::exchange(file, -1)) == 0 && isWhole;
    return isWhole;
  }

private:
  int file;
  uint64_t bytes = 0;
  bool isWhole = true;
};

} // namespace

Status TraceRecorder::writePart(const std::string &path) const {
  std::string name = partOf(path, rank), metadata;
  auto label = [&](const char *kind, size_t lane, const std::string &text) {
    metadata += fmt::format("{{\"name\":\"{}\",\"ph\":\"M\",\"pid\":{},\"tid\":{},\"args\":{{\"name\":{}}}}},\n", kind,
                            rank, lane, JsonLine::quoted(text));
  };
  plan::Coordinates at = plan.mesh.coordinatesOf(rank);
  label("process_name", 0,
        fmt::format("rank {} ({}pipe {}, data {}, tensor {})", rank,
                    plan.mesh.replicas > 1 ? fmt::format("replica {}, ", at.replica) : "", at.pipe, at.data,
                    at.tensor));
  for (size_t lane = 0; lane < trace.numLanes(); ++lane)
    label("thread_name", lane, lane == trace.communicationLane() ? "communication" : fmt::format("thread {}", lane));
  TraceFile file(name);
  file.add(metadata);
  file.add(events);
  return file.close() ? Status::ok() : cannotWrite(name);
}

Status TraceRecorder::join(const std::string &path) const {
  std::string whole = path + ".partial";
  TraceFile file(whole);
  file.add("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
  for (int64_t other = 0; other < plan.mesh.numRanks(); ++other) {
    std::ifstream part(partOf(path, other), std::ios::binary);
    if (!part)
      return cannotWrite(partOf(path, other));
    for (std::string text(size_t(1) << 20, '\0'); part;) {
      part.read(text.data(), std::streamsize(text.size()));
      file.add(std::string_view(text).substr(0, size_t(part.gcount())));
    }
  }
  file.add("{\"name\":\"end\",\"ph\":\"M\",\"pid\":0}\n]}\n");
  if (!file.close() || std::rename(whole.c_str(), path.c_str()) != 0)
    return cannotWrite(path);
  return Status::ok();
}

Status TraceRecorder::write(const std::string &path, const checkpoint::Agreement &agree) {
  Status status = agree(writePart(path));
  if (status)
    status = agree(rank == 0 ? join(path) : Status::ok());
  std::error_code ignored;
  std::filesystem::remove(partOf(path, rank), ignored);
  return status;
}

void TraceRecorder::removeUnfinished(const std::string &path, int64_t numRanks) {
  std::error_code ignored;
  std::filesystem::remove(path + ".partial", ignored);
  for (int64_t rank = 0; rank < numRanks; ++rank)
    std::filesystem::remove(partOf(path, rank), ignored);
}

} // namespace dg::session
