// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/SharedMapping.h"
#include "runtime/data/TensorFiles.h"
#include "runtime/package/Safetensors.h"

#include <map>

namespace dg::data {

Result<Tensor> openSafetensors(const std::string &path, const std::string &name) {
  static const std::map<std::string, DType, std::less<>> types = {
      {"BOOL", DType::i1},   {"U8", DType::u8},   {"I8", DType::i8},   {"U16", DType::u16}, {"I16", DType::i16},
      {"U32", DType::u32},   {"I32", DType::i32}, {"U64", DType::u64}, {"I64", DType::i64}, {"F16", DType::f16},
      {"BF16", DType::bf16}, {"F32", DType::f32}, {"F64", DType::f64}};
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
  auto type = types.find(found->dtype);
  if (type == types.end())
    return Status::error(ErrorKind::badInput, "{}: tensor '{}' is of type {}, which is not read", path, name,
                         found->dtype);
  return Tensor{type->second, found->shape, found->data.data(), *file};
}

} // namespace dg::data
