// SPDX-License-Identifier: Apache-2.0
// NAME is a hash of the remote name and its end, so that its format is known by it; NAME.json says what it is a copy
// of.
#include "runtime/data/remote/DataCache.h"

#include "runtime/support/FileReading.h"
#include "runtime/support/FileWriting.h"
#include "runtime/support/Json.h"
#include "runtime/support/Sha256.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace dg::data {

namespace fs = std::filesystem;

static std::string nameHere(const std::string &name) {
  std::string end = name.substr(name.rfind('/') + 1);
  end = end.substr(0, end.find_first_of("?#"));
  constexpr size_t mostBytes = 80;
  end = end.substr(end.size() - std::min(end.size(), mostBytes));
  for (char &c : end)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '-')
      c = '_';
  return hexOf(sha256(name)).substr(0, 16) + "-" + end;
}

/// Whether the user, or root, has made it: whoever else can write to the folder must not choose the data.
static bool isTrusted(const std::string &path) {
  struct stat facts{};
  return ::lstat(path.c_str(), &facts) == 0 && S_ISREG(facts.st_mode) &&
         (facts.st_uid == ::geteuid() || facts.st_uid == 0) && (facts.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/// The identity of a copy that is whole and this user's or root's, else "".
static std::string identityOf(const std::string &target, const std::string &name) {
  if (!isTrusted(target) || !isTrusted(target + ".json"))
    return "";
  std::error_code error;
  const uint64_t size = fs::file_size(target, error);
  constexpr size_t mostBytes = 1 << 16;
  auto text = error ? Result<std::string>(std::string()) : readText(target + ".json", mostBytes);
  if (!text || text->empty())
    return "";
  auto record = parseJson(*text, target + ".json");
  if (!record || !record->is_object() || record->value("name", nlohmann::json()) != name ||
      record->value("bytes", nlohmann::json()) != size)
    return "";
  const nlohmann::json identity = record->value("identity", nlohmann::json());
  return identity.is_string() ? identity.get<std::string>() : "";
}

namespace {

/// A file that is removed unless it becomes another.
class PartialFile {
public:
  explicit PartialFile(const std::string &target) : path(makePartialName(target)), file(makeNewFile(path)) {}
  ~PartialFile() {
    if (file >= 0)
      ::close(file);
    if (!path.empty())
      ::unlink(path.c_str());
  }
  PartialFile(const PartialFile &) = delete;
  PartialFile &operator=(const PartialFile &) = delete;
  int descriptor() const { return file; }
  /// Returns 0 or errno.
  int become(const std::string &target) {
    if (::fsync(file) != 0 || std::rename(path.c_str(), target.c_str()) != 0)
      return errno;
    path.clear();
    return 0;
  }

private:
  std::string path;
  int file;
};

} // namespace

static bool isWorthAnotherTry(int64_t code) {
  constexpr int64_t requestTimeout = 408, tooMany = 429, firstOfServer = 500;
  return code == requestTimeout || code == tooMany || code >= firstOfServer;
}

Status DataCache::download(const std::string &name, const std::string &target, const std::string &known) const {
  constexpr int64_t ok = 200, part = 206, unchanged = 304, wrongRange = 416;
  constexpr int mostTries = 6, mostRequests = 1000;
  constexpr auto firstPause = std::chrono::milliseconds(100);
  PartialFile partial(target);
  auto unwritable = [&](int error) {
    return Status::error(ErrorKind::unwritten, "--data-cache {}: cannot be written: {}", folder, std::strerror(error));
  };
  if (partial.descriptor() < 0)
    return unwritable(-partial.descriptor());
  uint64_t have = 0, most = 0; // bytes of the file; and the most that there were
  std::string identity, why, changes;
  int tries = 0;
  for (int requests = 0; tries < mostTries && requests < mostRequests; ++requests) {
    if (tries > 0)
      std::this_thread::sleep_for(std::min(firstPause * (1 << tries), limits.silence));
    auto request = makeRequest(name, have);
    if (!request)
      return request.status();
    Answer answer = transfer(*request, have, identity, have == 0 ? known : "", partial.descriptor(), limits);
    if (limits.isStopped && limits.isStopped())
      return Status::error(ErrorKind::runFailed, "{}: not fetched whole: stopped", name);
    if (answer.code == unchanged && !known.empty())
      return Status::ok();
    if (answer.isHopeless)
      return Status::error(answer.failure.find("data cache") == std::string::npos ? ErrorKind::lost
                                                                                  : ErrorKind::unwritten,
                           "{}: {}", name, answer.failure);
    const bool isWhole = answer.code == ok && !request->isRangeInUrl;
    if (answer.code != ok && answer.code != part && answer.code != wrongRange && answer.code != 0 &&
        !isWorthAnotherTry(answer.code))
      return Status::error(ErrorKind::badInput, "{}: the server refused it with HTTP status {}; check the name{}", name,
                           answer.code, name.starts_with("s3://") ? ", and the AWS_ variables" : "");
    // Bytes of another file, or none that can be gone on with: from the beginning again.
    const bool isOther = !identity.empty() && answer.identity != identity;
    if (answer.code == wrongRange || (answer.code == part && isOther)) {
      have = 0, identity.clear(), ++tries;
      why = fmt::format("HTTP status {}", answer.code);
      changes = isOther ? "; the file changes while it is read" : changes;
      continue;
    }
    if (answer.code == ok || answer.code == part) {
      have = (isWhole ? 0 : have) + answer.received;
      identity = answer.identity;
      tries = have > most ? 1 : tries + 1; // it goes on, but not without a pause
      if (isOther)
        changes = "; the file changes while it is read";
      most = std::max(most, have);
    } else {
      ++tries;
    }
    why = !answer.failure.empty() ? answer.failure : fmt::format("HTTP status {}", answer.code);
    if (answer.failure.empty() && (answer.code == ok || answer.code == part) && answer.size.value_or(have) == have) {
      if (::ftruncate(partial.descriptor(), off_t(have)) != 0)
        return unwritable(errno);
      std::error_code ignored;
      fs::remove(target + ".json", ignored);
      if (const int error = partial.become(target); error != 0)
        return unwritable(error);
      return writeFile(target + ".json",
                       nlohmann::json{{"name", name}, {"bytes", have}, {"identity", identity}}.dump() + "\n");
    }
    if (answer.failure.empty() && answer.code == ok)
      why = fmt::format("found {} bytes, expected {}", have, answer.size.value_or(0));
  }
  return Status::error(ErrorKind::lost,
                       "{}: not fetched whole after many tries, {} bytes came; the last ended with: {}{}", name, most,
                       why, changes);
}

Result<std::string> DataCache::fetchOne(const std::string &name) const {
  const std::string target = folder + "/" + nameHere(name);
  DG_RETURN_IF_ERROR(download(name, target, identityOf(target, name)));
  return target;
}

Result<std::vector<std::string>> DataCache::fetch(const std::vector<std::string> &names) const {
  std::vector<std::string> paths(names.size());
  if (names.empty())
    return paths;
  if (folder.empty())
    return Status::error(ErrorKind::usage, "{}: say where files of other machines are kept: --data-cache DIR",
                         names[0]);
  DG_RETURN_IF_ERROR(prepareTransfers());
  for (const std::string &name : names)
    if (auto request = makeRequest(name, 0); !request)
      return request.status();
  if (const int error = makeFolders(folder); error != 0)
    return Status::error(ErrorKind::unwritten, "--data-cache {}: cannot be made: {}", folder, std::strerror(error));
  constexpr size_t mostAtOnce = 4;
  std::atomic<size_t> next = 0, firstFailed = names.size();
  Status failure = Status::ok();
  std::mutex mutex;
  auto work = [&] {
    for (size_t i = next++; i < names.size() && i < firstFailed; i = next++) {
      auto path = fetchOne(names[i]);
      if (path) {
        paths[i] = std::move(*path);
        continue;
      }
      std::lock_guard lock(mutex);
      if (i < firstFailed) {
        firstFailed = i;
        failure = path.status();
      }
    }
  };
  std::vector<std::thread> threads;
  for (size_t i = 0; i < std::min(mostAtOnce, names.size()); ++i)
    threads.emplace_back(work);
  for (std::thread &thread : threads)
    thread.join();
  if (!failure)
    return failure;
  return paths;
}

} // namespace dg::data
