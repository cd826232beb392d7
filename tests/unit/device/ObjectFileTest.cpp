// SPDX-License-Identifier: Apache-2.0
// Proves that an object that would act while it is loaded is refused before it is, and that no damage to an object
// makes its reader read elsewhere or the loader run something.
#include "runtime/device/host/ObjectFile.h"

#include "runtime/device/host/ObjectLibrary.h"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <random>

#include <elf.h>

namespace dg {
namespace {

std::vector<std::byte> bytesOf(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> text((std::istreambuf_iterator<char>(file)), {});
  auto *begin = reinterpret_cast<const std::byte *>(text.data());
  return {begin, begin + text.size()};
}

void expectRefused(const std::string &object, const std::string &why) {
  std::vector<std::byte> bytes = bytesOf(fmt::format("{}/libdg_test_{}_object.so", DG_ACTING_OBJECTS, object));
  ASSERT_FALSE(bytes.empty()) << object;
  for (const Status &status :
       {checkObject(bytes, "train.native.so"), ObjectLibrary::load(bytes, "train.native.so").status()}) {
    EXPECT_EQ(status.kind(), ErrorKind::badInput) << object;
    EXPECT_NE(status.message().find("object 'train.native.so' cannot be loaded: " + why), std::string::npos)
        << object << ": " << status.message();
  }
}

TEST(ObjectFileTest, whatWouldActIsRefused) {
  EXPECT_TRUE(checkObject(bytesOf(DG_GOOD_OBJECT), "train.native.so"))
      << checkObject(bytesOf(DG_GOOD_OBJECT), "train.native.so").message();
  expectRefused("constructor", "it has a constructor");
  expectRefused("destructor", "it has a destructor");
  expectRefused("indirect", "it has an indirect function");
  expectRefused("thread_local", "it has a segment of type 0x7");
  expectRefused("needed", "it would load other libraries");
  expectRefused("stack", "it asks for a stack that can be executed");
}

/// Makes the segments that have `flags` and no other writable.
size_t makeWritable(std::vector<std::byte> &bytes, uint32_t flags) {
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  size_t changed = 0;
  for (size_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::byte *place = bytes.data() + header.e_phoff + i * sizeof(segment);
    std::memcpy(&segment, place, sizeof(segment));
    const bool isIt = segment.p_type == PT_LOAD && segment.p_flags == flags;
    if (isIt)
      segment.p_flags |= PF_W;
    else if (segment.p_type == PT_PHDR || segment.p_type == PT_GNU_EH_FRAME)
      segment.p_type = PT_NULL; // which would be refused where it can be written to
    std::memcpy(place, &segment, sizeof(segment));
    changed += isIt;
  }
  return changed;
}

TEST(ObjectFileTest, memoryThatIsWritableAndExecutableIsRefused) {
  std::vector<std::byte> bytes = bytesOf(DG_GOOD_OBJECT);
  ASSERT_GT(makeWritable(bytes, PF_R | PF_X), 0u);
  EXPECT_NE(checkObject(bytes, "x").message().find("both writable and executable"), std::string::npos);
}

// The loader would take the right to write away from whatever lies there, and write its addresses to it.
TEST(ObjectFileTest, partsOutsideOfTheObjectsMemoryAreRefused) {
  const std::vector<std::byte> good = bytesOf(DG_GOOD_OBJECT);
  Elf64_Ehdr header;
  std::memcpy(&header, good.data(), sizeof(header));
  size_t changed = 0;
  for (size_t i = 0; i < header.e_phnum; ++i) {
    const size_t place = header.e_phoff + i * sizeof(Elf64_Phdr);
    Elf64_Phdr segment;
    std::memcpy(&segment, good.data() + place, sizeof(segment));
    if (segment.p_type != PT_GNU_RELRO && segment.p_type != PT_DYNAMIC && segment.p_type != PT_PHDR)
      continue;
    for (uint64_t address : {uint64_t(0x10000000), uint64_t(-4096)}) {
      std::vector<std::byte> bytes = good;
      segment.p_vaddr = address;
      std::memcpy(bytes.data() + place, &segment, sizeof(segment));
      EXPECT_NE(checkObject(bytes, "x").message().find("lies outside of its memory"), std::string::npos)
          << segment.p_type << ": " << checkObject(bytes, "x").message();
      ++changed;
    }
  }
  EXPECT_EQ(changed, 6u);
}

// A relocation could make an indirect function of a symbol, or of the next relocation, after both were checked.
TEST(ObjectFileTest, tablesThatARelocationCouldChangeAreRefused) {
  std::vector<std::byte> bytes = bytesOf(DG_GOOD_OBJECT);
  ASSERT_GT(makeWritable(bytes, PF_R), 0u);
  EXPECT_NE(checkObject(bytes, "x").message().find("its table of names is damaged"), std::string::npos)
      << checkObject(bytes, "x").message();
}

/// Under the sanitizers a read outside of the bytes ends the test: they are on the heap, exactly as long.
TEST(ObjectFileTest, damageIsReadWithinBounds) {
  const std::vector<std::byte> good = bytesOf(DG_GOOD_OBJECT);
  for (size_t length = 0; length < good.size(); length += length < 4096 ? 1 : 61)
    (void)checkObject(std::vector<std::byte>(good.begin(), good.begin() + long(length)), "x");
  const char *text = std::getenv("DG_TEST_SEED");
  const uint64_t seed = text ? std::strtoull(text, nullptr, 10) : std::random_device()();
  SCOPED_TRACE(fmt::format("DG_TEST_SEED={}", seed));
  std::mt19937_64 random(seed);
  size_t refused = 0;
  constexpr int numTries = 20'000;
  for (int i = 0; i < numTries; ++i) {
    std::vector<std::byte> bytes = good;
    for (uint64_t change = 0; change < 1 + random() % 4; ++change) {
      // Half of them where the headers and tables are, some as a whole word.
      const size_t at = random() % (random() % 2 ? std::min<size_t>(bytes.size(), 1024) : bytes.size());
      const size_t width = std::min<size_t>(random() % 2 ? 1 : 8, bytes.size() - at);
      const uint64_t value = random() % 3 == 0 ? ~uint64_t(0) : random();
      std::memcpy(bytes.data() + at, &value, width);
    }
    refused += !checkObject(bytes, "x");
  }
  EXPECT_GT(refused, size_t(numTries) / 10);
}

} // namespace
} // namespace dg
