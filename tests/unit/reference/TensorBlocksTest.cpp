// SPDX-License-Identifier: Apache-2.0
// Proves that blocks cut from a tensor join to it again, and that dealing gives every sample to one part, evenly.
#include "tests/unit/reference/TensorBlocks.h"

#include <gtest/gtest.h>

using namespace dg::ir;

TEST(TensorBlocks, JoinToTheTensorTheyWereCutFrom) {
  HostTensor tensor{{2, 5, 3}, {}};
  for (int i = 0; i < 30; ++i)
    tensor.data.push_back(i);
  for (int64_t dim = 0; dim < 3; ++dim)
    for (int64_t size = 1; size <= 3; ++size) {
      HostTensor joined{tensor.shape, std::vector<double>(30, -1)};
      for (int64_t start = 0; start < tensor.shape[dim]; start += size)
        pasteBlock(joined, cutBlock(tensor, dim, start, size), dim, start);
      EXPECT_EQ(joined.data, tensor.data) << "dimension " << dim << " in blocks of " << size;
    }
  EXPECT_EQ(cutBlock({{3}, {1, 2, 3}}, 0, 2, 2).data, (std::vector<double>{3, 0})) << "zeros past the end";
}

TEST(TensorBlocks, DealsEverySampleOnce) {
  for (int64_t count = 0; count < 12; ++count)
    for (int64_t parts = 1; parts < 6; ++parts) {
      int64_t next = 0;
      for (int64_t index = 0; index < parts; ++index) {
        SampleRange part = partOf({0, count}, parts, index);
        EXPECT_EQ(part.start, next);
        EXPECT_TRUE(part.count == count / parts || part.count == count / parts + 1);
        if (index > 0)
          EXPECT_LE(part.count, partOf({0, count}, parts, index - 1).count) << "the first ones are larger";
        next += part.count;
      }
      EXPECT_EQ(next, count);
    }
}
