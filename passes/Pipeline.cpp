// SPDX-License-Identifier: Apache-2.0
#include "passes/Pipeline.h"

#include "passes/Passes.h"
#include "passes/split/SliceSends.h"

#include "mlir/Transforms/Passes.h"

namespace dg::passes {

void buildWholePipeline(mlir::OpPassManager &manager, const PipelineOptions &options) {
  manager.addPass(
      createSetMesh({options.mesh.sizeOf("pipe"), options.mesh.sizeOf("data"), options.mesh.sizeOf("tensor")}));
  // Shapes.
  DeduceTypesOptions deduce;
  deduce.batch = options.batch;
  manager.addPass(createDeduceTypes(deduce));
  // The type of the targets follows from that of the prediction.
  if (options.isTraining && !options.loss.empty()) {
    AddLossOptions loss;
    loss.loss = options.loss;
    manager.addPass(createAddLoss(loss));
  }
  // Before attention is taken apart, while an error can still speak of heads.
  manager.addPass(createCheckMesh());

  if (options.isTraining && (!options.frozen.empty() || !options.frozenStatistics.empty())) {
    FreezeParametersOptions freeze;
    freeze.patterns = options.frozen;
    freeze.statistics = options.frozenStatistics;
    manager.addPass(createFreezeParameters(freeze));
  }
  // Before graphs are copied and taken apart, so that all programs number alike.
  manager.addPass(createNumberOps());
  manager.addPass(createVerifyShapes());

  // Precision, on the author's ops: what these become, and their gradients, have the types that are chosen here.
  const bool isMixed = options.precision != "f32" || !options.precisionOverrides.empty();
  if (isMixed) {
    MixedPrecisionOptions precision;
    precision.precision = options.precision;
    precision.overrides = options.precisionOverrides;
    manager.addPass(createMixedPrecision(precision));
  }

  // Differentiate. Evaluation is copied from the model before its loss is changed; composites go before gradients are
  // taken, so that only primitives need one.
  if (options.isTraining) {
    manager.addPass(createAddEvaluation());
    WeighSamplesOptions weighing;
    weighing.metrics = options.metrics;
    weighing.microbatches = options.microbatches;
    weighing.pieces = options.batchPieces;
    weighing.padded = options.paddedRows;
    manager.addPass(createWeighSamples(weighing));
    // With the weights of the samples at hand, and before composites fall back on what they compute in inference.
    manager.addPass(createTrainingForms());
  }
  DecomposeOptions decompose;
  decompose.storesScores = options.storesScores;
  manager.addPass(createDecompose(decompose));
  // With the rules of primitive ops, and before anything but the loss is weighed.
  CheckSamplesOptions samples;
  samples.padded = options.paddedRows;
  samples.pieces = options.batchPieces;
  manager.addPass(createCheckSamples(samples));
  // Before gradients are taken, because the gradient of both together needs less.
  manager.addPass(createFuseSoftmaxPick());
  DifferentiateOptions differentiate;
  differentiate.lossScale = options.lossScale;
  manager.addPass(createDifferentiate(differentiate));
  // The gradient of a scan is known whole, and nobody else reads what it gave up.
  manager.addPass(createPruneScans());
  // With several micro-batches and ZeRO from 2 on, gradients are summed over ranks before they are summed over
  // micro-batches: these sums stay f32.
  if (options.precision != "f32" && !options.reducesWide && options.mesh.sizeOf("data") > 1 &&
      !(options.zero >= 2 && options.microbatches > 1)) {
    NarrowGradientsOptions narrow;
    narrow.precision = options.precision;
    manager.addPass(createNarrowGradients(narrow));
  }
  if (options.isTraining) {
    AddOptimizerOptions optimizer;
    optimizer.optimizer = options.optimizer;
    if (options.growthInterval > 0)
      optimizer.growthInterval = options.growthInterval;
    manager.addPass(createAddOptimizer(optimizer));
  }
  manager.addPass(mlir::createCSEPass());
  // After gradients and updates have brought all their casts, and before costs are counted.
  if (isMixed) {
    FuseCastsOptions casts;
    casts.microbatches = options.microbatches;
    manager.addPass(createFuseCasts(casts));
    manager.addPass(createVerifyPrecision());
  }
  manager.addPass(createVerifyTraining());
}

void buildPipeline(mlir::OpPassManager &manager, const PipelineOptions &options) {
  buildWholePipeline(manager, options);

  // Partition: decisions first, then all that follows from them.
  PlanRequest planning = options.planning;
  planning.configuration.microbatches = uint32_t(options.microbatches);
  planning.configuration.zero = uint32_t(options.zero);
  planning.configuration.chunksPerRank = uint32_t(options.chunksPerStage);
  manager.addPass(createPlanGraph(std::move(planning), options.found));
  AssignShardingsOptions shardings;
  shardings.zero = options.zero;
  manager.addPass(createAssignShardings(shardings));
  manager.addPass(createVerifyPartition());

  // Split: types become local and collectives explicit.
  SplitShardsOptions shards;
  shards.zero = options.zero;
  manager.addPass(createSplitShards(shards));
  // With the types of one rank, so that bytes are its own, and collectives in sight, which do not run twice; before
  // chunks are cut, so that what is made again is not handed over.
  if (!options.savedBytes.empty() || options.planning.recompute != partitioner::Recompute::none) {
    RematerializeOptions again;
    again.saved = options.savedBytes;
    again.flopsPerByte = options.flopsPerByte;
    manager.addPass(createRematerialize(again));
  }
  // On what is left to be sent, and while collectives are not yet in chunks.
  SliceSendsOptions sends;
  if (options.chunksPerStage > 1) {
    sends.stages = options.mesh.sizeOf("pipe");
    sends.folded = options.isFolded;
  }
  manager.addPass(createSliceSends(sends, options.planning.cluster));
  // After the collectives of the gradients were inserted, which wait with them.
  if (options.splitsBackward)
    manager.addPass(createMarkWeightGradients());
  SplitStagesOptions chunks;
  chunks.microbatches = options.microbatches;
  if (options.chunksPerStage > 1) {
    chunks.stages = options.mesh.sizeOf("pipe");
    chunks.folded = options.isFolded;
  }
  manager.addPass(createSplitStages(chunks));
  manager.addPass(createVerifySplit());

  // On local types too: rows of all trips are joined, which a batch that is cut would not survive.
  manager.addPass(createHoistFromScans());
  manager.addPass(createPackScanWeights());
  // Layouts on local types, before chains are closed to them: what a convolution takes along is not a chain any more.
  manager.addPass(createBlockChannels());
  manager.addPass(mlir::createCSEPass());
  manager.addPass(createFuseConvolution());
  // Fuse last: a chain that crosses a stage or a collective must stay two.
  manager.addPass(createFuseElementwise());
  manager.addPass(mlir::createCSEPass());
  // Whole kernels are prepared, so after fusion.
  manager.addPass(createHoistPreparation());
  manager.addPass(createStartCommunicationEarly());
  // Who reads a value last is known when nothing moves any more.
  manager.addPass(createOverwriteOperands());
  manager.addPass(createVerifyChunks());
}

} // namespace dg::passes
