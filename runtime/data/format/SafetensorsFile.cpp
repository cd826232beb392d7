// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/format/SharedMapping.h"
#include "runtime/data/format/TensorFiles.h"
#include "runtime/package/Safetensors.h"
#include "runtime/plan/Elements.h"

namespace dg::data {

Result<Tensor> openSafetensors(const std::string &path, const std::string &name) {
  auto file = mapShared(path);
  if (!file)
    return file.status();
  auto tensors = package::Safetensors::parse((*file)->bytes(), path);
  if (!tensors)
    return tensors.status();
  const package::Tensor *found = tensors->find(name);
  if (!found) {
    std::vector<std::string> names;
    for (const package::Tensor &tensor : tensors->tensors())
      names.push_back(tensor.name);
    return Status::error(ErrorKind::badInput, "{}: has no tensor '{}'; it has {}", path, name, fmt::join(names, ", "));
  }
  auto type = plan::safetensorsType(found->dtype);
  if (!type)
    return Status::error(ErrorKind::badInput, "{}: tensor '{}' is of type {}, which is not read", path, name,
                         found->dtype);
  return Tensor{*type, found->shape, found->data.data(), *file};
}

} // namespace dg::data
