// SPDX-License-Identifier: Apache-2.0
#include "tools/dgc/WriteOutput.h"

#include "runtime/package/Package.h"
#include "runtime/support/FileWriting.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

namespace dg::tools {

Status checkOutput(const std::string &path, const std::vector<std::string> &read) {
  for (const std::string &file : read)
    if (llvm::sys::fs::equivalent(path, file))
      return Status::error(ErrorKind::usage, "-o {}: is {}, which is read: choose another name", path, file);
  llvm::StringRef folder = llvm::sys::path::parent_path(path);
  if (folder.empty())
    folder = ".";
  if (llvm::sys::fs::is_directory(path))
    return Status::error(ErrorKind::usage, "-o {}: is a folder, expected the name of a file, as {}/job.dgx", path,
                         path);
  if (llvm::sys::fs::exists(path) && !llvm::sys::fs::is_regular_file(path))
    return Status::error(ErrorKind::usage, "-o {}: is a device, pipe or socket, expected the name of a file", path);
  if (!llvm::sys::fs::is_directory(folder))
    return Status::error(ErrorKind::usage, "-o {}: there is no folder {}: make it, or choose another", path,
                         folder.str());
  if (auto error = llvm::sys::fs::access(folder, llvm::sys::fs::AccessMode::Write))
    return Status::error(ErrorKind::usage, "-o {}: nothing can be written to {} ({}): choose another folder", path,
                         folder.str(), error.message());
  return Status::ok();
}

Status writeText(const std::string &path, std::string_view text) {
  if (!path.empty())
    return writeFile(path, text);
  llvm::raw_fd_ostream &to = llvm::outs();
  to << text;
  to.flush();
  std::error_code error = to.error();
  to.clear_error(); // else the stream ends the process
  if (error)
    return Status::error(ErrorKind::unwritten, "standard output cannot be written: {}", error.message());
  return Status::ok();
}

Status writeOutput(const compiler::Output &output, const std::string &path, const package::SigningKey *key) {
  if (output.package.empty())
    return writeText(path, output.text);
  std::vector<package::PackageEntry> entries;
  for (const compiler::PackageFile &file : output.package)
    entries.push_back(package::PackageEntry::ofText(file.name, file.bytes));
  DG_RETURN_IF_ERROR(package::writePackage(path, entries, key));
  return writeText("", output.text);
}

} // namespace dg::tools
