// SPDX-License-Identifier: Apache-2.0
// Proves that presets and cluster files are read as written, and that every mistake is named by file, key and value.
#include "partitioner/model/Cluster.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

using namespace dg;
using namespace dg::partitioner;

/// Replaces the first `from` in the JSON of the CPU preset by `to` and returns what the reader says of it.
static std::string messageAfter(const std::string &from, const std::string &to) {
  std::string text = toJson(hostCluster(2));
  size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from << " is not in " << text;
  Result<Cluster> cluster = parseCluster(text.replace(at, from.size(), to), "cluster.json");
  EXPECT_FALSE(cluster);
  if (cluster)
    return "";
  EXPECT_EQ(cluster.status().kind(), ErrorKind::badInput);
  return cluster.status().message();
}

// What toJson writes is what parseCluster reads, for every preset.
TEST(ClusterTest, RoundTrips) {
  for (const char *spec : {"cpu:nodes=4", "a100x8:nodes=64", "h100x8", "cpu:nodes=2,devices=3"}) {
    Result<Cluster> cluster = findCluster(spec);
    ASSERT_TRUE(cluster) << cluster.status().message();
    Result<Cluster> again = parseCluster(toJson(*cluster), "again");
    ASSERT_TRUE(again) << again.status().message();
    EXPECT_EQ(toJson(*again), toJson(*cluster));
    EXPECT_EQ(again->numDevices(), cluster->numDevices());
  }
}

// So are measured kernels and shared cores.
TEST(ClusterTest, RoundTripsMeasurements) {
  Cluster cluster = hostCluster(4);
  cluster.coresPerNode = 2;
  cluster.turnUs = 1.5;
  cluster.sliceUs = 4000;
  cluster.device.busyKernels["dg.matmul"] = {{1.5, 3}};
  cluster.device.kernels["dg.matmul"] = {{1.5, 2}, {100, 120.25}};
  Result<Cluster> again = parseCluster(toJson(cluster), "again");
  ASSERT_TRUE(again) << again.status().message();
  EXPECT_EQ(again->coresPerNode, 2u);
  EXPECT_EQ(again->device.kernels, cluster.device.kernels);
  EXPECT_EQ(again->turnUs, 1.5);
  EXPECT_EQ(again->sliceUs, 4000);
  EXPECT_EQ(again->forRanks(1).device.kernels, cluster.device.kernels);
  EXPECT_EQ(again->forRanks(2).device.kernels, cluster.device.busyKernels);
}

// A preset takes its numbers of nodes and devices.
TEST(ClusterTest, PresetsTakeOptions) {
  EXPECT_EQ(findCluster("cpu:nodes=4")->numDevices(), 4u);
  EXPECT_EQ(findCluster("a100x8:nodes=64")->numDevices(), 512u);
  EXPECT_EQ(findCluster("h100x8:nodes=8,devices=4")->numDevices(), 32u);
  EXPECT_EQ(hostCluster(3).numDevices(), 3u);
  EXPECT_TRUE(hostCluster(3).isSameNode(0, 2));
  EXPECT_FALSE(findCluster("cpu:nodes=4")->isSameNode(0, 1));
}

// A malformed preset is a usage error that shows what was written.
TEST(ClusterTest, RejectsMalformedPresets) {
  for (auto [spec, expected] : std::vector<std::pair<const char *, const char *>>{
           {"cpu:nodes=0", "cluster 'cpu:nodes=0': nodes is '0'; expected a whole number of at least 1"},
           {"cpu:nodes", "cluster 'cpu:nodes': nodes is ''; expected a whole number of at least 1"},
           {"cpu:nodes=4x", "cluster 'cpu:nodes=4x': nodes is '4x'; expected a whole number of at least 1"},
           {"cpu:racks=4", "cluster 'cpu:racks=4': unknown option 'racks=4'; expected nodes=N or devices=N"}}) {
    Result<Cluster> cluster = findCluster(spec);
    ASSERT_FALSE(cluster) << spec;
    EXPECT_EQ(cluster.status().kind(), ErrorKind::usage);
    EXPECT_EQ(cluster.status().message(), expected);
  }
}

// Bad values are named with their key and what was expected.
TEST(ClusterTest, NamesBadValues) {
  EXPECT_EQ(messageAfter("\"nodes\": 1", "\"nodes\": -1"),
            "cluster.json: nodes is -1; expected a whole number from 1 to 1048576");
  EXPECT_EQ(messageAfter("\"nodes\": 1", "\"device_speeds\": [-3], \"nodes\": 1"),
            "cluster.json: device_speeds is [-3]; expected a list of numbers from 1e-09 to 1e+24");
  EXPECT_EQ(messageAfter("\"nodes\": 1", "\"device_speeds\": [1, 2, 3, 4, 5], \"nodes\": 1"),
            "cluster.json: device_speeds is [1,2,3,4,5]; expected one number for each of the 2 devices");
  EXPECT_EQ(messageAfter("\"efficiency\": 0.9", "\"efficiency\": 1.5"),
            "cluster.json: device.efficiency is 1.5; expected a share of the peak, at most 1");
  EXPECT_EQ(messageAfter("\"efficiency\": 0.9", "\"efficiency\": 1e-300"),
            "cluster.json: device.efficiency is 1e-300; expected a number from 1e-09 to 1e+24");
  EXPECT_EQ(messageAfter("\"latency_us\": 0.16", "\"latency_us\": \"fast\""),
            "cluster.json: links.intra_node.latency_us is \"fast\"; expected a number from 0 to 1e+24");
  EXPECT_EQ(messageAfter("\"f64\"", "\"f65\""),
            "cluster.json: device.flops_per_second.f65 is 48000000000.0; expected no such key here; "
            "docs/reference/cluster.md lists the keys");
  EXPECT_EQ(messageAfter("\"nodes\": 1", "\"turn_us\": -0.5, \"nodes\": 1"),
            "cluster.json: turn_us is -0.5; expected a number from 0 to 1e+24");
  EXPECT_EQ(messageAfter("\"nodes\": 1", "\"slice_us\": -4, \"nodes\": 1"),
            "cluster.json: slice_us is -4; expected a number from 0 to 1e+24");
  EXPECT_EQ(messageAfter("\"nodes\": 1", "\"cores_per_node\": 0, \"nodes\": 1"),
            "cluster.json: cores_per_node is 0; expected a whole number from 1 to 65536");
  EXPECT_EQ(messageAfter("\"efficiency\": 0.9", "\"efficiency\": 0.9, \"kernels\": {\"dg.relu\": [[2, 3], [1, 4]]}"),
            "cluster.json: device.kernels.dg.relu is [1,4]; expected a pair of numbers from 1e-09 to 1e+24, the first "
            "larger than that of the pair before");
  EXPECT_EQ(messageAfter("\"efficiency\": 0.9", "\"efficiency\": 0.9, \"kernels\": {\"dg.relu\": []}"),
            "cluster.json: device.kernels.dg.relu is []; expected a list of pairs [roofline us, measured us]");
  EXPECT_EQ(messageAfter("\"efficiency\": 0.9", "\"efficiency\": 0.9, \"kernels\": 7"),
            "cluster.json: device.kernels is 7; expected an object");
  EXPECT_EQ(messageAfter("\"version\": 1", "\"version\": 2"), "cluster.json: version is 2; expected 1");
  EXPECT_EQ(messageAfter("\"device\": {", "\"device\": 3, \"other\": {"),
            "cluster.json: device is 3; expected an object");
}

// Missing keys are named, f32 among the rates too.
TEST(ClusterTest, NamesMissingKeys) {
  EXPECT_EQ(messageAfter("\"memory_bytes\"", "\"memory\""), "cluster.json: key device.memory_bytes is missing; add it");
  EXPECT_EQ(messageAfter("\"f32\"", "\"f16\""), "cluster.json: key device.flops_per_second.f32 is missing; add it");
}

// Text that is not JSON, JSON that is no object, and a file that is not there are errors, not crashes.
TEST(ClusterTest, RejectsForeignFiles) {
  for (const char *text : {"", "{", "[1, 2]", "null", "\xff\xfe", "{\"version\": 1e999}"}) {
    Result<Cluster> cluster = parseCluster(text, "cluster.json");
    ASSERT_FALSE(cluster) << text;
    EXPECT_EQ(cluster.status().message().find("cluster.json: "), 0u) << cluster.status().message();
  }
  Result<Cluster> missing = findCluster("no/such/cluster.json");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.status().kind(), ErrorKind::badInput);
  EXPECT_NE(missing.status().message().find("no/such/cluster.json"), std::string::npos);
}

// A file on disk is read by its path.
TEST(ClusterTest, ReadsFile) {
  std::filesystem::path path = std::filesystem::path(testing::TempDir()) / fmt::format("dg-cluster-{}.json", getpid());
  std::ofstream(path) << toJson(hostCluster(5));
  Result<Cluster> cluster = findCluster(path.string());
  std::filesystem::remove(path);
  ASSERT_TRUE(cluster) << cluster.status().message();
  EXPECT_EQ(cluster->devicesPerNode, 5u);
}

// A cluster has at most as many devices as a mesh has ranks, however they are divided into nodes.
TEST(ClusterTest, LimitsDevices) {
  EXPECT_EQ(findCluster("cpu:nodes=1048576")->numDevices(), 1048576u);
  for (const char *spec : {"cpu:nodes=65536,devices=65536", "cpu:nodes=4000000000", "a100x8:nodes=131073"}) {
    Result<Cluster> cluster = findCluster(spec);
    ASSERT_FALSE(cluster) << spec;
    EXPECT_EQ(cluster.status().kind(), ErrorKind::usage);
    EXPECT_NE(cluster.status().message().find("expected at most 1048576 devices"), std::string::npos)
        << cluster.status().message();
  }
  std::string message = messageAfter("\"nodes\": 1", "\"nodes\": 600000");
  EXPECT_NE(message.find("nodes is 600000; expected at most 1048576 devices, with 2 to a node"), std::string::npos)
      << message;
}
