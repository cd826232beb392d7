// SPDX-License-Identifier: Apache-2.0
// Proves that what is written is what is read, and that no text makes the reader crash or accept a wrong plan silently.
#include "runtime/plan/Plan.h"
#include "tests/unit/plan/SamplePlan.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace dg;
using namespace dg::plan;
using Json = nlohmann::ordered_json;

namespace {

/// The message of a plan whose document was changed by `change`; empty if it reads.
template <typename Change> std::string messageAfter(Change change) {
  Json document = Json::parse(toJson(plan::testing::samplePlan()));
  change(document);
  Result<Plan> plan = fromJson(document.dump());
  if (!plan)
    EXPECT_EQ(plan.status().kind(), ErrorKind::badInput);
  return plan.status().message();
}

} // namespace

TEST(PlanJson, RoundTripGivesTheSameText) {
  std::string text = toJson(plan::testing::samplePlan());
  Result<Plan> plan = fromJson(text);
  ASSERT_TRUE(plan) << plan.status().message();
  EXPECT_EQ(toJson(*plan), text);
  EXPECT_TRUE(verify(*plan)) << verify(*plan).message();
}

TEST(PlanJson, EveryFieldSurvives) {
  Plan plan = plan::testing::samplePlan({.stages = 1});
  std::vector<Work> all = {Kernel{"k", {{0, Access::read}, {1, Access::readWrite}, {2, Access::write}}},
                           AllReduce{1, Axis::tensor, 7, {Bracketing::Kind::twoLevel, 4}},
                           AllGather{0, 1, Axis::data, 1, 8},
                           ReduceScatter{1, 0, Axis::pipe, 1, 9},
                           Send{2, 0, 5},
                           Receive{1, 0, 6},
                           Finish{1},
                           Copy{0, 1},
                           Zero{2},
                           Slice{1, 0, Axis::tensor, 1},
                           Loop{3, 5}};
  static_assert(std::variant_size_v<Work> == 11, "one of each above");
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].index(), i);
    plan.tasks[i].work = all[i];
  }
  plan.tasks[0].flops = 1.5e300;
  plan.values[0].init = {Init::Kind::normal, 0.02};
  plan.values[0].name = "a \"quoted\" </script> \xe2\x82\xac name";
  plan.values[1].space = MemorySpace::pinned;
  plan.memory[0].device = DeviceKind::cuda;
  plan.programs[0].role = Role::server;
  Result<Plan> read = fromJson(toJson(plan));
  ASSERT_TRUE(read) << read.status().message();
  EXPECT_EQ(toJson(*read), toJson(plan));
  EXPECT_EQ(read->tasks[0].as<Kernel>()->buffers, plan.tasks[0].as<Kernel>()->buffers);
  EXPECT_EQ(read->tasks[0].flops, 1.5e300);
  const AllReduce *reduce = read->tasks[1].as<AllReduce>();
  ASSERT_TRUE(reduce);
  EXPECT_EQ(std::tuple(reduce->value, reduce->axis, reduce->order, reduce->algorithm.name()),
            std::tuple(1u, Axis::tensor, 7u, std::string("two-level:4")));
  const ReduceScatter *scatter = read->tasks[3].as<ReduceScatter>();
  ASSERT_TRUE(scatter);
  EXPECT_EQ(std::tuple(scatter->from, scatter->to, scatter->axis, scatter->dim, scatter->order),
            std::tuple(1u, 0u, Axis::pipe, 1, 9u));
  EXPECT_EQ(read->tasks[10].as<Loop>()->trips, 5u);
  EXPECT_EQ(read->values[0].name, plan.values[0].name);
  EXPECT_EQ(read->values[0].init.value, 0.02);
  EXPECT_EQ(read->values[1].space, MemorySpace::pinned);
  EXPECT_EQ(read->memory[0].device, DeviceKind::cuda);
  EXPECT_EQ(read->programs[0].role, Role::server);
}

TEST(PlanJson, TopLevelKeysAreTheOnesOfTheDesign) {
  Json document = Json::parse(toJson(plan::testing::samplePlan()));
  std::vector<std::string> keys;
  for (const auto &item : document.items())
    keys.push_back(item.key());
  EXPECT_EQ(keys, (std::vector<std::string>{"version", "model", "mesh", "programs", "ops", "values", "stages",
                                            "schedule", "memory", "predicted", "search"}));
}

TEST(PlanJson, MessagesNameThePath) {
  EXPECT_EQ(messageAfter([](Json &d) { d["ops"][5]["buffers"][0][0] = 9999; }),
            "plan.json: ops[5].buffers[0]: value 9999 does not exist (there are 30)");
  EXPECT_EQ(messageAfter([](Json &d) { d["ops"][5]["kind"] = "teleport"; }).substr(0, 46),
            "plan.json: ops[5].kind: expected one of kernel");
  EXPECT_EQ(messageAfter([](Json &d) { d["ops"][5]["name"] = 3; }),
            "plan.json: ops[5].name: expected a string, found 3");
  EXPECT_EQ(messageAfter([](Json &d) { d["values"][0]["offset"] = -1; }),
            "plan.json: values[0].offset: expected an integer from 0 to 18446744073709551615, found -1");
  EXPECT_EQ(messageAfter([](Json &d) { d["values"][0]["stage"] = 1.5; }),
            "plan.json: values[0].stage: expected an integer from 0 to 4294967295, found 1.5");
  EXPECT_EQ(messageAfter([](Json &d) { d["schedule"]["train"][1][0] = {99, 0}; }),
            "plan.json: schedule.train[1][0]: chunk 99 does not exist (there are 8)");
  EXPECT_EQ(messageAfter([](Json &d) { d["schedule"]["train"][1][0] = {0, 0}; }),
            "plan.json: schedule.train[1][0]: chunk 0 belongs to stage 0, not to stage 1");
  EXPECT_EQ(messageAfter([](Json &d) { d["programs"][0]["name"] = "serve"; }),
            "plan.json: programs[0].name: expected one of train, eval, infer, prepare, found \"serve\"");
  EXPECT_EQ(messageAfter([](Json &d) { d["mesh"]["pipe"] = 0; }),
            "plan.json: mesh.pipe: size 0, expected 1 or more and at most 16777216 ranks");
  EXPECT_EQ(messageAfter([](Json &d) { d["predicted"]["step_ms"] = 1; }), "plan.json: predicted.step_ms: unknown key");
  EXPECT_EQ(messageAfter([](Json &d) { d["search"].erase("gap"); }), "plan.json: search.gap: the key is missing");
  EXPECT_EQ(messageAfter([](Json &d) { d["version"] = 1; }),
            "plan version 1, expected 2: compile the job again with the dgc of this version");
  EXPECT_EQ(messageAfter([](Json &d) { d["ops"][0]["value"] = 9999; }),
            "plan.json: ops[0].value: value 9999 does not exist (there are 30)");
  EXPECT_EQ(messageAfter([](Json &d) { d["ops"][0]["axis"] = "data"; }), "plan.json: ops[0].axis: unknown key");
  EXPECT_EQ(messageAfter([](Json &d) { d["ops"][5]["buffers"][0][1] = "touch"; }),
            "plan.json: ops[5].buffers[0][1]: expected one of read, write, read_write, found \"touch\"");
  EXPECT_EQ(messageAfter([](Json &d) { d["ops"][5]["buffers"][0] = 3; }),
            "plan.json: ops[5].buffers[0]: expected [value, access], found 3");
  EXPECT_EQ(messageAfter([](Json &d) { d["values"][0]["sharding"][0] = "expert"; }),
            "plan.json: values[0].sharding[0]: expected one of pipe, data, tensor, replica, found \"expert\"");
  EXPECT_EQ(messageAfter([](Json &d) { d["values"][0]["space"] = "moon"; }),
            "plan.json: values[0].space: expected one of device, host, pinned, found \"moon\"");
  EXPECT_EQ(messageAfter([](Json &d) { d["memory"][0]["device"] = "tpu"; }),
            "plan.json: memory[0].device: expected one of cpu, cuda, found \"tpu\"");
  EXPECT_EQ(messageAfter([](Json &d) { d["memory"][1].erase("device"); }),
            "plan.json: memory[1].device: the key is missing");
  EXPECT_EQ(messageAfter([](Json &d) { d["programs"][0]["role"] = "king"; }),
            "plan.json: programs[0].role: expected one of worker, server, found \"king\"");
  EXPECT_EQ(messageAfter([](Json &d) {
              for (Json &op : d["ops"])
                if (op["name"] == "loss/all_reduce")
                  op["algorithm"] = "guess";
            }).substr(0, 16),
            "plan.json: ops[5");
  EXPECT_EQ(messageAfter([](Json &d) { d["stages"] = 7; }), "plan.json: stages: expected an array, found 7");
}

TEST(PlanJson, ForeignTextIsRefused) {
  for (const std::string &text : {std::string(), std::string("hello"), std::string("[]"), std::string("{}"),
                                  std::string("{\"version\":\"1\"}"), std::string(1, '\0'), std::string("\xff\xfe"),
                                  std::string(1000000, '['), "{\"version\":1,\"model\":" + std::string(1000000, '[')}) {
    Result<Plan> plan = fromJson(text);
    ASSERT_FALSE(plan);
    EXPECT_EQ(plan.status().kind(), ErrorKind::badInput);
  }
}

TEST(PlanJson, EveryTruncationIsRefused) {
  std::string text = toJson(plan::testing::samplePlan({.stages = 1, .microbatches = 1, .layers = 1}));
  for (size_t length = 0; length < text.size(); length += 7)
    EXPECT_FALSE(fromJson(text.substr(0, length)));
}

TEST(PlanJson, ReplacingAnyLeafNeverCrashesReaderOrVerifier) {
  Json document = Json::parse(toJson(plan::testing::samplePlan({.layers = 1})));
  Json flat = document.flatten();
  const Json replacements[] = {Json(),        Json(-1),       Json(4294967295u), Json(1e308), Json("pipe"),
                               Json::array(), Json::object(), Json(UINT64_MAX),  Json(0),     Json(1),
                               Json(3)};
  size_t accepted = 0, refused = 0, turn = 0;
  for (const auto &item : flat.items())
    for (size_t i = 0; i < 3; ++i) { // each leaf meets three of them in turn
      Json changed = document;
      changed[Json::json_pointer(item.key())] = replacements[turn++ % std::size(replacements)];
      Result<Plan> plan = fromJson(changed.dump());
      if (plan && verify(*plan))
        ++accepted;
      else
        ++refused;
    }
  EXPECT_GT(refused, accepted);
}
