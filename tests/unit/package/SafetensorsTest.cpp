// SPDX-License-Identifier: Apache-2.0
// Proves that a layout that is filled reads back, and that every malformed header is refused.
#include "runtime/package/Safetensors.h"

#include <gtest/gtest.h>

#include <cstring>

using namespace dg;
using namespace dg::package;

namespace {

std::string withHeader(std::string header, size_t dataBytes) {
  uint64_t length = header.size();
  std::string file(reinterpret_cast<const char *>(&length), 8);
  return file + header + std::string(dataBytes, 'd');
}

Status parse(const std::string &file) {
  return Safetensors::parse(std::as_bytes(std::span(file.data(), file.size())), "init.safetensors").status();
}

/// The message of a file with this header and so many bytes of data.
std::string messageOf(const std::string &header, size_t dataBytes) {
  Status status = parse(withHeader(header, dataBytes));
  EXPECT_FALSE(status) << header;
  return status.message();
}

} // namespace

TEST(Safetensors, AFilledLayoutReadsBack) {
  std::vector<TensorSpec> specs = {{"bytes", "U8", {3}},
                                   {"weight", "F32", {2, 3}},
                                   {"scalar", "F64", {}},
                                   {"nothing", "F32", {0, 5}},
                                   {"half \"x\"", "BF16", {1}}};
  Result<SafetensorsLayout> layout = layoutSafetensors(specs, {{"step", "7"}});
  ASSERT_TRUE(layout) << layout.status().message();
  std::string file(layout->fileBytes, '?');
  std::memcpy(file.data(), layout->header.data(), layout->header.size());
  for (size_t i = 0; i < specs.size(); ++i)
    std::memset(file.data() + layout->offsets[i], int('a' + i), layout->sizes[i]);
  EXPECT_EQ(layout->header.size() % 64, 0u);
  EXPECT_EQ(file.find('?', layout->header.size()), std::string::npos) << "the layout has a hole";

  auto bytes = std::as_bytes(std::span(file.data(), file.size()));
  Result<Safetensors> read = Safetensors::parse(bytes, "x");
  ASSERT_TRUE(read) << read.status().message();
  EXPECT_EQ(read->metadata().at("step"), "7");
  EXPECT_EQ(read->tensors().size(), specs.size());
  for (size_t i = 0; i < specs.size(); ++i) {
    const Tensor *tensor = read->find(specs[i].name);
    ASSERT_NE(tensor, nullptr) << specs[i].name;
    EXPECT_EQ(tensor->shape, specs[i].shape);
    EXPECT_EQ(tensor->dtype, specs[i].dtype);
    EXPECT_EQ(uint64_t(tensor->data.size()), layout->sizes[i]);
    for (std::byte byte : tensor->data)
      EXPECT_EQ(char(byte), char('a' + i));
    EXPECT_EQ((layout->offsets[i]) % uint64_t(bytesOfDtype(specs[i].dtype)), 0u) << "aligned to its element";
  }
  EXPECT_EQ(read->find("other"), nullptr);
}

TEST(Safetensors, EveryTruncationAndExtensionIsRefused) {
  Result<SafetensorsLayout> layout = layoutSafetensors({{"a", "F32", {4}}, {"b", "U8", {5}}});
  ASSERT_TRUE(layout);
  std::string file = layout->header + std::string(layout->fileBytes - layout->header.size(), 'x');
  ASSERT_TRUE(parse(file)) << parse(file).message();
  for (size_t length = 0; length < file.size(); ++length)
    EXPECT_FALSE(parse(file.substr(0, length))) << length;
  EXPECT_FALSE(parse(file + "x"));
}

TEST(Safetensors, EveryByteFlipOfTheHeaderNeverCrashes) {
  Result<SafetensorsLayout> layout = layoutSafetensors({{"a", "F32", {4}}, {"b", "U8", {5}}}, {{"k", "v"}});
  ASSERT_TRUE(layout);
  std::string file = layout->header + std::string(layout->fileBytes - layout->header.size(), 'x');
  for (size_t i = 0; i < layout->header.size(); ++i)
    for (int value = 0; value < 256; ++value) {
      std::string changed = file;
      changed[i] = char(value);
      Result<Safetensors> read = Safetensors::parse(std::as_bytes(std::span(changed.data(), changed.size())), "x");
      if (read)
        for (const Tensor &tensor : read->tensors())
          ASSERT_LE(tensor.data.size(), 21u);
    }
}

TEST(Safetensors, MalformedHeadersAreNamed) {
  auto has = [](const std::string &message, const char *part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  has(messageOf("[]", 0), "no JSON object");
  has(messageOf("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}", 4),
      "not JSON, stopped at byte 53 of 53");
  has(messageOf("{\"a\":{\"dtype\":\"F31\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4), "unknown dtype 'F31'");
  has(messageOf("{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4), "no list of sizes");
  has(messageOf("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,8]}}", 4), "truncated");
  has(messageOf("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", 4), "do not lie");
  has(messageOf("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4), "do not fit");
  has(messageOf("{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4],\"data_offsets\":[0,0]}}", 0),
      "do not fit");
  has(messageOf("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}", 2), "a hole or an overlap");
  has(messageOf("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                "\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
                1),
      "a hole or an overlap");
  has(messageOf("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}",
                2),
      "occurs twice");
  has(messageOf("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 2), "1 bytes behind");
  has(messageOf("{\"__metadata__\":{\"step\":7}}", 0), "is no string");
  has(messageOf("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],\"extra\":1}}", 1), "exactly");
  uint64_t huge = 100'000'001;
  std::string file(reinterpret_cast<const char *>(&huge), 8);
  has(parse(file + "{}").message(), "header of 100000001 bytes");
}

TEST(Safetensors, LayoutsRefuseWhatCannotBeWritten) {
  EXPECT_FALSE(layoutSafetensors({{"a", "F32", {1}}, {"a", "F32", {1}}}));
  EXPECT_FALSE(layoutSafetensors({{"__metadata__", "F32", {1}}}));
  EXPECT_FALSE(layoutSafetensors({{"a", "F33", {1}}}));
  EXPECT_FALSE(layoutSafetensors({{"a", "F32", {-1}}}));
  EXPECT_FALSE(layoutSafetensors({{"a", "F64", {int64_t(1) << 60, 2}}}));
}
