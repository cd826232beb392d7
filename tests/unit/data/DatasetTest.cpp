// SPDX-License-Identifier: Apache-2.0
// Proves that a data set is checked against the arguments it feeds, and that random sources do not depend on the plan.
#include "runtime/data/Dataset.h"
#include "runtime/support/CounterRandom.h"
#include "tests/unit/TemporaryFolder.h"
#include "tests/unit/data/ReadSample.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

using namespace dg;
using namespace dg::data;
using dg::test::TemporaryFolder;
using namespace std::string_literals;

namespace {

const std::vector<Argument> arguments = {{"x", plan::DType::f32, {1, 2, 2}}, {"y", plan::DType::i64, {}}};

std::string idx(const std::vector<uint8_t> &shape, const std::string &values) {
  std::string bytes = "\0\0\x08"s + char(shape.size());
  for (uint8_t dimension : shape)
    bytes += "\0\0\0"s + char(dimension);
  return bytes + values;
}

void expectError(const Result<Dataset> &dataset, ErrorKind kind, std::initializer_list<const char *> words) {
  ASSERT_FALSE(dataset);
  EXPECT_EQ(dataset.status().kind(), kind) << dataset.status().message();
  for (const char *word : words)
    EXPECT_NE(dataset.status().message().find(word), std::string::npos) << dataset.status().message();
}

float floatAt(const Dataset &dataset, int64_t sample, size_t element) {
  float row[4];
  EXPECT_TRUE(test::readSample(dataset, "x", sample, row));
  return row[element];
}

} // namespace

TEST(Dataset, imagesAreScaledAndReshapedAndLabelsKept) {
  TemporaryFolder folder;
  DataSpecs specs;
  specs.sources = {{"x", folder.write("images", idx({3, 2, 2}, "\0\0\0\xff"
                                                               "\0\0\0\x33"
                                                               "\0\0\0\0"s))},
                   {"y", folder.write("labels", idx({3}, "\x07\x08\x09"))}};
  auto dataset = Dataset::open(arguments, specs);
  ASSERT_TRUE(dataset) << dataset.status().message();
  EXPECT_EQ(dataset->numSamples(), 3);
  EXPECT_EQ(floatAt(*dataset, 0, 3), 1.0f);
  EXPECT_EQ(floatAt(*dataset, 1, 3), 0.2f);
  int64_t label = 0;
  EXPECT_TRUE(test::readSample(*dataset, "y", 2, &label));
  EXPECT_EQ(label, 9);
  EXPECT_EQ(dataset->find("z"), nullptr);
}

TEST(Dataset, shardsFollowEachOther) {
  TemporaryFolder folder;
  std::string first = folder.write("a", idx({1, 2, 2}, "\0\0\0\xff"s)),
              second = folder.write("b", idx({2, 2, 2}, "\xff\0\0\0\0\xff\0\0"s));
  DataSpecs specs;
  specs.sources = {{"x", first + "," + second}, {"y", "randint:10:3"}};
  auto dataset = Dataset::open(arguments, specs);
  ASSERT_TRUE(dataset) << dataset.status().message();
  EXPECT_EQ(floatAt(*dataset, 0, 3), 1.0f);
  EXPECT_EQ(floatAt(*dataset, 1, 0), 1.0f);
  EXPECT_EQ(floatAt(*dataset, 2, 1), 1.0f);
}

// A suffix is of the whole list, or stands on each file; anything between would feed other data than were meant.
TEST(Dataset, aSuffixIsOfTheWholeListOrOfEachFile) {
  TemporaryFolder folder;
  std::string first = folder.write("a.u16", "\0\0\1\0\2\0"s), second = folder.write("b.u16", "\3\0\4\0\5\0"s);
  auto open = [&](const std::string &source) {
    DataSpecs specs;
    specs.sources = {{"y", source}};
    return Dataset::open({{"y", plan::DType::i64, {2}}}, specs);
  };
  auto read = [&](const std::string &source) {
    auto dataset = open(source);
    EXPECT_TRUE(dataset) << dataset.status().message();
    std::vector<int64_t> all(4);
    for (int64_t sample = 0; dataset && sample < 2; ++sample)
      EXPECT_TRUE(test::readSample(*dataset, "y", sample, &all[size_t(2 * sample)]));
    return all;
  };
  EXPECT_EQ(read(first + "," + second), (std::vector<int64_t>{0, 1, 3, 4}));
  EXPECT_EQ(read(first + "," + second + ":+1"), (std::vector<int64_t>{1, 2, 4, 5}));
  EXPECT_EQ(read(first + ":+1," + second + ":+1"), (std::vector<int64_t>{1, 2, 4, 5}));
  expectError(open(first + ":+1," + second), ErrorKind::usage, {"a.u16:+1", "b.u16", "on each"});
  expectError(open(first + ":+1," + second + "," + first + ":+1"), ErrorKind::usage, {"b.u16", "on each"});
  std::string image = folder.write("image", idx({2, 2}, "abcd"));
  expectError(open(image + "," + second + ":+1"), ErrorKind::usage, {"image", "':+1'"});
  expectError(open(first + ":+2"), ErrorKind::usage, {"a.u16:+2", ":+1"});
}

TEST(Dataset, randomSourcesDependOnSeedAndNameOnly) {
  DataSpecs specs;
  specs.seed = 5;
  specs.sources = {{"x", "randn:6x4"}, {"y", "randint:10:6"}};
  auto one = Dataset::open(arguments, specs);
  ASSERT_TRUE(one) << one.status().message();
  EXPECT_EQ(floatAt(*one, 2, 1), normalAt(5, streamOf("data x"), 9));
  int64_t label = 0;
  EXPECT_TRUE(test::readSample(*one, "y", 3, &label));
  EXPECT_EQ(label, int64_t(integerAt(5, streamOf("data y"), 3, 10)));
}

TEST(Dataset, whatDoesNotMatchIsNamed) {
  TemporaryFolder folder;
  std::string image = folder.write("image", idx({2, 3}, "abcdef"));
  auto open = [&](std::map<std::string, std::string> sources) {
    DataSpecs specs;
    specs.sources = std::move(sources);
    return Dataset::open(arguments, specs);
  };
  expectError(open({{"x", image}, {"y", "randint:10:2"}}), ErrorKind::badInput, {image.c_str(), "2x3", "1x2x2"});
  expectError(open({{"x", "randn:5x4"}, {"y", "randint:10:6"}}), ErrorKind::badInput, {"5", "6", "agree"});
  expectError(open({{"x", "randn:5x4"}}), ErrorKind::usage, {"'y'", "--data"});
  expectError(open({{"x", "randn:5x4"}, {"y", "randint:10:5"}, {"z", "randn:5"}}), ErrorKind::usage, {"'z'", "x, y"});
  expectError(open({{"x", "randn:5x4"}, {"y", "randn:5"}}), ErrorKind::badInput, {"'y'", "f32", "i64"});
  expectError(open({{"x", "randn:5x"}, {"y", "randint:10:5"}}), ErrorKind::usage, {"randn:5x"});
  expectError(open({{"x", "randn:5x4"}, {"y", "randint:0:5"}}), ErrorKind::usage, {"randint"});
  expectError(open({{"x", "randn:99999999999x99999999999x4"}, {"y", "randint:10:5"}}), ErrorKind::usage, {"x"});
  expectError(open({{"x", "/nonexistent"}, {"y", "randint:10:5"}}), ErrorKind::badInput, {"/nonexistent"});
  expectError(open({{"x", folder.write("none", idx({0, 2, 2}, ""))}, {"y", "randint:10:5"}}), ErrorKind::badInput,
              {"no samples"});
}

// Equal numbers of elements are not equal shapes: channels last would be read as channels first.
TEST(Dataset, shapesMustMatchOrAConversionIsAskedFor) {
  TemporaryFolder folder;
  auto open = [&](const std::string &source, std::vector<int64_t> shape, bool isWhole = false) {
    DataSpecs specs;
    specs.sources = {{"x", source}};
    return Dataset::open({{"x", plan::DType::u8, std::move(shape), 0, isWhole}}, specs);
  };
  auto read = [&](const std::string &source, const std::vector<int64_t> &shape, bool isWhole = false) {
    auto dataset = open(source, shape, isWhole);
    EXPECT_TRUE(dataset) << dataset.status().message();
    std::string row(12, '?');
    EXPECT_TRUE(dataset && test::readSample(*dataset, "x", 0, row.data()));
    return row;
  };
  std::string hwc = folder.write("hwc", idx({1, 2, 2, 3}, "rgbRGBxyzXYZ")),
              grey = folder.write("grey", idx({1, 3, 4}, "abcdefghijkl"));
  expectError(open(hwc, {3, 2, 2}), ErrorKind::badInput, {"1x2x2x3", "3x2x2", "'x'", ":nhwc"});
  EXPECT_EQ(read(hwc + ":nhwc", {3, 2, 2}), "rRxXgGyYbBzZ");
  EXPECT_EQ(read(hwc + ":nhwc", {1, 3, 2, 2}, true), "rRxXgGyYbBzZ");
  EXPECT_EQ(read(hwc + "," + hwc + ":nhwc", {3, 2, 2}), "rRxXgGyYbBzZ");
  EXPECT_EQ(read(hwc, {2, 2, 3}), "rgbRGBxyzXYZ");
  expectError(open(hwc + ":nhwc", {2, 2, 3}), ErrorKind::badInput, {"1x2x2x3", "3x2x2", "2x2x3"});
  expectError(open(grey + ":nhwc", {3, 4}), ErrorKind::badInput, {"1x3x4", "height"});
  // Ones do not order anything, and neither does an argument that is a plain list.
  EXPECT_EQ(read(grey, {1, 3, 4}), "abcdefghijkl");
  EXPECT_EQ(read(grey, {3, 4, 1}), "abcdefghijkl");
  EXPECT_EQ(read(grey, {12}), "abcdefghijkl");
  // A list does not say how it was made.
  std::string flat = folder.write("flat", idx({1, 12}, "abcdefghijkl"));
  expectError(open(flat, {3, 4}), ErrorKind::badInput, {"1x12", "3x4", ":reshape"});
  expectError(open(grey, {4, 3}), ErrorKind::badInput, {"1x3x4", "4x3", ":reshape"});
  EXPECT_EQ(read(flat + ":reshape", {3, 4}), "abcdefghijkl");
  EXPECT_EQ(read(flat + ":reshape", {1, 3, 4}, true), "abcdefghijkl");
  expectError(open(flat + ":reshape", {3, 5}), ErrorKind::badInput, {"1x12", "3x5"});
}

// An element that kernels use as a place in a table is refused, with its file and place, before anything runs.
TEST(Dataset, indicesOutsideTheirTableAreNamed) {
  TemporaryFolder folder;
  auto open = [&](const std::string &source, plan::DType type, int64_t bound) {
    DataSpecs specs;
    specs.sources = {{"y", source}};
    return Dataset::open({{"y", type, {2}, bound}}, specs);
  };
  std::string good = folder.write("good", idx({2, 2}, "\0\1\2\3"s)),
              bad = folder.write("bad", idx({2, 2}, "\0\1\2\4"s));
  for (plan::DType type : {plan::DType::i32, plan::DType::i64, plan::DType::u8}) {
    EXPECT_TRUE(open(good, type, 4));
    EXPECT_TRUE(open(bad, type, 0));
    expectError(open(good + "," + bad, type, 4), ErrorKind::badInput,
                {bad.c_str(), "sample 1 holds 4 at element 1", "'y'", "0 to 3"});
  }
  expectError(open(folder.write("negative", "\0\0\x09\2\0\0\0\1\0\0\0\2\1\xfe"s), plan::DType::i32, 4),
              ErrorKind::badInput, {"sample 0 holds -2 at element 1"});
}

// A set that takes long to read is opened without reading it: what is wrong behind its beginning is refused when it is
// fed, by the same words.
TEST(Dataset, indicesOfALargeSetAreCheckedAsTheyAreRead) {
  TemporaryFolder folder;
  constexpr int64_t length = 1 << 20, samples = 20;
  std::string path = folder.write("tokens.u16", "");
  std::filesystem::resize_file(path, length * samples * 2);
  std::ofstream(path, std::ios::app | std::ios::binary) << "\x05\0"s;
  DataSpecs specs;
  specs.sources = {{"y", path + ":+1"}};
  auto dataset = Dataset::open({{"y", plan::DType::i32, {length}, 5}}, specs);
  ASSERT_TRUE(dataset) << dataset.status().message();
  ASSERT_EQ(dataset->numSamples(), samples);
  std::vector<std::byte> row(length * 4);
  EXPECT_TRUE(test::readSample(*dataset, "y", samples - 2, row.data()));
  Status refused = test::readSample(*dataset, "y", samples - 1, row.data());
  EXPECT_NE(refused.message().find("sample 19 holds 5 at element 1048575; argument 'y' takes 0 to 4"),
            std::string::npos)
      << refused.message();
}

// Places of ONNX count from the end where they are negative: -4 is the first of 4, -5 is none.
TEST(Dataset, negativeIndicesCountFromTheEndWhereTheyMay) {
  TemporaryFolder folder;
  auto open = [&](const char *bytes, int64_t bound, bool isWhole) {
    DataSpecs specs;
    specs.sources = {{"y", folder.write("places", "\0\0\x09\1\0\0\0\2"s + bytes)}}; // two signed bytes
    std::vector<int64_t> shape(isWhole ? 1 : 0, 2);
    return Dataset::open({{"y", plan::DType::i64, shape, bound, isWhole}}, specs);
  };
  for (bool isWhole : {false, true}) {
    EXPECT_TRUE(open("\x03\xfc", -4, isWhole));
    expectError(open("\x03\xfb", -4, isWhole), ErrorKind::badInput, {"holds -5 at element", "'y' takes -4 to 3"});
    expectError(open("\x03\x04", -4, isWhole), ErrorKind::badInput, {"holds 4 at element", "'y' takes -4 to 3"});
    expectError(open("\x03\xfc", 4, isWhole), ErrorKind::badInput, {"holds -4 at element", "'y' takes 0 to 3"});
  }
}

TEST(Dataset, normalizationIsParsedStrictly) {
  auto good = parseNormalization("0.5,0.25");
  ASSERT_TRUE(good);
  EXPECT_EQ(good->mean, 0.5f);
  EXPECT_EQ(good->deviation, 0.25f);
  for (const char *text : {"", "1", "1,", ",1", "1,0", "1,-1", "a,b", "1,2,3", "nan,1", "1,inf"})
    EXPECT_FALSE(parseNormalization(text)) << text;
  for (const char *text : {"", "x", "=file", "x="})
    EXPECT_FALSE(splitAssignment("--data", text)) << text;
}

TEST(Dataset, channelsHaveTheirOwnMeanAndDeviation) {
  TemporaryFolder folder;
  // Two samples of three channels of 1x2, as bytes: 0, 51, … in fifths of 255.
  const std::string bytes = {0, 51, 102, char(153), char(204), char(255), char(255), char(204), char(153), 102, 51, 0};
  DataSpecs specs;
  specs.sources = {{"x", folder.write("images", idx({2, 3, 1, 2}, bytes))}};
  specs.channelNormalizations["x"] = *parseChannelNormalization("0.5,0.25,0/0.5,0.25,2");
  auto dataset = Dataset::open({{"x", plan::DType::f32, {3, 1, 2}}}, specs);
  ASSERT_TRUE(dataset) << dataset.status().message();
  const float means[] = {0.5f, 0.25f, 0}, deviations[] = {0.5f, 0.25f, 2};
  for (int64_t sample = 0; sample < 2; ++sample) {
    float found[6];
    ASSERT_TRUE(test::readSample(*dataset, "x", sample, found));
    for (size_t i = 0; i < 6; ++i) {
      float value = float(uint8_t(bytes[size_t(sample) * 6 + i])) / 255;
      EXPECT_EQ(found[i], (value - means[i / 2]) / deviations[i / 2]) << sample << " " << i;
    }
  }
  EXPECT_NE(dataset->describe().find("channels 0.5,0.25,0/0.5,0.25,2"), std::string::npos) << dataset->describe();
  auto refused = Dataset::open({{"x", plan::DType::f32, {2, 3, 1}}}, specs);
  EXPECT_FALSE(refused);
  specs.channelNormalizations["x"].pop_back();
  expectError(Dataset::open({{"x", plan::DType::f32, {3, 1, 2}}}, specs), ErrorKind::usage,
              {"--normalize x=", "found 2 means", "[3, 1, 2]"});
  for (const char *text : {"/", "1/", "/1", "1,2/1", "1/0", "1/-1", "1,2/1,0", "nan/1", "1/inf", "1/2/3", "1,/1,1"})
    EXPECT_FALSE(parseChannelNormalization(text)) << text;
}

TEST(Dataset, itsDescriptionTellsOtherDataApart) {
  TemporaryFolder folder;
  auto described = [&](const std::string &images, std::optional<Normalization> normalization = {}) {
    DataSpecs specs;
    specs.sources = {{"x", folder.write("images", idx({3, 2, 2}, images))},
                     {"y", folder.write("labels", idx({3}, "\x07\x08\x09"))}};
    if (normalization)
      specs.normalizations["x"] = *normalization;
    auto dataset = Dataset::open(arguments, specs);
    EXPECT_TRUE(dataset) << dataset.status().message();
    return dataset->describe();
  };
  const std::string black(12, '\0'), last = std::string(11, '\0') + "\x01", first = "\x01" + std::string(11, '\0');
  EXPECT_EQ(described(black), described(black));
  EXPECT_NE(described(black), described(last));
  EXPECT_NE(described(black), described(first));
  EXPECT_NE(described(black), described(black, Normalization{0, 0.5f})) << "black stays black";
  EXPECT_NE(described(black).find("x 3x1x2x2 f32 "), std::string::npos) << described(black);
}
