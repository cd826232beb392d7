// SPDX-License-Identifier: Apache-2.0
#include "runtime/support/CacheFolder.h"

#include "runtime/support/FileWriting.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

namespace dg {

static std::string homeFolder() {
  if (const char *home = std::getenv("HOME"))
    return home;
  const passwd *user = ::getpwuid(::getuid());
  return user && user->pw_dir ? user->pw_dir : "";
}

std::string cacheFolder(const std::string &given) {
  const char *variable = std::getenv("DG_CACHE");
  const std::string wanted = given.empty() && variable ? variable : given;
  if (wanted == "off")
    return "";
  if (!wanted.empty())
    return wanted;
  if (const char *caches = std::getenv("XDG_CACHE_HOME"); caches && *caches)
    return std::string(caches) + "/dg";
  const std::string home = homeFolder();
  return home.empty() ? "" : home + "/.cache/dg";
}

Status makePrivateFolder(const std::string &folder, std::string_view what) {
  std::filesystem::path path = folder;
  if (!path.has_filename()) // a slash at the end
    path = path.parent_path();
  int code = makeFolders(path.parent_path().string());
  if (code == 0 && ::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    code = errno;
  if (code != 0)
    return Status::error(ErrorKind::usage, "folder {} cannot be made: {}", folder, std::strerror(code));
  struct stat facts;
  if (::stat(folder.c_str(), &facts) != 0 || !S_ISDIR(facts.st_mode))
    return Status::error(ErrorKind::usage, "{} is no folder", folder);
  if (facts.st_uid != ::geteuid() || (facts.st_mode & (S_IWGRP | S_IWOTH)))
    return Status::error(ErrorKind::usage,
                         "folder {} can be written by others, who would choose {}: "
                         "own it and make it writable by you alone (chmod go-w)",
                         folder, what);
  return Status::ok();
}

} // namespace dg
