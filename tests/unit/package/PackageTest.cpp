// SPDX-License-Identifier: Apache-2.0
// Proves that a package gives back what was packed, and that a truncated, altered or foreign file is refused with a
// message and never gives other bytes.
#include "runtime/package/Package.h"
#include "runtime/package/Manifest.h"
#include "tests/unit/TemporaryFolder.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include <fcntl.h>
#include <unistd.h>

using namespace dg;
using namespace dg::package;
using dg::test::TemporaryFolder;

namespace {

const std::map<std::string, std::string> contents = {
    {"plan.json", "{\"version\": 1}"}, {"train.x86-64-v3.so", std::string(5000, '\x7f')}, {"empty", ""}};

Status writeSample(const std::string &path) {
  std::vector<PackageEntry> entries;
  for (const auto &[name, text] : contents)
    entries.push_back(PackageEntry::ofText(name, text));
  return writePackage(path, entries);
}

std::string readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void writeFile(const std::string &path, const std::string &bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), std::streamsize(bytes.size()));
}

/// Whether the package holds exactly what writeSample packed.
bool isSample(const Package &package) {
  if (package.entries().size() != contents.size())
    return false;
  for (const auto &[name, text] : contents) {
    Result<std::string_view> found = package.text(name);
    if (!found || *found != text)
      return false;
  }
  return true;
}

std::string messageOf(const std::string &path) {
  Result<Package> package = Package::open(path);
  EXPECT_FALSE(package);
  if (package)
    return "";
  EXPECT_EQ(package.status().kind(), ErrorKind::badInput);
  EXPECT_EQ(package.status().message().find(path), 0u) << package.status().message();
  return package.status().message();
}

/// A key as `openssl genpkey -algorithm ed25519` writes it, and its public half.
void writeKeys(const std::string &privatePath, const std::string &publicPath, int kind = EVP_PKEY_ED25519) {
  EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_id(kind, nullptr);
  EVP_PKEY *key = nullptr;
  ASSERT_EQ(EVP_PKEY_keygen_init(context), 1);
  ASSERT_EQ(EVP_PKEY_keygen(context, &key), 1);
  for (const auto &[path, isPrivate] : {std::pair(privatePath, true), {publicPath, false}}) {
    FILE *file = std::fopen(path.c_str(), "w");
    ASSERT_NE(file, nullptr);
    EXPECT_EQ(isPrivate ? PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr)
                        : PEM_write_PUBKEY(file, key),
              1);
    std::fclose(file);
  }
  EVP_PKEY_free(key);
  EVP_PKEY_CTX_free(context);
}

TEST(Package, ASignatureIsOfItsKeyAndOfEveryByte) {
  TemporaryFolder folder;
  writeKeys(folder.path("key.pem"), folder.path("pub.pem"));
  writeKeys(folder.path("other.pem"), folder.path("other-pub.pem"));
  Result<SigningKey> key = SigningKey::read(folder.path("key.pem"));
  ASSERT_TRUE(key) << key.status().message();
  Result<TrustedKeys> own = TrustedKeys::read(folder.path("pub.pem")),
                      other = TrustedKeys::read(folder.path("other-pub.pem"));
  writeFile(folder.path("both.pem"), readFile(folder.path("other-pub.pem")) + readFile(folder.path("pub.pem")));
  Result<TrustedKeys> both = TrustedKeys::read(folder.path("both.pem"));
  ASSERT_TRUE(own && other && both);
  ASSERT_TRUE(writeSample(folder.path("plain.dgx")));
  ASSERT_TRUE(writePackage(folder.path("signed.dgx"), {PackageEntry::ofText("plan.json", "{}")}, &*key));
  Result<Package> plain = Package::open(folder.path("plain.dgx")), signedOne = Package::open(folder.path("signed.dgx"));
  ASSERT_TRUE(plain && signedOne);
  EXPECT_TRUE(signedOne->checkSignature(*own));
  EXPECT_TRUE(signedOne->checkSignature(*both));
  EXPECT_NE(signedOne->checkSignature(*other).message().find("its signature is not of a key"), std::string::npos);
  EXPECT_NE(plain->checkSignature(*own).message().find("is not signed"), std::string::npos);
  // The same contents have the same identity, whoever signed them.
  ASSERT_TRUE(writePackage(folder.path("unsigned.dgx"), {PackageEntry::ofText("plan.json", "{}")}));
  Result<Package> unsignedOne = Package::open(folder.path("unsigned.dgx"));
  ASSERT_TRUE(unsignedOne);
  EXPECT_EQ(unsignedOne->identity(), signedOne->identity());
  // A signature moved to other contents, and every byte of the file turned.
  const std::string bytes = readFile(folder.path("signed.dgx"));
  std::string moved = readFile(folder.path("plain.dgx"));
  moved.replace(moved.size() - commentBytes, commentBytes,
                commentOf(moved.substr(moved.size() - commentBytes, sealBytes),
                          bytes.substr(bytes.size() - commentBytes + sealBytes, signatureBytes)));
  writeFile(folder.path("moved.dgx"), moved);
  Result<Package> movedOne = Package::open(folder.path("moved.dgx"));
  ASSERT_TRUE(movedOne);
  EXPECT_FALSE(movedOne->checkSignature(*own));
  for (size_t at = 0; at < bytes.size(); at += bytes.size() - at > 2 * commentBytes ? 37 : 1) {
    std::string changed = bytes;
    changed[at] = char(changed[at] ^ 1);
    Result<Package> opened = Package::read("x.dgx", std::as_bytes(std::span(changed)));
    EXPECT_TRUE(!opened || !opened->checkSignature(*own)) << at;
  }
}

TEST(Package, KeysOfAnotherKindAreRefused) {
  TemporaryFolder folder;
  writeKeys(folder.path("key.pem"), folder.path("pub.pem"));
  writeKeys(folder.path("x.pem"), folder.path("x-pub.pem"), EVP_PKEY_X25519);
  writeFile(folder.path("text"), "no key");
  writeFile(folder.path("cut.pem"), readFile(folder.path("pub.pem")) + "-----BEGIN PUBLIC KEY-----\nAAAA\n");
  for (const char *bad : {"text", "pub.pem", "x.pem", "missing"})
    EXPECT_EQ(SigningKey::read(folder.path(bad)).status().kind(), ErrorKind::badInput) << bad;
  for (const char *bad : {"text", "key.pem", "x-pub.pem", "cut.pem", "missing"})
    EXPECT_EQ(TrustedKeys::read(folder.path(bad)).status().kind(), ErrorKind::badInput) << bad;
}

/// What is loaded as code is a copy, and the copy is what was hashed.
TEST(Package, ACopyIsCheckedAgain) {
  TemporaryFolder folder;
  std::string path = folder.path("job.dgx");
  ASSERT_TRUE(writeSample(path));
  Result<Package> package = Package::open(path);
  ASSERT_TRUE(package);
  ASSERT_TRUE(package->copyOf("train.x86-64-v3.so"));
  const auto *start = package->entry("plan.json")->data();
  const auto offset =
      package->entry("train.x86-64-v3.so")->data() - start + long(readFile(path).find("{\"version\": 1}"));
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(offset);
  file.put('X');
  file.close();
  EXPECT_NE(package->copyOf("train.x86-64-v3.so").status().message().find("was altered after it was opened"),
            std::string::npos);
}

} // namespace

TEST(Package, RoundTripAlignedAndWithoutLeftovers) {
  TemporaryFolder folder;
  Status written = writeSample(folder.path("job.dgx"));
  ASSERT_TRUE(written) << written.message();
  EXPECT_FALSE(std::filesystem::exists(folder.path("job.dgx.partial")));
  Result<Package> package = Package::open(folder.path("job.dgx"));
  ASSERT_TRUE(package) << package.status().message();
  EXPECT_TRUE(isSample(*package));
  EXPECT_EQ(package->toolVersion().substr(0, 3), "dg ");
  for (const std::string &name : package->entries())
    EXPECT_EQ(reinterpret_cast<uintptr_t>(package->entry(name)->data()) % entryAlignment, 0u) << name;
  EXPECT_FALSE(package->has("model.mlirbc"));
  EXPECT_NE(package->entry("model.mlirbc").status().message().find("no entry 'model.mlirbc'"), std::string::npos);
}

TEST(Package, SpansSurviveAMove) {
  TemporaryFolder folder;
  ASSERT_TRUE(writeSample(folder.path("job.dgx")));
  Result<Package> package = Package::open(folder.path("job.dgx"));
  ASSERT_TRUE(package);
  Package moved = std::move(*package);
  EXPECT_TRUE(isSample(moved));
}

TEST(Package, TheSameEntriesGiveTheSameBytes) {
  TemporaryFolder folder;
  ASSERT_TRUE(writeSample(folder.path("a.dgx")));
  ASSERT_TRUE(writeSample(folder.path("b.dgx")));
  EXPECT_EQ(readFile(folder.path("a.dgx")), readFile(folder.path("b.dgx")));
}

TEST(Package, EveryTruncationIsRefused) {
  TemporaryFolder folder;
  std::string path = folder.path("job.dgx");
  ASSERT_TRUE(writeSample(path));
  for (size_t length = std::filesystem::file_size(path); length-- > 0;) {
    ASSERT_EQ(truncate(path.c_str(), off_t(length)), 0);
    ASSERT_FALSE(Package::open(path)) << "accepted with " << length << " bytes";
  }
}

TEST(Package, EveryByteFlipIsRefused) {
  TemporaryFolder folder;
  std::string path = folder.path("job.dgx");
  ASSERT_TRUE(writeSample(path));
  std::string original = readFile(path);
  int file = open(path.c_str(), O_RDWR);
  ASSERT_GE(file, 0);
  const unsigned char masks[] = {0x01, 0x80, 0xff};
  for (size_t i = 0; i < original.size(); ++i) {
    char flipped = char(original[i] ^ masks[i % 3]);
    ASSERT_EQ(pwrite(file, &flipped, 1, off_t(i)), 1);
    ASSERT_FALSE(Package::open(path)) << "accepted with byte " << i << " of " << original.size() << " flipped";
    ASSERT_EQ(pwrite(file, &original[i], 1, off_t(i)), 1);
  }
  close(file);
}

TEST(Package, ForeignFilesAreNamed) {
  TemporaryFolder folder;
  EXPECT_NE(messageOf(folder.path("missing.dgx")).find("cannot be opened"), std::string::npos);
  EXPECT_NE(messageOf(folder.path("")).find("not a regular file"), std::string::npos);
  writeFile(folder.path("text.dgx"), "module { func.func @loss() }\n");
  EXPECT_NE(messageOf(folder.path("text.dgx")).find("not a DG package"), std::string::npos);
  writeFile(folder.path("empty.dgx"), "");
  EXPECT_NE(messageOf(folder.path("empty.dgx")).find("empty"), std::string::npos);
  // The smallest zip archive: an end-of-directory record.
  writeFile(folder.path("zip.dgx"), std::string("PK\x05\x06", 4) + std::string(18, '\0'));
  EXPECT_NE(messageOf(folder.path("zip.dgx")).find("manifest.json"), std::string::npos);
}

TEST(Package, AnAlteredEntryIsNamed) {
  TemporaryFolder folder;
  std::string path = folder.path("job.dgx");
  ASSERT_TRUE(writeSample(path));
  std::string bytes = readFile(path);
  bytes[bytes.find("\x7f\x7f\x7f") + 100] ^= 4;
  writeFile(path, bytes);
  std::string message = messageOf(path);
  EXPECT_NE(message.find("'train.x86-64-v3.so'"), std::string::npos) << message;
  EXPECT_NE(message.find("compile it again with dgc"), std::string::npos) << message;
}

TEST(Package, APackageNeedsAPlan) {
  TemporaryFolder folder;
  Status status = writePackage(folder.path("job.dgx"), {PackageEntry::ofText("model.mlirbc", "x")});
  ASSERT_FALSE(status);
  EXPECT_NE(status.message().find("without plan.json"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder.path("job.dgx")));
  EXPECT_FALSE(std::filesystem::exists(folder.path("job.dgx.partial")));
}

TEST(Package, AFailedWriteLeavesTheOldPackage) {
  TemporaryFolder folder;
  std::string path = folder.path("job.dgx");
  ASSERT_TRUE(writeSample(path));
  std::string before = readFile(path);
  for (const char *name : {"", "manifest.json", "../escape", "a/b"})
    EXPECT_EQ(writePackage(path, {PackageEntry::ofText(name, "x")}).kind(), ErrorKind::usage);
  EXPECT_EQ(writePackage(path, {PackageEntry::ofText("a", "x"), PackageEntry::ofText("a", "y")}).kind(),
            ErrorKind::usage);
  EXPECT_EQ(readFile(path), before);
  Status status = writeSample(folder.path("no-such-folder/job.dgx"));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.kind(), ErrorKind::unwritten);
}

TEST(Package, AFutureVersionIsRefused) {
  Result<Manifest> manifest = manifestFromJson("{\"version\": 3, \"shape\": \"unknown\"}", "job.dgx");
  ASSERT_FALSE(manifest);
  EXPECT_EQ(manifest.status().kind(), ErrorKind::badInput);
  EXPECT_EQ(manifest.status().message(),
            "job.dgx: package version 3, this build reads version 2; compile it again with its dgc");
}
