// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/SharedMapping.h"
#include "runtime/data/TensorFiles.h"
#include "runtime/package/Safetensors.h"

#include <map>

namespace dg::data {

Result<Tensor> openSafetensors(const std::string &path, const std::string &name) {
  static const std::map<std::string, ElementType, std::less<>> types = {
      {"BOOL", ElementType::boolean}, {"U8", ElementType::u8},   {"I8", ElementType::i8},     {"U16", ElementType::u16},
      {"I16", ElementType::i16},      {"U32", ElementType::u32}, {"I32", ElementType::i32},   {"U64", ElementType::u64},
      {"I64", ElementType::i64},      {"F16", ElementType::f16}, {"BF16", ElementType::bf16}, {"F32", ElementType::f32},
      {"F64", ElementType::f64}};
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
