// SPDX-License-Identifier: Apache-2.0
// Proves that every collective gives, over every transport, group size and route, bit for bit what a plain loop over
// the ranks' inputs in group order gives.
#include "tests/conformance/Ranks.h"

#include "runtime/transport/collectives/Collectives.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <set>
#include <thread>

using namespace dg;
using namespace dg::test;
using plan::DType;

namespace {

struct Case {
  Kind kind;
  int64_t groupSize;
};

class CollectivesTest : public testing::TestWithParam<Case> {
protected:
  std::string run(const Body &body) { return runRanks(GetParam().kind, GetParam().groupSize, body); }
};

std::vector<Case> allCases() {
  std::vector<Case> cases;
  for (Kind kind : {Kind::inProcess, Kind::mappedThreads, Kind::ucxThreads})
    for (int64_t size = 1; size <= 5; ++size)
      cases.push_back({kind, size});
  for (Kind kind : {Kind::ucxProcesses, Kind::mappedProcesses})
    for (int64_t size = 2; size <= 3; ++size)
      cases.push_back({kind, size});
  cases.push_back({Kind::tcpProcesses, 2});
  cases.push_back({Kind::twoHosts, 4});
  cases.push_back({Kind::tlsProcesses, 2});
  cases.push_back({Kind::secureHosts, 4});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, CollectivesTest, testing::ValuesIn(allCases()), [](const auto &info) {
  return fmt::format("{}{}", nameOf(info.param.kind), info.param.groupSize);
});

/// The ranks in another order than their numbers: 1, 2, …, 0.
Group rotated(Transport &transport) {
  Group group;
  for (int64_t i = 0; i < transport.numRanks(); ++i) {
    group.ranks.push_back((i + 1) % transport.numRanks());
    if (group.ranks.back() == transport.rank())
      group.self = size_t(i);
  }
  return group;
}

/// What group member `member` contributes; magnitudes differ, so that another order of addition gives other bits.
/// The loops of the oracle are not under test: ThreadSanitizer, which would make them ten times slower, leaves them
/// out.
template <typename T> [[gnu::no_sanitize_thread]] Buffer<T> inputOf(size_t member, size_t count, uint64_t round) {
  Buffer<T> values(count);
  uint64_t state = (round * 16 + member + 1) * 0x9e3779b97f4a7c15;
  for (T *value = values.data(), *end = value + count; value != end; ++value) {
    state = state * 6364136223846793005 + 1442695040888963407;
    uint64_t bits = state ^ state >> 29;
    if constexpr (std::is_floating_point_v<T>)
      *value = T(int32_t(bits >> 32)) * T(uint64_t(1) << bits % 24);
    else
      *value = T(bits);
  }
  return values;
}

template <typename T> [[gnu::no_sanitize_thread]] T plus(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return a + b;
  else
    return T(uint64_t(a) + uint64_t(b));
}

/// ((v0 + v1) + v2) + …
template <typename T> [[gnu::no_sanitize_thread]] T sumInOrder(const T *values, size_t count) {
  T sum = values[0];
  for (size_t i = 1; i < count; ++i)
    sum = plus(sum, values[i]);
  return sum;
}

/// Adds the pairs at the front until a power of two is left, then the halves.
template <typename T> [[gnu::no_sanitize_thread]] T sumOfHalves(T *values, size_t count) {
  size_t power = std::bit_floor(count), extra = count - power;
  for (size_t i = 0; i < power; ++i)
    values[i] = i < extra ? plus(values[2 * i], values[2 * i + 1]) : values[i + extra];
  for (size_t half = power / 2; half > 0; half /= 2)
    for (size_t i = 0; i < half; ++i)
      values[i] = plus(values[i], values[i + half]);
  return values[0];
}

/// Blocks of `size` in order, then their sums in order.
template <typename T> [[gnu::no_sanitize_thread]] T sumOfBlocks(T *values, size_t count, size_t size) {
  size_t numBlocks = (count + size - 1) / size;
  for (size_t block = 0; block < numBlocks; ++block)
    values[block] = sumInOrder(values + block * size, std::min(size, count - block * size));
  return sumInOrder(values, numBlocks);
}

/// What plan/Bracketing.h says, word by word. A ring cuts the buffer in pieces and begins behind the piece's own rank.
template <typename T>
[[gnu::no_sanitize_thread]] Buffer<T> sumOf(size_t groupSize, size_t count, uint64_t round,
                                            const std::string &algorithm = "rank-order") {
  constexpr size_t maxGroupSize = 8;
  EXPECT_LE(groupSize, maxGroupSize);
  std::vector<Buffer<T>> inputs;
  for (size_t member = 0; member < groupSize; ++member)
    inputs.push_back(inputOf<T>(member, count, round));
  const T *inputsOf[maxGroupSize];
  for (size_t member = 0; member < groupSize; ++member)
    inputsOf[member] = inputs[member].data();
  const bool isRing = algorithm == "ring", isHalving = algorithm == "halving";
  const size_t blockSize = algorithm.starts_with("two-level:") ? std::stoul(algorithm.substr(10)) : groupSize;
  const size_t pieceElements = ((count + groupSize - 1) / groupSize + 63) / 64 * 64;
  Buffer<T> sum(count);
  T *sums = sum.data();
  for (size_t i = 0; i < count; ++i) {
    T values[maxGroupSize];
    const size_t first = isRing ? i / pieceElements + 1 : 0;
    for (size_t member = 0; member < groupSize; ++member)
      values[member] = inputsOf[(first + member) % groupSize][i];
    sums[i] = isHalving ? sumOfHalves(values, groupSize) : sumOfBlocks(values, groupSize, blockSize);
  }
  return sum;
}

std::string runOnce(Communication &communication, void *input, void *output) {
  auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  communication.start(input, output);
  while (true) {
    Progress progress = communication.poll();
    if (progress == Progress::done)
      return "";
    if (progress == Progress::failed)
      return communication.failure().message();
    if (std::chrono::steady_clock::now() > limit)
      return fmt::format("waits for rank {}", communication.waitsFor());
    std::this_thread::yield();
  }
}

template <typename T> bool isSame(const Buffer<T> &a, const Buffer<T> &b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

template <typename T>
std::string checkAllReduce(Transport &transport, DType type, size_t count, const std::string &algorithm,
                           AllReduceRoute route, uint64_t rounds = 2) {
  Group group = rotated(transport), passing = group;
  auto communication =
      makeAllReduce(transport, passing, 0x70000, type, count, *plan::Bracketing::parse(algorithm), route);
  passing.ranks.assign(passing.ranks.size(), -1); // the group that it was made from need not outlive the call
  for (uint64_t round = 0; round < rounds; ++round) {
    Buffer<T> data = inputOf<T>(group.self, count, round), output(count), original = data;
    bool isInPlace = round != 1;
    auto text = runOnce(*communication, data.data(), isInPlace ? data.data() : output.data());
    if (!text.empty())
      return text;
    if (!isSame(isInPlace ? data : output, sumOf<T>(group.ranks.size(), count, round, algorithm)))
      return fmt::format("{} of {}, {}, route {}, round {}: other bits\n", plan::nameOf(type), count, algorithm,
                         int(route), round);
    if (!isInPlace && !isSame(data, original))
      return "the input was changed";
  }
  return "";
}

constexpr AllReduceRoute allRoutes[] = {AllReduceRoute::best, AllReduceRoute::direct, AllReduceRoute::scattered};
constexpr const char *allAlgorithms[] = {"rank-order", "two-level:2", "two-level:3", "ring", "halving"};

TEST_P(CollectivesTest, allReduceOfEveryType) {
  EXPECT_EQ("", run([](Transport &transport) {
              std::string text;
              for (size_t count : {0, 1, 7, 64, 1000, 4097, 9999})
                for (AllReduceRoute route : allRoutes) {
                  text += checkAllReduce<float>(transport, DType::f32, count, "rank-order", route);
                  text += checkAllReduce<double>(transport, DType::f64, count, "rank-order", route);
                  text += checkAllReduce<int64_t>(transport, DType::i64, count, "rank-order", route);
                  text += checkAllReduce<uint8_t>(transport, DType::u8, count, "rank-order", route);
                }
              return text;
            }));
}

// Every bracketing has its own bits, and every route gives them.
TEST_P(CollectivesTest, allReduceInEveryBracketing) {
  EXPECT_EQ("", run([](Transport &transport) {
              std::string text;
              for (const char *algorithm : allAlgorithms)
                for (size_t count : {0, 1, 100, 2049, 9999})
                  for (AllReduceRoute route : allRoutes)
                    text += checkAllReduce<float>(transport, DType::f32, count, algorithm, route);
              return text;
            }));
}

TEST_P(CollectivesTest, allReduceOfMegabytes) {
  EXPECT_EQ("", run([](Transport &transport) {
              std::string text;
              for (const char *algorithm : allAlgorithms)
                text += checkAllReduce<float>(transport, DType::f32, (size_t(1) << 20) / 4 + 3, algorithm,
                                              AllReduceRoute::best, 1);
              return text;
            }));
}

// So large that its pieces travel in segments, more of them than are under way at once, the last smaller than the
// others.
TEST_P(CollectivesTest, allReduceInSegments) {
  EXPECT_EQ("", run([](Transport &transport) {
              return checkAllReduce<double>(transport, DType::f64, (size_t(3) << 20) / 8 + 77, "rank-order",
                                            AllReduceRoute::scattered);
            }));
}

std::string runTogether(std::vector<std::unique_ptr<Communication>> &communications) {
  auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (true) {
    size_t numDone = 0;
    for (auto &communication : communications) {
      Progress progress = communication->poll();
      if (progress == Progress::failed)
        return communication->failure().message();
      if (std::chrono::steady_clock::now() > limit)
        return fmt::format("waits for rank {}", communication->waitsFor());
      numDone += progress == Progress::done;
    }
    if (numDone == communications.size())
      return "";
    std::this_thread::yield();
  }
}

// Large all-reduces that could use 16 requests get along with 14: from half of them on, a segment waits for the one
// before instead of taking requests that others need.
TEST(AllReduces, shareFewRequests) {
  constexpr size_t numSums = 4, count = (size_t(2) << 20) / 4 + 77;
  auto body = [](Transport &transport) -> std::string {
    Group group = {{0, 1}, size_t(transport.rank())};
    std::vector<std::unique_ptr<Communication>> sums;
    std::vector<Buffer<float>> data;
    for (uint64_t i = 0; i < numSums; ++i) {
      data.push_back(inputOf<float>(group.self, count, i));
      sums.push_back(makeAllReduce(transport, group, (i + 1) << 16, DType::f32, count));
      sums.back()->start(data.back().data(), data.back().data());
    }
    std::string text = runTogether(sums);
    transport.cancelAll();
    for (uint64_t i = 0; i < numSums && text.empty(); ++i)
      if (!isSame(data[i], sumOf<float>(2, count, i)))
        text = fmt::format("all-reduce {}: other bits", i);
    return text;
  };
  for (Kind kind : {Kind::inProcess, Kind::tcpProcesses, Kind::tlsThreads})
    EXPECT_EQ("", runRanks(kind, 2, body, 14));
}

// The bracketings are told apart by their bits, or the suite above would prove nothing.
TEST(Bracketings, differ) {
  std::set<std::vector<float>> sums;
  for (const char *algorithm : allAlgorithms) {
    auto sum = sumOf<float>(6, 1000, 0, algorithm);
    sums.insert(std::vector<float>(sum.begin(), sum.end()));
  }
  EXPECT_EQ(sums.size(), std::size(allAlgorithms));
}

// bf16 and f16 of small integers have exact sums, so the oracle is an integer.
TEST_P(CollectivesTest, allReduceOfHalves) {
  EXPECT_EQ("", run([](Transport &transport) -> std::string {
              Group group = rotated(transport);
              size_t n = group.ranks.size();
              for (const char *algorithm : allAlgorithms)
                for (AllReduceRoute route : allRoutes) {
                  plan::Bracketing bracketing = *plan::Bracketing::parse(algorithm);
                  Buffer<_Float16> half(500, _Float16(float(group.self + 1)));
                  Buffer<uint16_t> brain(500, uint16_t(0x3f80)); // 1.0
                  auto text = runOnce(*makeAllReduce(transport, group, 0x10000, DType::f16, 500, bracketing, route),
                                      half.data(), half.data());
                  text += runOnce(*makeAllReduce(transport, group, 0x20000, DType::bf16, 500, bracketing, route),
                                  brain.data(), brain.data());
                  if (!text.empty())
                    return text;
                  const size_t sum = n * (n + 1) / 2;
                  float count = float(n);
                  uint32_t bits;
                  std::memcpy(&bits, &count, 4);
                  for (size_t i = 0; i < 500; ++i)
                    if (float(half[i]) != float(sum) || brain[i] != bits >> 16)
                      return fmt::format("element {}: f16 {}, bf16 {:#x}", i, float(half[i]), brain[i]);
                }
              return "";
            }));
}

TEST_P(CollectivesTest, allGather) {
  EXPECT_EQ("", run([](Transport &transport) -> std::string {
              Group group = rotated(transport);
              size_t n = group.ranks.size();
              for (BlockShape shape : {BlockShape{1, 0}, {1, 1}, {1, 5000}, {7, 3}, {16, 4099}, {0, 5}, {1, 300000}}) {
                auto communication = makeAllGather(transport, group, 0x30000, DType::f32, shape);
                size_t block = shape.outer * shape.inner;
                Buffer<float> wanted(n * block);
                for (size_t member = 0; member < n; ++member) {
                  Buffer<float> part = inputOf<float>(member, block, 0);
                  for (size_t row = 0; row < shape.outer; ++row)
                    for (size_t i = 0; i < shape.inner; ++i)
                      wanted[(row * n + member) * shape.inner + i] = part[row * shape.inner + i];
                }
                for (int round = 0; round < 3; ++round) {
                  Buffer<float> input = inputOf<float>(group.self, block, 0), output(n * block);
                  float *from = input.data();
                  if (round == 2 && shape.outer == 1) { // in place: the input is this rank's block of the output
                    from = output.data() + group.self * block;
                    std::copy(input.begin(), input.end(), from);
                  }
                  if (auto text = runOnce(*communication, from, output.data()); !text.empty())
                    return text;
                  if (!isSame(output, wanted))
                    return fmt::format("{} x {}, round {}: other bits", shape.outer, shape.inner, round);
                }
              }
              return "";
            }));
}

TEST_P(CollectivesTest, reduceScatter) {
  EXPECT_EQ("", run([](Transport &transport) -> std::string {
              Group group = rotated(transport);
              size_t n = group.ranks.size();
              for (BlockShape shape : {BlockShape{1, 0}, {1, 1}, {1, 5000}, {7, 3}, {16, 4099}, {1, 300000}}) {
                auto communication = makeReduceScatter(transport, group, 0x40000, DType::f64, shape);
                size_t whole = shape.outer * n * shape.inner;
                Buffer<double> sum = sumOf<double>(n, whole, 4), wanted(shape.outer * shape.inner);
                for (size_t row = 0; row < shape.outer; ++row)
                  for (size_t i = 0; i < shape.inner; ++i)
                    wanted[row * shape.inner + i] = sum[(row * n + group.self) * shape.inner + i];
                for (int round = 0; round < 3; ++round) {
                  Buffer<double> input = inputOf<double>(group.self, whole, 4), output(wanted.size());
                  bool isInPlace = round == 1;
                  if (auto text = runOnce(*communication, input.data(), isInPlace ? input.data() : output.data());
                      !text.empty())
                    return text;
                  if (isInPlace)
                    output.assign(input.begin(), input.begin() + int64_t(wanted.size()));
                  if (!isSame(output, wanted))
                    return fmt::format("{} x {}, round {}: other bits", shape.outer, shape.inner, round);
                }
              }
              return "";
            }));
}

// One prepared all-reduce of each route runs a hundred times while ranks drift apart, and sums each round's own data.
TEST_P(CollectivesTest, restartsAHundredTimes) {
  EXPECT_EQ("", run([](Transport &transport) -> std::string {
              Group group = rotated(transport);
              auto direct = makeAllReduce(transport, group, 0x10000, DType::f32, 100, {}, AllReduceRoute::direct);
              auto scattered =
                  makeAllReduce(transport, group, 0x20000, DType::f32, 5000, {}, AllReduceRoute::scattered);
              for (uint64_t round = 0; round < 100; ++round) {
                Buffer<float> small = inputOf<float>(group.self, 100, round);
                Buffer<float> large = inputOf<float>(group.self, 5000, round);
                direct->start(small.data(), small.data());
                if (auto text = runOnce(*scattered, large.data(), large.data()); !text.empty())
                  return text;
                Progress progress;
                while ((progress = direct->poll()) == Progress::pending)
                  std::this_thread::yield();
                if (progress == Progress::failed)
                  return direct->failure().message();
                if (!isSame(small, sumOf<float>(group.ranks.size(), 100, round)) ||
                    !isSame(large, sumOf<float>(group.ranks.size(), 5000, round)))
                  return fmt::format("round {}: other bits", round);
              }
              return "";
            }));
}

TEST_P(CollectivesTest, sendAndReceiveAroundARing) {
  EXPECT_EQ("", run([](Transport &transport) -> std::string {
              int64_t n = transport.numRanks(), next = (transport.rank() + 1) % n,
                      previous = (transport.rank() + n - 1) % n;
              for (size_t bytes : {0, 8, 100000}) {
                Buffer<char> sent(bytes, char(transport.rank())), got(bytes, 'x');
                auto send = makeSend(transport, next, 0x60000, bytes);
                auto receive = makeReceive(transport, previous, 0x60000, bytes);
                for (int round = 0; round < 3; ++round) {
                  send->start(sent.data(), nullptr);
                  auto text = runOnce(*receive, nullptr, got.data());
                  while (text.empty() && send->poll() == Progress::pending)
                    std::this_thread::yield();
                  if (!text.empty() || got != Buffer<char>(bytes, char(previous)))
                    return "round " + std::to_string(round) + ": " + text;
                }
              }
              return "";
            }));
}

class CollectiveFailures : public testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(Kinds, CollectiveFailures, testing::Values(Kind::inProcess, Kind::mappedThreads),
                         [](const auto &info) { return nameOf(info.param); });

// A collective that cannot end says for whom it waits, and one whose type has no sum says so.
TEST_P(CollectiveFailures, nameTheRank) {
  for (size_t count : {1, 100000})
    EXPECT_EQ("", runRanks(GetParam(), 3, [count](Transport &transport) -> std::string {
                Group group = {{0, 1, 2}, size_t(transport.rank())};
                Buffer<float> data(count);
                auto noSum = makeAllReduce(transport, group, 0x10000, DType::i1, count);
                noSum->start(data.data(), data.data());
                if (noSum->poll() != Progress::failed || noSum->failure().message().find("i1") == std::string::npos)
                  return "i1 was summed";
                if (transport.rank() == 2)
                  return ""; // never comes
                auto communication = makeAllReduce(transport, group, 0x20000, DType::f32, count);
                communication->start(data.data(), data.data());
                while (communication->poll() == Progress::pending && communication->waitsFor() != 2)
                  std::this_thread::yield();
                transport.cancelAll();
                return "";
              }));
}

// A peer that disagrees on the size is a failure that names the rank and both sizes.
TEST_P(CollectiveFailures, nameOtherSizes) {
  for (size_t count : {4, 100000})
    EXPECT_EQ("", runRanks(GetParam(), 2, [count](Transport &transport) -> std::string {
                Group group = {{0, 1}, size_t(transport.rank())};
                size_t mine = transport.rank() == 0 ? count : count * 2, theirs = 3 * count - mine;
                Buffer<float> data(mine);
                auto communication = makeAllGather(transport, group, 0x10000, DType::f32, {1, mine / 2});
                auto text = runOnce(*communication, data.data(), data.data());
                auto wanted = fmt::format("found a message of {} bytes, expected {}", theirs * 2, mine * 2);
                if (text.find(wanted) == std::string::npos)
                  return "all-gather said: " + text;
                communication = makeAllReduce(transport, group, 0x20000, DType::f32, mine);
                text = runOnce(*communication, data.data(), data.data());
                if (text.find("bytes, expected") == std::string::npos)
                  return "all-reduce said: " + text;
                if (transport.rank() == 0) {
                  (void)runOnce(*makeSend(transport, 1, 0x30000, count * 4), data.data(), nullptr);
                  return "";
                }
                text = runOnce(*makeReceive(transport, 0, 0x30000, count * 8), nullptr, data.data());
                wanted = fmt::format("found a message of {} bytes, expected {}", count * 4, count * 8);
                return text.find(wanted) == std::string::npos ? "the receive said: " + text : "";
              }));
}

// Ranks that share memory refuse a buffer that does not lie in it, instead of having others write somewhere.
TEST(MappedCollectives, refuseForeignBuffers) {
  EXPECT_EQ("", runRanks(Kind::mappedThreads, 2, [](Transport &transport) -> std::string {
              Group group = {{0, 1}, size_t(transport.rank())};
              std::vector<float> foreign(5000);
              auto text =
                  runOnce(*makeAllReduce(transport, group, 0x10000, DType::f32, 5000), foreign.data(), foreign.data());
              text += runOnce(*makeSend(transport, 1 - transport.rank(), 0x20000, 64), foreign.data(), nullptr);
              size_t first = text.find("is not in the memory that it shares");
              bool areBoth =
                  first != std::string::npos && text.find("is not in the memory", first + 1) != std::string::npos;
              return areBoth ? "" : "said: " + text;
            }));
}

// More messages are under way than the ring of a channel holds; each arrives, in order.
TEST(MappedCollectives, manyMessagesUnderWay) {
  for (Kind kind : {Kind::mappedThreads, Kind::mappedProcesses})
    EXPECT_EQ("", runRanks(kind, 2, [](Transport &transport) -> std::string {
                constexpr size_t count = 200;
                Buffer<uint32_t> data(count);
                std::vector<std::unique_ptr<Communication>> sends;
                for (uint32_t i = 0; transport.rank() == 0 && i < count; ++i) {
                  data[i] = i * 7;
                  sends.push_back(makeSend(transport, 1, 0x10000, 4));
                  sends.back()->start(&data[i], nullptr);
                }
                for (size_t numDone = 0; numDone < sends.size();) {
                  numDone = 0;
                  for (auto &send : sends)
                    numDone += send->poll() == Progress::done;
                  std::this_thread::yield();
                }
                for (uint32_t i = 0; transport.rank() == 1 && i < count; ++i) {
                  auto text = runOnce(*makeReceive(transport, 0, 0x10000, 4), nullptr, &data[i]);
                  if (!text.empty() || data[i] != i * 7)
                    return fmt::format("message {} holds {}: {}", i, data[i], text);
                }
                return "";
              }));
}

} // namespace
