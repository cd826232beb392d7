// SPDX-License-Identifier: Apache-2.0
// Proves that samples from folders, archives, tables and images are the ones that were written there, that JPEG pixels
// are djpeg's, and that whatever is wrong is refused with the name of shard and sample.
#include "runtime/data/format/TensorFiles.h"
#include "runtime/data/source/FileList.h"
#include "tests/unit/TemporaryFolder.h"
#include "tests/unit/data/DataWriters.h"
#include "tests/unit/data/ReadSample.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

using namespace dg;
using namespace dg::data;
using namespace std::string_literals;
using test::png;
using test::tarEnd;
using test::tarMember;
using test::TemporaryFolder;

namespace {

Result<Dataset> open(const std::string &source, const Argument &argument) {
  DataSpecs specs;
  specs.sources = {{argument.name, source}};
  return Dataset::open({argument}, specs);
}

Argument bytesOfShape(std::vector<int64_t> shape) { return {"x", plan::DType::u8, std::move(shape)}; }
const Argument label = {"y", plan::DType::i64, {}};

/// All samples, one after another.
template <typename T> std::vector<T> readAll(const Result<Dataset> &dataset, const Argument &argument) {
  std::vector<T> all;
  EXPECT_TRUE(dataset) << dataset.status().message();
  if (!dataset)
    return all;
  const size_t elements = size_t(bytesOf(argument.sampleShape, 1).value());
  for (int64_t sample = 0; sample < dataset->numSamples(); ++sample) {
    all.resize(all.size() + elements);
    Status status = test::readSample(*dataset, argument.name.c_str(), sample, &all[all.size() - elements]);
    EXPECT_TRUE(status) << status.message();
  }
  return all;
}

/// The failure of opening, or else of the first sample that cannot be read.
Status failureOf(const std::string &source, const Argument &argument) {
  auto dataset = open(source, argument);
  if (!dataset)
    return dataset.status();
  std::vector<std::byte> row(size_t(dataset->find(argument.name)->bytesOfSample()));
  for (int64_t sample = 0; sample < dataset->numSamples(); ++sample)
    DG_RETURN_IF_ERROR(test::readSample(*dataset, argument.name.c_str(), sample, row.data()));
  return Status::ok();
}

void expectFailure(const Status &status, ErrorKind kind, std::initializer_list<const char *> words) {
  ASSERT_FALSE(status);
  EXPECT_EQ(status.kind(), kind) << status.message();
  for (const char *word : words)
    EXPECT_NE(status.message().find(word), std::string::npos) << "expected " << word << " in " << status.message();
}

std::string npy(const std::vector<float> &values) {
  return makeNpyHeader(plan::DType::f32, {int64_t(values.size())}) +
         std::string(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(float));
}

std::string contentOf(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The pixels of a binary PNM file.
std::string pixelsOf(const std::string &path) {
  std::istringstream file(contentOf(path));
  std::string magic, width, height, most;
  file >> magic >> width >> height >> most;
  return file.str().substr(size_t(file.tellg()) + 1);
}

} // namespace

TEST(FileList, bracesCountAndList) {
  EXPECT_EQ(*expandBraces("a{08..11}.tar"), (std::vector<std::string>{"a08.tar", "a09.tar", "a10.tar", "a11.tar"}));
  EXPECT_EQ(*expandBraces("{9..11}"), (std::vector<std::string>{"9", "10", "11"}));
  EXPECT_EQ(*expandBraces("{a,b}{0..1}"), (std::vector<std::string>{"a0", "a1", "b0", "b1"}));
  EXPECT_EQ(expandBraces("{18446744073709551614..18446744073709551615}")->size(), 2u) << "the largest that there are";
  std::string many;
  for (int i = 0; i < 100'000; ++i)
    many += "{0..0}";
  expectFailure(expandBraces(many).status(), ErrorKind::usage, {"more than 64 braces"});
  EXPECT_EQ(*expandBraces("plain"), (std::vector<std::string>{"plain"}));
  EXPECT_EQ(splitList("a{0,1}.npy,b.npy"), (std::vector<std::string>{"a{0,1}.npy", "b.npy"}));
  for (const char *wrong : {"a{0..1", "a{5..1}", "{0..99999999}", "{x}", "{0..999}{0..999}{0..9}", "{{0..1}}"})
    expectFailure(expandBraces(wrong).status(), ErrorKind::usage, {wrong});
}

TEST(FileList, globsAreSortedAndNothingIsAnError) {
  TemporaryFolder folder;
  for (const char *name : {"b.npy", "a.npy", "c.txt"})
    folder.write(name, "");
  EXPECT_EQ(*expandGlob(folder.path("*.npy")), (std::vector<std::string>{folder.path("a.npy"), folder.path("b.npy")}));
  expectFailure(expandGlob(folder.path("*.tar")).status(), ErrorKind::badInput, {"*.tar", "no file"});
}

TEST(Sources, tarsHoldArraysLabelsTextsAndFields) {
  TemporaryFolder folder;
  const std::string first = tarMember("./d/", "", '5') + tarMember("./d/0.npy", npy({1, 2})) +
                            tarMember("./d/0.cls", "7\n") + tarMember("./d/0.txt", " 5 6\n7") +
                            tarMember("./d/0.json", R"({"a": {"b": [[1.5, 2], [-3]]}, "ok": true})"),
                    second = tarMember("d/1.cls", "8") + tarMember("d/1.npy", npy({3, 4})) +
                             tarMember("d/1.txt", "8 9 10") + tarMember("README", "no sample") +
                             tarMember("d/1.json", R"({"a": {"b": [0, 1e1, 2]}, "ok": false})");
  const std::string one = folder.write("part-00.tar", first + second + tarEnd()),
                    two = folder.write("part-01.tar", first + tarEnd());
  const std::string both = folder.path("part-{00..01}.tar");
  const Argument x = {"x", plan::DType::f32, {2}}, tokens = {"t", plan::DType::i32, {3}},
                 field = {"f", plan::DType::f32, {3}};
  EXPECT_EQ(readAll<float>(open(both + ":npy", x), x), (std::vector<float>{1, 2, 3, 4, 1, 2}));
  EXPECT_EQ(readAll<int64_t>(open(both + ":cls", label), label), (std::vector<int64_t>{7, 8, 7}));
  EXPECT_EQ(readAll<int32_t>(open(one + ":txt", tokens), tokens), (std::vector<int32_t>{5, 6, 7, 8, 9, 10}));
  EXPECT_EQ(readAll<float>(open(one + ":json:a.b", field), field), (std::vector<float>{1.5, 2, -3, 0, 10, 2}));
  EXPECT_EQ(readAll<int64_t>(open(folder.path("part-*.tar:json:ok"), label), label), (std::vector<int64_t>{1, 0, 1}));
  expectFailure(failureOf(one, x), ErrorKind::usage, {"part-00.tar", ":npy", ":cls"});
  expectFailure(failureOf(one + ":jpg", bytesOfShape({3, 8, 8})), ErrorKind::badInput,
                {"part-00.tar:jpg: sample 0 (./d/0) has no .jpg", ".npy, .cls, .txt, .json"});
  expectFailure(failureOf(one + ":json:a.c", field), ErrorKind::badInput, {"sample 0 (./d/0.json)", "no field 'c'"});
  expectFailure(failureOf(one + ":npy", {"x", plan::DType::f32, {3}}), ErrorKind::badInput, {"2x2", "shape 3"});
  expectFailure(failureOf(one + ":txt", {"t", plan::DType::i32, {4}}), ErrorKind::badInput,
                {"sample 0 (./d/0.txt)", "found 3 numbers, expected 4"});
  expectFailure(failureOf(one + ":cls", {"y", plan::DType::i64, {}, 8}), ErrorKind::badInput,
                {"sample 1 (d/1.cls) holds 8", "takes 0 to 7"});
}

TEST(Sources, longNamesOfTarAreRead) {
  TemporaryFolder folder;
  const std::string name = std::string(120, 'n') + "/" + std::string(90, 'm'), record = " path=" + name + ".cls\n";
  const std::string pax = std::to_string(record.size() + 3) + record;
  const std::string path = folder.write("a.tar", tarMember("PaxHeader", pax, 'x') + tarMember("short.cls", "1") +
                                                     tarMember("@LongLink", name + "2.cls\0"s, 'L') +
                                                     tarMember("short.cls", "2") + tarEnd());
  EXPECT_EQ(readAll<int64_t>(open(path + ":cls", label), label), (std::vector<int64_t>{1, 2}));
  expectFailure(failureOf(path + ":cls", {"y", plan::DType::i64, {}, 2}), ErrorKind::badInput, {"mm2.cls) holds 2"});
}

TEST(Sources, damagedAndHostileTarsAreRefused) {
  TemporaryFolder folder;
  const std::string good = tarMember("a.cls", "1");
  auto refuse = [&](const std::string &bytes, std::initializer_list<const char *> words) {
    expectFailure(failureOf(folder.write("bad.tar", bytes) + ":cls", label), ErrorKind::badInput, words);
  };
  refuse("", {"bad.tar", "cut off"});
  refuse(good, {"cut off", "byte 1024"});
  refuse((good + tarEnd()).substr(0, 700), {"cut off"});
  refuse(good.substr(0, 512) + std::string(512, '\0'), {"cut off"});
  refuse("\x1f\x8b" + std::string(2000, 'z'), {"not a tar archive, or a compressed one"});
  refuse(good + std::string(2000, 'z'), {"damaged header", "byte 1024"});
  refuse(good + tarEnd() + good + tarEnd(), {"more follows the end"});
  refuse(tarMember("../a.cls", "1") + tarEnd(), {"'../a.cls'", "outside"});
  refuse(tarMember("/etc/a.cls", "1") + tarEnd(), {"'/etc/a.cls'", "outside"});
  refuse(tarMember("a.cls", "", '2') + tarEnd(), {"'a.cls'", "link"});
  refuse(tarMember("a.cls", "", '3') + tarEnd(), {"'a.cls'", "device"});
  refuse(tarMember("a.cls", "1") + tarMember("a.cls", "2") + tarEnd(), {"sample 0 (a) has two .cls"});
  refuse(tarMember("h", "9 path=x", 'x') + good + tarEnd(), {"damaged long header"});
  refuse(tarMember("a.cls", "one") + tarEnd(), {"sample 0 (a.cls)", "'one'", "whole number"});
  refuse(tarMember("a.cls", "1.5") + tarEnd(), {"'1.5'"});
  refuse(tarEnd(), {"no samples"});
  std::string claims = good;
  claims.replace(124, 11, "77777777777");
  refuse(claims + tarEnd(), {"no header"}); // its sum is of another size
}

TEST(Sources, columnsOfTablesByNameAndByNumber) {
  TemporaryFolder folder;
  const std::string named = folder.write(
                        "t.csv", "\xEF\xBB\xBFname,\"a \"\"b\"\"\",c,d\r\n\"x,\ny\",1,2.5,3\r\nz, 4 ,+5,\"6\"\r\n"),
                    numbers = folder.write("n.csv", "1,2,3\n4,5,6\n"), tabs = folder.write("t.tsv", "k\tv\n1\t2\n");
  const Argument pair = {"x", plan::DType::f32, {2}};
  EXPECT_EQ(readAll<int64_t>(open(named + ":a \"b\"", label), label), (std::vector<int64_t>{1, 4}));
  EXPECT_EQ(readAll<float>(open(named + ":c..d", pair), pair), (std::vector<float>{2.5, 3, 5, 6}));
  EXPECT_EQ(readAll<int64_t>(open(numbers + ":2", label), label), (std::vector<int64_t>{3, 6}));
  EXPECT_EQ(readAll<float>(open(numbers + ":0..1", pair), pair), (std::vector<float>{1, 2, 4, 5}));
  EXPECT_EQ(readAll<int64_t>(open(tabs + ":v", label), label), (std::vector<int64_t>{2}));
  expectFailure(failureOf(named + ":e", label), ErrorKind::badInput, {"t.csv", "no column 'e'", "'name'", "'c'"});
  expectFailure(failureOf(numbers + ":3", label), ErrorKind::badInput, {"no column '3'", "3 columns", "numbers"});
  expectFailure(failureOf(named + ":d..c", pair), ErrorKind::badInput, {"no column 'd..c'"});
  expectFailure(failureOf(named + ":name", label), ErrorKind::badInput, {"row 2", "'name'", "whole number"});
  expectFailure(failureOf(named + ":c", label), ErrorKind::badInput, {"row 2", "'2.5'", "'c'"});
  auto refuse = [&](const std::string &text, std::initializer_list<const char *> words) {
    expectFailure(failureOf(folder.write("bad.csv", text) + ":a", {"x", plan::DType::f32, {}}), ErrorKind::badInput,
                  words);
  };
  refuse("a,b\n1,2\n3\n", {"row 3", "1 cells, expected 2"});
  refuse("a,b\n1,2\n,4\n", {"row 3", "''", "finite number"});
  refuse("a,b\nnan,2\n", {"'nan'"});
  refuse("a,b\n\"1,2\n", {"row 2", "quote"});
  refuse("a,b\n1\"2,3\n", {"row 2", "quote"});
  refuse("a,b\n\"1\"2,3\n", {"row 2", "quote"});
  refuse("", {"no column 'a'"});
  refuse("a,b\n", {"no samples"});
  expectFailure(failureOf(folder.write("t.parquet", "PAR1") + ":a", label), ErrorKind::usage, {"left out", "pyarrow"});
}

TEST(Sources, jpegPixelsAreThoseOfDjpeg) {
  const std::string folder = DG_TEST_IMAGES "/";
  constexpr int64_t height = 21, width = 29;
  if (!DG_TEST_HAS_JPEG) {
    expectFailure(failureOf(folder + "gray.jpg", bytesOfShape({1, height, width})), ErrorKind::usage, {"libjpeg"});
    return;
  }
  auto check = [&](const std::string &source, const std::string &expected, int64_t channels) {
    const Argument last = bytesOfShape({height, width, channels}), first = bytesOfShape({channels, height, width});
    const std::string pixels = pixelsOf(folder + expected);
    ASSERT_EQ(int64_t(pixels.size()), height * width * channels);
    auto rows = readAll<char>(open(folder + source, last), last),
         planes = readAll<char>(open(folder + source, first), first);
    EXPECT_EQ(std::string(rows.begin(), rows.end()), pixels) << source;
    for (int64_t channel = 0; channel < channels; ++channel)
      for (int64_t pixel = 0; pixel < height * width; ++pixel)
        ASSERT_EQ(planes[size_t(channel * height * width + pixel)], pixels[size_t(pixel * channels + channel)])
            << source;
  };
  check("color420.jpg", "color420.pnm", 3);
  check("progressive444.jpg", "progressive444.pnm", 3);
  check("gray.jpg", "gray.pnm", 1);
  check("color420.jpg:gray", "color420-as-gray.pnm", 1);
  expectFailure(failureOf(folder + "color420.jpg", bytesOfShape({3, 20, 29})), ErrorKind::badInput,
                {"color420.jpg", "21 x 29", "20 x 29", ":resize"});
  expectFailure(failureOf(folder + "gray.jpg", bytesOfShape({3, height, width})), ErrorKind::badInput,
                {"1 channel", "3 channels", ":rgb"});
  expectFailure(failureOf(folder + "gray.jpg:rgb", bytesOfShape({1, height, width})), ErrorKind::usage, {":rgb"});
  expectFailure(failureOf(folder + "gray.jpg", bytesOfShape({5, height, width})), ErrorKind::badInput,
                {"1 or 3 channels"});
  expectFailure(failureOf(folder + "gray.jpg:nhwc", bytesOfShape({1, height, width})), ErrorKind::usage, {":nhwc"});
  // Half of an image is not an image.
  TemporaryFolder cut;
  const std::string whole = contentOf(folder + "color420.jpg");
  for (size_t bytes : {whole.size() - 3, whole.size() / 2, size_t(30), size_t(4)})
    expectFailure(failureOf(cut.write("cut.jpg", whole.substr(0, bytes)), bytesOfShape({3, height, width})),
                  ErrorKind::badInput, {"cut.jpg", "damaged JPEG"});
}

TEST(Sources, pngOfEveryKindIsItsPixels) {
  if (!DG_TEST_HAS_PNG)
    GTEST_SKIP() << "libpng was left out of this build";
  TemporaryFolder folder;
  const Argument rgb = bytesOfShape({2, 1, 3}), grey = bytesOfShape({1, 2});
  auto read = [&](const std::string &bytes, const std::string &suffix, const Argument &argument) {
    auto all = readAll<char>(open(folder.write("i.png", bytes) + suffix, argument), argument);
    return std::string(all.begin(), all.end());
  };
  EXPECT_EQ(read(png(1, 2, 2, "abcdef"), "", rgb), "abcdef");
  EXPECT_EQ(read(png(2, 1, 0, "xy"), "", grey), "xy");
  EXPECT_EQ(read(png(2, 1, 0, "\x40", 1), "", grey), "\0\xff"s);
  EXPECT_EQ(read(png(1, 2, 3, "\1\0"s, 8, "abcdef"), "", rgb), "defabc");
  EXPECT_EQ(read(png(1, 2, 0, "xy"), ":rgb", rgb), "xxxyyy");
  EXPECT_EQ(read(png(1, 2, 6, "abc\0def\xff"s), ":rgb", rgb), "abcdef");
  EXPECT_EQ(read(png(2, 1, 4, "x\0y\1"s), ":gray", grey), "xy");
  EXPECT_EQ(read(png(2, 1, 2, "\xff\xff\xff\0\0\xff"s), ":gray", grey), "\xff\x1d"s); // 0.114 · 255
  auto refuse = [&](const std::string &bytes, std::initializer_list<const char *> words) {
    expectFailure(failureOf(folder.write("bad.png", bytes), rgb), ErrorKind::badInput, words);
  };
  refuse(png(1, 2, 6, "abcxdefx"), {"bad.png", "4 channels", ":rgb"});
  refuse(png(1, 2, 2, "abcdefabcdef", 16), {"16 bits"});
  std::string flipped = png(1, 2, 2, "abcdef");
  flipped[flipped.size() - 25] ^= 1;
  refuse(flipped, {"damaged PNG"});
  refuse(png(1, 2, 2, "abcdef").substr(0, 50), {"damaged PNG", "too early"});
  refuse("GIF89a", {"neither JPEG nor PNG"});
  refuse("", {"0 bytes"});
  // A bomb: a megapixel-wide claim in a hundred bytes, where any size would do.
  expectFailure(failureOf(folder.write("bomb.png", png(60000, 60000, 2, "")) + ":resize", rgb), ErrorKind::badInput,
                {"bomb.png", "60000 x 60000", "not decoded"});
}

TEST(Sources, resizingIsLinearBetweenPixelsAndTheirMeanWhereTheyBecomeFewer) {
  if (!DG_TEST_HAS_PNG)
    GTEST_SKIP() << "libpng was left out of this build";
  TemporaryFolder folder;
  auto resized = [&](const std::string &bytes, std::vector<int64_t> shape) {
    const Argument argument = bytesOfShape(std::move(shape));
    return readAll<uint8_t>(open(folder.write("i.png", bytes) + ":resize", argument), argument);
  };
  // Larger: places at 1/4 and 3/4 between the centres of two pixels.
  EXPECT_EQ(resized(png(2, 1, 0, "\x00\x64"s), {1, 4}), (std::vector<uint8_t>{0, 25, 75, 100}));
  // Smaller by 2: weights 1/8, 3/8, 3/8, 1/8 over four pixels, as far as there are any.
  EXPECT_EQ(resized(png(4, 1, 0, "\x00\x00\x70\x70"s), {1, 2}), (std::vector<uint8_t>{16, 96}));
  EXPECT_EQ(resized(png(1, 4, 0, "\x00\x00\x70\x70"s), {2, 1}), (std::vector<uint8_t>{16, 96}));
  // A picture of one colour keeps it, whatever the size.
  EXPECT_EQ(resized(png(7, 5, 2,
                        [] {
                          std::string rows;
                          for (int i = 0; i < 35; ++i)
                            rows += "\xff\x80\x01";
                          return rows;
                        }()),
                    {2, 2, 3}),
            (std::vector<uint8_t>{255, 128, 1, 255, 128, 1, 255, 128, 1, 255, 128, 1}));
}

TEST(Sources, foldersOfClassFoldersGiveImagesAndClasses) {
  if (!DG_TEST_HAS_PNG)
    GTEST_SKIP() << "libpng was left out of this build";
  TemporaryFolder folder;
  for (const char *name : {"b", "a", "B"})
    std::filesystem::create_directory(folder.path(name));
  folder.write("b/2.png", png(1, 1, 0, "2"));
  folder.write("b/1.PNG", png(1, 1, 0, "1"));
  folder.write("a/0.png", png(1, 1, 0, "0"));
  folder.write("B/9.png", png(1, 1, 0, "9"));
  folder.write("b/notes.txt", "not an image");
  folder.write("b/.hidden", "passed over");
  const std::string path = folder.path("");
  const Argument x = bytesOfShape({1, 1, 1});
  auto images = open(path, x), classes = open(path + ":class", label);
  EXPECT_EQ(readAll<char>(images, x), (std::vector<char>{'9', '0', '1', '2'}));
  EXPECT_EQ(readAll<int64_t>(classes, label), (std::vector<int64_t>{0, 1, 2, 2}));
  ASSERT_EQ(classes->notes().size(), 1u);
  EXPECT_NE(classes->notes()[0].find("3 classes: 0 B, 1 a, 2 b"), std::string::npos) << classes->notes()[0];
  ASSERT_EQ(images->notes().size(), 1u);
  EXPECT_NE(images->notes()[0].find("1 files are no .jpg or .png"), std::string::npos) << images->notes()[0];
  expectFailure(failureOf(path + ":class", {"y", plan::DType::i64, {}, 2}), ErrorKind::badInput,
                {"sample 2 (b/1.PNG) holds 2", "takes 0 to 1"});
  folder.write("a/1.png", "nonsense");
  expectFailure(failureOf(path, x), ErrorKind::badInput, {"sample 2 (a/1.png)", "neither JPEG nor PNG"});
  std::filesystem::create_directory(folder.path("empty"));
  expectFailure(failureOf(path, x), ErrorKind::badInput, {"/empty", "no .jpg or .png"});
  expectFailure(failureOf(path, {"x", plan::DType::u8, {7}}), ErrorKind::badInput, {"images cannot feed", "'x'"});
  expectFailure(failureOf(folder.path("a"), x), ErrorKind::badInput, {"/a", "no folder"});
  expectFailure(failureOf(folder.path("a/0.png:class"), label), ErrorKind::usage, {":class"});
}
