// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/report/EventFile.h"

#include "runtime/support/FileWriting.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <unistd.h>

namespace dg::session {

uint32_t crc32c(const char *data, size_t bytes) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> made{};
    for (uint32_t i = 0; i < made.size(); ++i) {
      uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit)
        value = (value >> 1) ^ (value & 1 ? 0x82f63b78u : 0);
      made[i] = value;
    }
    return made;
  }();
  uint32_t crc = ~0u;
  for (size_t i = 0; i < bytes; ++i)
    crc = (crc >> 8) ^ table[(crc ^ uint8_t(data[i])) & 0xff];
  return ~crc;
}

namespace {

/// A record of TensorFlow's files: length, its checksum, bytes, their checksum, all little-endian.
class EventWriter {
public:
  EventWriter(FILE *file, std::string path) : file(file), path(std::move(path)) {
    pending.reserve(2 * flushBytes);
    event.reserve(256);
    value.reserve(256);
  }
  ~EventWriter() {
    flush();
    if (file)
      std::fclose(file);
  }
  EventWriter(const EventWriter &) = delete;
  EventWriter &operator=(const EventWriter &) = delete;

  void begin() {
    event.clear();
    addWallTime();
    addBytes(event, 3, "brain.Event:2");
    addRecord();
    flush();
  }
  void scalar(std::string_view tag, int64_t step, double number) {
    // Event.summary (5) { Summary.value (1) { tag (1), simple_value (2) } }
    value.clear();
    addBytes(value, 1, tag);
    value.push_back(char(2 << 3 | fixed32));
    addNumber(value, float(number));
    event.clear();
    addWallTime();
    event.push_back(char(2 << 3 | varint));
    addVarint(event, uint64_t(step));
    event.push_back(char(5 << 3 | delimited));
    addVarint(event, 1 + sizeOfVarint(value.size()) + value.size());
    addBytes(event, 1, value);
    addRecord();
  }
  void flush() {
    lastFlush = Clock::now();
    if (error == 0 && !pending.empty() &&
        (std::fwrite(pending.data(), 1, pending.size(), file) != pending.size() || std::fflush(file) != 0))
      error = errno != 0 ? errno : EIO;
    pending.clear();
  }
  Status failure() const {
    return error == 0 ? Status::ok()
                      : Status::error(ErrorKind::unwritten, "{}: cannot be written: {}", path, std::strerror(error));
  }

private:
  using Clock = std::chrono::steady_clock;
  enum WireType { varint = 0, fixed64 = 1, delimited = 2, fixed32 = 5 };
  static constexpr size_t flushBytes = 1 << 15;

  template <typename T> static void addNumber(std::string &to, T number) {
    char bytes[sizeof number];
    std::memcpy(bytes, &number, sizeof number);
    to.append(bytes, sizeof number);
  }
  static void addVarint(std::string &to, uint64_t number) {
    for (; number >= 0x80; number >>= 7)
      to.push_back(char(number | 0x80));
    to.push_back(char(number));
  }
  static size_t sizeOfVarint(uint64_t number) {
    size_t size = 1;
    for (; number >= 0x80; number >>= 7)
      ++size;
    return size;
  }
  static void addBytes(std::string &to, int field, std::string_view bytes) {
    to.push_back(char(field << 3 | delimited));
    addVarint(to, bytes.size());
    to.append(bytes);
  }
  void addWallTime() {
    event.push_back(char(1 << 3 | fixed64));
    addNumber(event, std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count());
  }
  static uint32_t masked(const char *data, size_t bytes) {
    const uint32_t crc = crc32c(data, bytes);
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
  }
  void addRecord() {
    const uint64_t size = event.size();
    char bytes[sizeof size];
    std::memcpy(bytes, &size, sizeof size);
    pending.append(bytes, sizeof bytes);
    addNumber(pending, masked(bytes, sizeof bytes));
    pending.append(event);
    addNumber(pending, masked(event.data(), event.size()));
    if (pending.size() > flushBytes || Clock::now() - lastFlush > std::chrono::seconds(1))
      flush();
  }

  FILE *file;
  std::string path, pending, event, value; ///< their memory is kept
  int error = 0;
  Clock::time_point lastFlush = Clock::now();
};

class EventReporter final : public Reporter {
public:
  EventReporter(FILE *file, std::string path) : writer(file, std::move(path)) { writer.begin(); }

  void step(const StepInfo &info) override {
    const auto now = Clock::now();
    samples += info.samples;
    if (now - last < std::chrono::milliseconds(50))
      return;
    writer.scalar("train/loss", info.step, double(info.loss));
    writer.scalar("train/lr", info.step, info.learningRate);
    if (info.gradientNorm)
      writer.scalar("train/grad_norm", info.step, double(*info.gradientNorm));
    if (last != Clock::time_point())
      writer.scalar("train/samples_per_second", info.step,
                    double(samples) / std::chrono::duration<double>(now - last).count());
    samples = 0;
    last = now;
  }
  void epoch(const EpochInfo &info) override {
    writer.scalar("epoch/loss", info.epoch, info.meanLoss);
    writer.flush();
  }
  void evaluation(const EvaluationInfo &info) override {
    if (info.hasLoss)
      writer.scalar("eval/loss", info.step, info.loss);
    if (info.hasAccuracy)
      writer.scalar("eval/accuracy", info.step, info.accuracy);
    for (const auto &[name, value] : info.metrics.numbers)
      writer.scalar("eval/" + name, info.step, value);
    writer.flush();
  }
  void end(const EndInfo &) override { writer.flush(); }
  void flush() override { writer.flush(); }
  Status failure() const override { return writer.failure(); }

private:
  using Clock = std::chrono::steady_clock;
  EventWriter writer;
  Clock::time_point last{};
  int64_t samples = 0; ///< since then
};

class Both final : public Reporter {
public:
  Both(std::unique_ptr<Reporter> first, std::unique_ptr<Reporter> second)
      : first(std::move(first)), second(std::move(second)) {}
  void start(const StartInfo &info) override { first->start(info), second->start(info); }
  void step(const StepInfo &info) override { first->step(info), second->step(info); }
  void inferred(const InferredInfo &info) override { first->inferred(info), second->inferred(info); }
  void epoch(const EpochInfo &info) override { first->epoch(info), second->epoch(info); }
  void evaluation(const EvaluationInfo &info) override { first->evaluation(info), second->evaluation(info); }
  void checkpoint(const CheckpointInfo &info) override { first->checkpoint(info), second->checkpoint(info); }
  void saveFailed(const SaveFailedInfo &info) override { first->saveFailed(info), second->saveFailed(info); }
  void end(const EndInfo &info) override { first->end(info), second->end(info); }
  void flush() override { first->flush(), second->flush(); }
  Status failure() const override {
    DG_RETURN_IF_ERROR(first->failure());
    return second->failure();
  }

private:
  std::unique_ptr<Reporter> first, second;
};

} // namespace

Result<std::unique_ptr<Reporter>> makeEventReporter(const std::string &directory) {
  auto refuse = [&](int code) {
    return Status::error(ErrorKind::usage, "--log-dir {}: cannot be written to: {}", directory, std::strerror(code));
  };
  if (int code = makeFolders(directory); code != 0)
    return refuse(code);
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  std::string path =
      fmt::format("{}/events.out.tfevents.{:010}.{}.{}", directory, int64_t(std::time(nullptr)), host, ::getpid());
  const int made = makeNewFile(path);
  FILE *file = made >= 0 ? ::fdopen(made, "wb") : nullptr;
  if (!file)
    return refuse(made >= 0 ? errno : -made);
  return std::unique_ptr<Reporter>(std::make_unique<EventReporter>(file, path));
}

std::unique_ptr<Reporter> makeBoth(std::unique_ptr<Reporter> first, std::unique_ptr<Reporter> second) {
  return std::make_unique<Both>(std::move(first), std::move(second));
}

} // namespace dg::session
