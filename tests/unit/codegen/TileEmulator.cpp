// SPDX-License-Identifier: Apache-2.0
// Decoding and execution. All runs inside the signal handler: no allocation, no locks.
#include "tests/unit/codegen/TileEmulator.h"

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <immintrin.h>
#include <ucontext.h>
#include <unistd.h>

namespace dg::test {

namespace {

constexpr int numTiles = 8, mostRows = 16, mostRowBytes = 64;

struct Tile {
  int rows = 0, rowBytes = 0;
  alignas(64) uint8_t data[mostRows][mostRowBytes] = {};
};

struct TileFile {
  bool isConfigured = false;
  Tile tiles[numTiles];
};

thread_local TileFile file;
std::atomic<uint64_t> products = 0;
struct sigaction previous;

[[noreturn]] void fail(const uint8_t *at, const char *why) {
  char text[256];
  int length = std::snprintf(text, sizeof text, "tile emulator: %s:", why);
  for (int i = 0; i < 10; ++i)
    length += std::snprintf(text + length, sizeof text - size_t(length), " %02x", at[i]);
  text[length++] = '\n';
  if (write(STDERR_FILENO, text, size_t(length)) < 0) {
  }
  std::abort();
}

/// An instruction in VEX form with three bytes of prefix and a ModRM byte.
struct Instruction {
  const uint8_t *start;
  unsigned prefix, opcode, mod, reg, rm, vvvv;
  bool isWide, isLong;
  unsigned length = 5;
  uint64_t base = 0, index = 0; ///< of a memory operand: base with displacement, and scaled index
};

uint64_t registerOf(const ucontext_t &context, unsigned number) {
  static constexpr int order[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                  REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
  return uint64_t(context.uc_mcontext.gregs[order[number]]);
}

template <typename T> T read(const uint8_t *at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

Instruction decode(const ucontext_t &context) {
  Instruction in;
  const auto *at = reinterpret_cast<const uint8_t *>(context.uc_mcontext.gregs[REG_RIP]);
  in.start = at;
  if (at[0] != 0xc4 || (at[1] & 0x1f) != 2)
    fail(at, "not an instruction of tiles");
  bool extendsReg = !(at[1] & 0x80), extendsIndex = !(at[1] & 0x40), extendsBase = !(at[1] & 0x20);
  in.isWide = at[2] & 0x80;
  in.vvvv = (~unsigned(at[2]) >> 3) & 15;
  in.isLong = at[2] & 4;
  in.prefix = at[2] & 3;
  in.opcode = at[3];
  in.mod = at[4] >> 6;
  in.reg = ((at[4] >> 3) & 7u) | (extendsReg ? 8 : 0);
  in.rm = at[4] & 7;
  if (in.mod == 3) {
    in.rm |= extendsBase ? 8 : 0;
    return in;
  }
  unsigned base = in.rm;
  bool hasBase = true;
  if (in.rm == 4) {
    uint8_t sib = at[in.length++];
    unsigned index = ((sib >> 3) & 7u) | (extendsIndex ? 8 : 0);
    if (index != 4)
      in.index = registerOf(context, index) << (sib >> 6);
    base = sib & 7;
    hasBase = !(base == 5 && in.mod == 0);
  } else if (in.rm == 5 && in.mod == 0) {
    fail(at, "an address relative to the instruction");
  }
  if (hasBase)
    in.base = registerOf(context, base | (extendsBase ? 8 : 0));
  if (in.mod == 1) {
    in.base += uint64_t(int64_t(read<int8_t>(at + in.length)));
    in.length += 1;
  } else if (in.mod == 2 || !hasBase) {
    in.base += uint64_t(int64_t(read<int32_t>(at + in.length)));
    in.length += 4;
  }
  return in;
}

Tile &tileOf(const Instruction &in, unsigned number) {
  if (!file.isConfigured || number >= numTiles || file.tiles[number].rows == 0)
    fail(in.start, "a tile that is not configured");
  return file.tiles[number];
}

void configure(const Instruction &in) {
  const auto *from = reinterpret_cast<const uint8_t *>(in.base + in.index);
  file = TileFile();
  if (from[0] == 0)
    return;
  bool isLegal = from[0] == 1 && from[1] == 0;
  for (int i = 2; i < 16; ++i)
    isLegal &= from[i] == 0;
  for (int i = 0; i < 8; ++i) { // palette 1 has eight tiles: what the form has room for beyond them is 0
    isLegal &= read<uint16_t>(from + 32 + 2 * i) == 0 && from[56 + i] == 0;
    Tile &tile = file.tiles[i];
    tile.rows = from[48 + i], tile.rowBytes = read<uint16_t>(from + 16 + 2 * i);
    isLegal &= tile.rows <= mostRows && tile.rowBytes <= mostRowBytes && (tile.rows == 0) == (tile.rowBytes == 0);
  }
  if (!isLegal)
    fail(in.start, "an illegal configuration");
  file.isConfigured = true;
}

void load(const Instruction &in) {
  Tile &tile = tileOf(in, in.reg);
  std::memset(tile.data, 0, sizeof tile.data);
  for (int row = 0; row < tile.rows; ++row)
    std::memcpy(tile.data[row], reinterpret_cast<const void *>(in.base + uint64_t(row) * in.index),
                size_t(tile.rowBytes));
}

void store(const Instruction &in) {
  const Tile &tile = tileOf(in, in.reg);
  for (int row = 0; row < tile.rows; ++row)
    std::memcpy(reinterpret_cast<void *>(in.base + uint64_t(row) * in.index), tile.data[row], size_t(tile.rowBytes));
}

/// First and second elements of the pairs are summed apart by fused multiply-adds, then both are added to the sum. All
/// round to nearest even, subnormal numbers are 0 as operands and as results.
__attribute__((target("avx512f"))) void multiply(Tile &sums, const Tile &left, const Tile &right) {
  unsigned control = _mm_getcsr();
  _mm_setcsr(0x9fc0); // no traps, nearest even, flush to zero, denormals are zero
  const __m512i high = _mm512_set1_epi32(int(0xffff0000));
  for (int row = 0; row < sums.rows; ++row) {
    __m512 first = _mm512_setzero_ps(), second = _mm512_setzero_ps();
    for (int pair = 0; pair < left.rowBytes / 4; ++pair) {
      __m512i a = _mm512_set1_epi32(read<int32_t>(&left.data[row][4 * pair])), b = _mm512_load_si512(right.data[pair]);
      first = _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_slli_epi32(a, 16)),
                              _mm512_castsi512_ps(_mm512_slli_epi32(b, 16)), first);
      second = _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_and_si512(a, high)),
                               _mm512_castsi512_ps(_mm512_and_si512(b, high)), second);
    }
    __m512 sum = _mm512_add_ps(_mm512_load_ps(sums.data[row]), _mm512_add_ps(first, second));
    __mmask16 columns = __mmask16((1u << (sums.rowBytes / 4)) - 1);
    _mm512_store_ps(sums.data[row], _mm512_maskz_mov_ps(columns, sum));
  }
  _mm_setcsr(control);
}

void product(const Instruction &in) {
  Tile &sums = tileOf(in, in.reg), &left = tileOf(in, in.rm), &right = tileOf(in, in.vvvv);
  bool areDifferent = in.reg != in.rm && in.reg != in.vvvv && in.rm != in.vvvv;
  if (!areDifferent || sums.rows != left.rows || sums.rowBytes != right.rowBytes || left.rowBytes != 4 * right.rows)
    fail(in.start, "tiles that do not fit each other");
  multiply(sums, left, right);
  products.fetch_add(1, std::memory_order_relaxed);
}

void execute(int, siginfo_t *, void *state) {
  auto &context = *static_cast<ucontext_t *>(state);
  Instruction in = decode(context);
  enum { none, p66, pF3, pF2 };
  bool inMemory = in.mod != 3, hasStride = inMemory && in.rm == 4;
  if (in.isWide || in.isLong || (in.opcode != 0x5c && in.vvvv != 0))
    fail(in.start, "not an instruction of tiles");
  if (in.opcode == 0x49 && in.prefix == none && inMemory && in.reg == 0)
    configure(in);
  else if (in.opcode == 0x49 && in.prefix == none && in.reg == 0 && in.rm == 0)
    file = TileFile();
  else if (in.opcode == 0x49 && in.prefix == pF2 && !inMemory && in.rm == 0)
    std::memset(tileOf(in, in.reg).data, 0, sizeof(Tile::data));
  else if (in.opcode == 0x4b && (in.prefix == pF2 || in.prefix == p66) && hasStride)
    load(in);
  else if (in.opcode == 0x4b && in.prefix == pF3 && hasStride)
    store(in);
  else if (in.opcode == 0x5c && in.prefix == pF3 && !inMemory)
    product(in);
  else
    fail(in.start, "not an instruction of tiles");
  context.uc_mcontext.gregs[REG_RIP] += in.length;
}

} // namespace

TileEmulator::TileEmulator() {
  struct sigaction action = {};
  action.sa_sigaction = execute;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGILL, &action, &previous);
}

TileEmulator::~TileEmulator() { sigaction(SIGILL, &previous, nullptr); }

uint64_t TileEmulator::numProducts() { return products; }

} // namespace dg::test
