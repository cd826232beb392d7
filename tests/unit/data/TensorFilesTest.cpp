// SPDX-License-Identifier: Apache-2.0
// Proves that every format reads its own files, and that malformed ones are errors with the file's name, never a crash
// or a large allocation.
#include "runtime/data/format/TensorFiles.h"
#include "tests/unit/TemporaryFolder.h"

#include <gtest/gtest.h>
#include <zip.h>
#include <zlib.h>

#include <cstring>

using namespace dg;
using namespace dg::data;
using dg::test::TemporaryFolder;
using namespace std::string_literals;

namespace {

/// IDX of u8, 2 samples of 2x3.
const std::string idxBytes = "\0\0\x08\x03\0\0\0\x02\0\0\0\x02\0\0\0\x03"s + "abcdefghijkl";

std::string gzip(const TemporaryFolder &folder, const std::string &name, const std::string &bytes) {
  gzFile file = gzopen(folder.path(name).c_str(), "wb");
  gzwrite(file, bytes.data(), unsigned(bytes.size()));
  gzclose(file);
  return folder.path(name);
}

std::string npy(const std::string &dict, const std::string &data) {
  std::string header = dict + "\n";
  return "\x93NUMPY\x01\x00"s + char(header.size() & 255) + char(header.size() >> 8) + header + data;
}

void expectBad(const Result<Tensor> &tensor, const std::string &path, const std::string &what) {
  ASSERT_FALSE(tensor);
  EXPECT_EQ(tensor.status().kind(), ErrorKind::badInput);
  EXPECT_NE(tensor.status().message().find(path), std::string::npos) << tensor.status().message();
  EXPECT_NE(tensor.status().message().find(what), std::string::npos) << tensor.status().message();
}

std::string textOf(const Tensor &tensor, size_t bytes) {
  return std::string(reinterpret_cast<const char *>(tensor.data), bytes);
}

} // namespace

TEST(Idx, plainAndCompressed) {
  TemporaryFolder folder;
  for (const std::string &path : {folder.write("images-idx3-ubyte", idxBytes), gzip(folder, "images.gz", idxBytes)}) {
    auto tensor = openIdx(path);
    ASSERT_TRUE(tensor) << tensor.status().message();
    EXPECT_EQ(tensor->type, DType::u8);
    EXPECT_EQ(tensor->shape, (std::vector<int64_t>{2, 2, 3}));
    EXPECT_EQ(textOf(*tensor, 12), "abcdefghijkl");
  }
}

TEST(Idx, wideElementsAreBigEndian) {
  TemporaryFolder folder;
  auto tensor = openIdx(folder.write("ints", "\0\0\x0c\x01\0\0\0\x02\0\0\x01\x02\xff\xff\xff\xff"s));
  ASSERT_TRUE(tensor) << tensor.status().message();
  EXPECT_EQ(tensor->type, DType::i32);
  int32_t values[2];
  std::memcpy(values, tensor->data, 8);
  EXPECT_EQ(values[0], 0x102);
  EXPECT_EQ(values[1], -1);
}

TEST(Idx, malformedFilesAreNamed) {
  TemporaryFolder folder;
  auto bad = [&](const std::string &name, const std::string &bytes, const std::string &what) {
    std::string plain = folder.write(name, bytes);
    expectBad(openIdx(plain), plain, what);
    std::string packed = gzip(folder, name + ".gz", bytes);
    expectBad(openIdx(packed), packed, what);
  };
  bad("empty", "", "not a data file");
  bad("foreign", "hello, world, this is text", "not a data file");
  bad("short-header", idxBytes.substr(0, 9), "truncated");
  bad("short", idxBytes.substr(0, idxBytes.size() - 1), "11 bytes");
  bad("long", idxBytes + "x", "2x2x3");
  bad("type", "\0\0\x0a\x01\0\0\0\x01x"s, "0x0a");
  bad("huge", "\0\0\x0e\x04\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"s, "impossible");
  bad("large", "\0\0\x08\x02\x7f\xff\xff\xff\0\0\x0f\xff"s, "2147483647x4095");
  std::string missing = folder.path("missing");
  expectBad(openIdx(missing), missing, "No such file");
  std::string directory = folder.path("");
  expectBad(openIdx(directory), directory, "regular file");
}

TEST(Idx, damagedGzipIsNamed) {
  TemporaryFolder folder;
  std::string path = gzip(folder, "whole.gz", idxBytes);
  std::ifstream in(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  for (size_t size = 2; size < bytes.size(); ++size) {
    std::string cut = folder.write("cut.gz", bytes.substr(0, size));
    auto tensor = openIdx(cut);
    ASSERT_FALSE(tensor) << "of " << size << " bytes";
    EXPECT_EQ(tensor.status().kind(), ErrorKind::badInput);
  }
  bytes[bytes.size() - 6] ^= 1; // the checksum
  std::string flipped = folder.write("flipped.gz", bytes);
  expectBad(openIdx(flipped), flipped, "damaged");
}

TEST(Npy, readsWhatNumpyWrites) {
  TemporaryFolder folder;
  std::string data(24, '\0');
  float values[6] = {1, 2, 3, 4, 5, 6};
  std::memcpy(data.data(), values, 24);
  auto tensor =
      openNpy(folder.write("a.npy", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", data)));
  ASSERT_TRUE(tensor) << tensor.status().message();
  EXPECT_EQ(tensor->type, DType::f32);
  EXPECT_EQ(tensor->shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(std::memcmp(tensor->data, data.data(), data.size()), 0);
}

TEST(Npy, ourOwnHeaderReadsBack) {
  TemporaryFolder folder;
  for (const std::vector<int64_t> &shape : {std::vector<int64_t>{}, {4}, {2, 3}, {2, 3, 1, 5}})
    for (DType type : {DType::f32, DType::i64, DType::u8}) {
      std::string header = makeNpyHeader(type, shape);
      EXPECT_EQ(header.size() % 64, 0u);
      auto bytes = bytesOf(shape, sizeOf(type));
      auto tensor = openNpy(folder.write("own.npy", header + std::string(size_t(*bytes), 'x')));
      ASSERT_TRUE(tensor) << tensor.status().message();
      EXPECT_EQ(tensor->type, type);
      EXPECT_EQ(tensor->shape, shape);
    }
}

TEST(Npy, bigEndianIsSwapped) {
  TemporaryFolder folder;
  auto tensor = openNpy(
      folder.write("b.npy", npy("{'descr': '>i2', 'fortran_order': False, 'shape': (2,), }", "\x01\x02\x03\x04")));
  ASSERT_TRUE(tensor) << tensor.status().message();
  EXPECT_EQ(textOf(*tensor, 4), "\x02\x01\x04\x03");
}

TEST(Npy, malformedFilesAreNamed) {
  TemporaryFolder folder;
  auto bad = [&](const std::string &bytes, const std::string &what) {
    std::string path = folder.write("bad.npy", bytes);
    expectBad(openNpy(path), path, what);
  };
  std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
  bad("", "not an .npy");
  bad("\x93NUMPX\x01\x00garbage"s, "not an .npy");
  bad("\x93NUMPY\x07\x00\x10\x00 {}"s, "version 7");
  bad("\x93NUMPY\x02\x00\x10\x00"s, "truncated");
  bad("\x93NUMPY\x02\x00\xff\xff\xff\x7f"s + good, "claims");
  bad(npy(good, "1234567"), "7 bytes");
  bad(npy(good, "123456789"), "9 bytes");
  bad(npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", "12345678"), "'|O'");
  bad(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "1234"), "not a plain array");
  bad(npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 1), }", "12345678"), "Fortran");
  bad(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }", ""), "not a plain array");
  bad(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2 3), }", ""), "not a plain array");
  bad(npy("{'descr': '<f4', 'shape': (2,), }", "12345678"), "not a plain array");
  bad(npy(good + good, "12345678"), "not a plain array");
  bad(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 8), }", "12345678"),
      "the header says");
}

TEST(Npz, readsNamedAndOnlyArrays) {
  TemporaryFolder folder;
  std::string array = npy("{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }", "abc");
  auto make = [&](const std::string &name, std::initializer_list<const char *> entries) {
    zip_t *archive = zip_open(folder.path(name).c_str(), ZIP_CREATE, nullptr);
    for (const char *entry : entries)
      zip_file_add(archive, entry, zip_source_buffer(archive, array.data(), array.size(), 0), 0);
    zip_close(archive);
    return folder.path(name);
  };
  std::string one = make("one.npz", {"x.npy"}), two = make("two.npz", {"x.npy", "y.npy"});
  for (const auto &tensor : {openNpz(one, ""), openNpz(one, "x"), openNpz(two, "y")}) {
    ASSERT_TRUE(tensor) << tensor.status().message();
    EXPECT_EQ(textOf(*tensor, 3), "abc");
  }
  expectBad(openNpz(two, ""), two, "x.npy, y.npy");
  expectBad(openNpz(two, "z"), two, "'z'");
  std::string foreign = folder.write("foreign.npz", "not a zip file");
  expectBad(openNpz(foreign, "x"), foreign, "not an .npz");
}

TEST(Npz, truncatedArchivesAreErrors) {
  TemporaryFolder folder;
  std::string array = npy("{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }", "abc");
  std::string path = folder.path("a.npz");
  zip_t *archive = zip_open(path.c_str(), ZIP_CREATE, nullptr);
  zip_file_add(archive, "x.npy", zip_source_buffer(archive, array.data(), array.size(), 0), 0);
  zip_close(archive);
  std::ifstream in(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(openNpz(folder.write("cut.npz", bytes.substr(0, size)), "x")) << size;
}

TEST(Npz, flippedBitsAreFound) {
  TemporaryFolder folder;
  std::string array = npy("{'descr': '|u1', 'fortran_order': False, 'shape': (300,), }", std::string(300, 'a'));
  std::string path = folder.path("a.npz");
  for (zip_int32_t method : {ZIP_CM_STORE, ZIP_CM_DEFLATE}) {
    zip_t *archive = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, nullptr);
    zip_file_add(archive, "x.npy", zip_source_buffer(archive, array.data(), array.size(), 0), 0);
    zip_set_file_compression(archive, 0, method, 0);
    zip_close(archive);
    ASSERT_TRUE(openNpz(path, "x"));
    std::ifstream in(path, std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(in)), {});
    bytes[45] ^= 4;
    EXPECT_FALSE(openNpz(folder.write("flipped.npz", bytes), "x"));
  }
}

TEST(Safetensors, tensorsByName) {
  TemporaryFolder folder;
  std::string json = R"({"x":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]}})";
  std::string path = folder.write("a.safetensors", char(json.size()) + "\0\0\0\0\0\0\0"s + json + "12345678");
  auto tensor = openSafetensors(path, "x");
  ASSERT_TRUE(tensor) << tensor.status().message();
  EXPECT_EQ(tensor->shape, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(textOf(*tensor, 8), "12345678");
  expectBad(openSafetensors(path, "y"), path, "it has x");
  std::string foreign = folder.write("b.safetensors", "text");
  expectBad(openSafetensors(foreign, "x"), foreign, "");
}

TEST(Tokens, inputsAndTheirSuccessorsHaveTheSameSamples) {
  TemporaryFolder folder;
  std::string bytes;
  for (uint16_t token = 0; token < 9; ++token)
    bytes += {char(token), '\0'};
  std::string path = folder.write("t.u16", bytes);
  auto inputs = openTokens(path, DType::u16, 4, 0), labels = openTokens(path, DType::u16, 4, 1);
  ASSERT_TRUE(inputs && labels);
  EXPECT_EQ(inputs->shape, (std::vector<int64_t>{2, 4}));
  EXPECT_EQ(labels->shape, inputs->shape);
  EXPECT_EQ(int(inputs->data[8]), 4);
  EXPECT_EQ(int(labels->data[8]), 5);
  EXPECT_EQ(int(labels->data[14]), 8);
  expectBad(openTokens(path, DType::u16, 9, 0), path, "needs 10");
  std::string odd = folder.write("odd.u16", "abc");
  expectBad(openTokens(odd, DType::u16, 1, 0), odd, "whole number");
}
