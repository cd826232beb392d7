// SPDX-License-Identifier: Apache-2.0
// Fields of the protobuf message, by reflection: numbers, names that exist elsewhere in the model, operators, and parts
// that are removed, doubled or replaced by another part of the same type. Bytes changed at random mostly end in
// protobuf.
#include "ir/onnx/file/Proto.h"
#include "tests/fuzz/Mutation.h"

#include <google/protobuf/message.h>
#include <google/protobuf/reflection.h>

#include <map>
#include <vector>

using namespace dg::fuzz;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

namespace {

struct Parts {
  std::vector<Message *> messages;
  std::vector<std::string> names; ///< every text of the model
};

Parts partsOf(Message &root) {
  Parts parts{{&root}, {""}};
  for (size_t i = 0; i < parts.messages.size(); ++i) {
    Message &message = *parts.messages[i];
    const Reflection &reflection = *message.GetReflection();
    std::vector<const FieldDescriptor *> fields;
    reflection.ListFields(message, &fields);
    for (const FieldDescriptor *field : fields) {
      int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
      for (int index = 0; index < std::min(count, 64); ++index) {
        if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE)
          parts.messages.push_back(field->is_repeated() ? reflection.MutableRepeatedMessage(&message, field, index)
                                                        : reflection.MutableMessage(&message, field));
        else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING)
          parts.names.push_back(field->is_repeated() ? reflection.GetRepeatedString(message, field, index)
                                                     : reflection.GetString(message, field));
      }
    }
  }
  return parts;
}

/// Removes, doubles or swaps an element of a repeated field.
void mutateList(Message &message, const FieldDescriptor *field, Random &random) {
  const Reflection &reflection = *message.GetReflection();
  int count = reflection.FieldSize(message, field);
  if (count == 0)
    return;
  int at = int(random.below(size_t(count)));
  switch (random.below(3)) {
  case 0:
    reflection.SwapElements(&message, field, at, count - 1);
    reflection.RemoveLast(&message, field);
    break;
  case 1:
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE)
      reflection.AddMessage(&message, field)->CopyFrom(reflection.GetRepeatedMessage(message, field, at));
    else if (field->cpp_type() == FieldDescriptor::CPPTYPE_INT64)
      reflection.AddInt64(&message, field, strangeNumber(random));
    else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING)
      reflection.AddString(&message, field, std::string(reflection.GetRepeatedString(message, field, at)));
    break;
  default:
    reflection.SwapElements(&message, field, at, int(random.below(size_t(count))));
  }
}

/// Another value for one element of a repeated field, or for a single one.
void mutateValue(Message &message, const FieldDescriptor *field, const Parts &parts, Random &random) {
  const Reflection &reflection = *message.GetReflection();
  bool isList = field->is_repeated();
  int count = isList ? reflection.FieldSize(message, field) : 1;
  if (count == 0)
    return;
  int at = int(random.below(size_t(count)));
  switch (field->cpp_type()) {
  case FieldDescriptor::CPPTYPE_INT64: {
    int64_t old = isList ? reflection.GetRepeatedInt64(message, field, at) : reflection.GetInt64(message, field);
    int64_t number = random.oneIn(2) ? strangeNumber(random) : int64_t(uint64_t(old) + random.below(3) - 1);
    isList ? reflection.SetRepeatedInt64(&message, field, at, number) : reflection.SetInt64(&message, field, number);
    break;
  }
  case FieldDescriptor::CPPTYPE_INT32: {
    int32_t number = int32_t(strangeNumber(random));
    isList ? reflection.SetRepeatedInt32(&message, field, at, number) : reflection.SetInt32(&message, field, number);
    break;
  }
  case FieldDescriptor::CPPTYPE_FLOAT: {
    float number = random.oneIn(4) ? 1e38f * 10 : float(strangeNumber(random)) / 4;
    isList ? reflection.SetRepeatedFloat(&message, field, at, number) : reflection.SetFloat(&message, field, number);
    break;
  }
  case FieldDescriptor::CPPTYPE_ENUM: {
    const auto *value = field->enum_type()->value(int(random.below(size_t(field->enum_type()->value_count()))));
    isList ? reflection.SetRepeatedEnum(&message, field, at, value) : reflection.SetEnum(&message, field, value);
    break;
  }
  case FieldDescriptor::CPPTYPE_STRING: {
    std::string text = isList ? reflection.GetRepeatedString(message, field, at) : reflection.GetString(message, field);
    if (random.oneIn(4))
      mutateBytes(text, text.size() + 8);
    else
      text = random.oneOf(parts.names);
    isList ? reflection.SetRepeatedString(&message, field, at, text) : reflection.SetString(&message, field, text);
    break;
  }
  case FieldDescriptor::CPPTYPE_MESSAGE: {
    Message &part =
        isList ? *reflection.MutableRepeatedMessage(&message, field, at) : *reflection.MutableMessage(&message, field);
    for (int tries = 0; tries < 20; ++tries)
      if (Message *other = random.oneOf(parts.messages);
          other != &part && other->GetDescriptor() == part.GetDescriptor()) {
        std::string copy = other->SerializeAsString(); // it may contain the part, or be contained
        part.ParseFromString(copy);
        return;
      }
    break;
  }
  default:
    break;
  }
}

std::optional<std::string> mutateModel(std::string_view bytes, Random &random) {
  onnx::ModelProto model;
  if (!model.ParseFromArray(bytes.data(), int(bytes.size())))
    return std::nullopt;
  for (size_t times = 1 + random.below(3); times > 0; --times) {
    Parts parts = partsOf(model);
    Message &message = *random.oneOf(parts.messages);
    std::vector<const FieldDescriptor *> fields;
    message.GetReflection()->ListFields(message, &fields);
    if (fields.empty())
      continue;
    const FieldDescriptor *field = random.oneOf(fields);
    if (random.oneIn(12))
      message.GetReflection()->ClearField(&message, field);
    else if (field->is_repeated() && random.oneIn(2))
      mutateList(message, field, random);
    else
      mutateValue(message, field, parts, random);
  }
  return model.SerializeAsString();
}

} // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
  return mutate(data, size, most, seed, mutateModel);
}
