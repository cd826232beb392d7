// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/ExportedWeights.h"

#include "runtime/support/FileWriting.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <unistd.h>

namespace dg::checkpoint {

namespace {

/// The parameters of a plan and where they lie in the copy.
struct Copy {
  std::vector<package::TensorSpec> specs;
  package::SafetensorsLayout layout;
};

Result<Copy> layOut(const plan::Plan &plan) {
  Copy copy;
  CheckpointTensors all = tensorsOf(plan);
  for (size_t i = 0; i < all.ids.size(); ++i)
    if (plan.values[all.ids[i]].kind == plan::ValueKind::parameter)
      copy.specs.push_back(std::move(all.specs[i]));
  auto layout = package::layoutSafetensors(copy.specs, {{"model", plan.model.name}});
  if (!layout)
    return layout.status();
  copy.layout = std::move(*layout);
  return copy;
}

/// Returns 0 or errno.
int writeTo(int file, const Copy &copy, const package::Safetensors &tensors) {
  int code = writeAllAt(file, copy.layout.header.data(), copy.layout.header.size(), 0);
  for (size_t i = 0; code == 0 && i < copy.specs.size(); ++i) {
    const std::span<const std::byte> data = tensors.find(copy.specs[i].name)->data;
    code = writeAllAt(file, data.data(), data.size(), copy.layout.offsets[i]);
  }
  if (code == 0 && ::fsync(file) != 0)
    code = errno;
  return code;
}

} // namespace

Result<uint64_t> exportedBytes(const plan::Plan &plan) {
  auto copy = layOut(plan);
  return copy ? Result<uint64_t>(copy->layout.fileBytes) : Result<uint64_t>(copy.status());
}

Result<uint64_t> exportWeights(const Checkpoint &from, const plan::Plan &plan, const std::string &path) {
  auto copy = layOut(plan);
  if (!copy)
    return copy.status();
  const std::string target = followLinks(path), partial = makePartialName(target);
  const int file = makeNewFile(partial);
  int code = file < 0 ? -file : writeTo(file, *copy, from.all());
  if (file >= 0 && ::close(file) != 0 && code == 0)
    code = errno;
  if (code == 0 && std::rename(partial.c_str(), target.c_str()) != 0)
    code = errno;
  if (code == 0)
    code = syncFolder(std::filesystem::path(target).parent_path().string());
  else if (file >= 0)
    ::unlink(partial.c_str());
  if (code != 0)
    return Status::error(ErrorKind::unwritten, "{}: {} bytes cannot be written: {}", path, copy->layout.fileBytes,
                         std::strerror(code));
  return copy->layout.fileBytes;
}

} // namespace dg::checkpoint
