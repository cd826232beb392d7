// SPDX-License-Identifier: Apache-2.0
// Proves SHA-256 and HMAC against the vectors of FIPS 180-4 and RFC 4231, and against lengths around the block size
// whose digests Python's hashlib gave.
#include "runtime/support/Sha256.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

using namespace dg;

namespace {

std::string hex(const Digest &digest) {
  std::string text;
  for (uint8_t byte : digest)
    text += fmt::format("{:02x}", byte);
  return text;
}

TEST(Sha256, standardVectors) {
  EXPECT_EQ("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", hex(sha256("")));
  EXPECT_EQ("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", hex(sha256("abc")));
  EXPECT_EQ("248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
            hex(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")));
}

TEST(Sha256, lengthsAroundTheBlock) {
  const std::pair<size_t, const char *> cases[] = {
      {55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"},
      {56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a"},
      {63, "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34"},
      {64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"},
      {65, "635361c48bb9eab14198e76ea8ab7f1a41685d6ad62aa9146d301d4f17eb0ae0"},
      {119, "31eba51c313a5c08226adf18d4a359cfdfd8d2e816b13f4af952f7ea6584dcfb"},
      {120, "2f3d335432c70b580af0e8e1b3674a7c020d683aa5f73aaaedfdc55af904c21c"},
      {1000, "41edece42d63e8d9bf515a9ba6932e1c20cbc9f5a5d134645adb5db1b9737ea3"}};
  for (auto [length, expected] : cases)
    EXPECT_EQ(expected, hex(sha256(std::string(length, 'a')))) << length;
}

TEST(Sha256, hmac) {
  EXPECT_EQ("f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8",
            hex(hmacSha256("key", "The quick brown fox jumps over the lazy dog")));
  EXPECT_EQ("b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
            hex(hmacSha256(std::string(20, '\x0b'), "Hi There")));
  // A key longer than a block is hashed first.
  EXPECT_EQ("0482265a92ce176b0374f2192380b21e2d40126432c52f865cc0957053ae7a14",
            hex(hmacSha256(std::string(100, 'k'), "m")));
}

TEST(Sha256, comparison) {
  Digest one = sha256("a"), other = one;
  EXPECT_TRUE(isEqual(one, other));
  other[31] ^= 1;
  EXPECT_FALSE(isEqual(one, other));
}

} // namespace
