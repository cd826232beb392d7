// SPDX-License-Identifier: Apache-2.0
// Every pass with its options, in the order in which Pipeline.cpp runs them. One default, in one place.
#ifndef DG_PASSES_PASSES_TD
#define DG_PASSES_PASSES_TD

include "mlir/Pass/PassBase.td"

def DeduceTypes : Pass<"dg-deduce-types", "mlir::ModuleOp"> {
  let summary = "Binds symbolic dimensions and deduces the type of every value";
  let description = [{
    A `?` in the type of a graph input is the dimension "batch". Afterwards no value has type `!dg.any` and no dimension is
    dynamic. Fails at the op whose operands do not fit, and at a graph with a dimension that nothing binds.
    ```mlir
    // before, and after batch=4
    dg.graph @infer(%x: tensor<?x6xf32>) {                  dg.graph @infer(%x: tensor<4x6xf32>) typed {
      %w = dg.parameter "w" tensor<3x6xf32> uniform 0.5       %w = dg.parameter "w" tensor<3x6xf32> uniform 0.5 : tensor<3x6xf32>
      %p = dg.linear %x, %w                                   %p = dg.linear %x, %w : (tensor<4x6xf32>, tensor<3x6xf32>) -> tensor<4x3xf32>
    ```
  }];
  let options = [Option<"batch", "batch", "int64_t", "0", "Size of the dimension named batch; 0: not bound">];
}

def AddLoss : Pass<"dg-add-loss", "mlir::ModuleOp"> {
  let summary = "Makes a model that returns predictions return a loss: @loss gets an input y, the targets";
  let description = [{
    The first result of @loss is the prediction. The targets are class numbers (i64, the prediction's shape without its last dimension) where
    the loss takes those, else a tensor like the prediction.
    ```mlir
    // before, and after loss=mse
    dg.graph @loss(%x: tensor<4x3xf32>) typed {             dg.graph @loss(%x: tensor<4x3xf32>, %y: tensor<4x2xf32>) typed {
      %p = dg.linear %x, %w                                   %p = dg.linear %x, %w
                                                              %loss = dg.mse %p, %y
      dg.return %p                                            dg.return %loss {names = ["loss"]}
    ```
  }];
  let options = [Option<"loss", "loss", "std::string", "\"\"", "A loss op and its attributes: mse, cross_entropy:label_smoothing=0.1,ignore_index=-100, …">];
}

def SetMesh : Pass<"dg-set-mesh", "mlir::ModuleOp"> {
  let summary = "Says over which ranks the module is to be split";
  let description = [{
    Later passes read the mesh from the module.
    ```mlir
    // before, and after data=2
    module {                                                module attributes {dg.mesh = #dg.mesh<data = 2, tensor = 1, pipe = 1>} {
      dg.graph @infer(…) { … }                                dg.graph @infer(…) { … }
    ```
  }];
  let dependentDialects = ["::dg::ir::DGDialect"]; // of the mesh; the module may be empty
  let options = [Option<"pipe", "pipe", "int64_t", "1", "Stages of the pipeline">,
                 Option<"data", "data", "int64_t", "1", "Ranks that share the samples of a micro-batch">,
                 Option<"tensor", "tensor", "int64_t", "1", "Ranks that share a tensor">];
}

def CheckMesh : Pass<"dg-check-mesh", "mlir::ModuleOp"> {
  let summary = "Rejects meshes that the model cannot be cut over";
  let description = [{
    Attention heads must divide evenly over the tensor axis.
    ```mlir
    // before, in a module with tensor=4                    // after
    %a = dg.attention %x, %x, %x {heads = 6}                error: 'dg.attention' op has 6 heads, which do not divide over tensor=4: …
    ```
  }];
}

def FreezeParameters : Pass<"dg-freeze-parameters", "mlir::ModuleOp"> {
  let summary = "Takes parameters out of training by name";
  let description = [{
    Patterns take what an optimizer trains; statistics take running statistics, which training forms then leave as they are: a batch norm
    over frozen ones computes as in evaluation.
    ```mlir
    // before, and after patterns=w
    %w = dg.parameter "w" tensor<3x6xf32> uniform 0.5       %w = dg.parameter "w" tensor<3x6xf32> uniform 0.5 {frozen}
    ```
  }];
  let options = [ListOption<"patterns", "patterns", "std::string", "Names with * and ?, each of which matches at least one parameter">,
                 ListOption<"statistics", "statistics", "std::string", "The same, of running statistics">];
}

def NumberOps : Pass<"dg-number-ops", "mlir::ModuleOp"> {
  let summary = "Numbers the ops that the author wrote";
  let description = [{
    The number is the `origin` of the op and of whatever later passes make of it: its parts, its gradients, its updates. Programs that
    are copies of one graph then agree on stages, although each takes ops apart in its own way.
    ```mlir
    // before                                               // after
    %w = dg.parameter "w" tensor<3x6xf32> uniform 0.5       %w = dg.parameter "w" … {place = #dg.place<origin = 0>}
    %p = dg.linear %x, %w                                   %p = dg.linear %x, %w {place = #dg.place<label = "p", origin = 1>}
    dg.return %p                                            dg.return %p {place = #dg.place<origin = 2>}
    ```
  }];
}

def VerifyShapes : Pass<"dg-verify-shapes", "mlir::ModuleOp"> {
  let summary = "Closes the shape phase: every value has a static type, each op of the author its number";
  let description = [{
    ```mlir
    // before                                               // after
    %y = dg.relu %x                                         error: 'dg.relu' op has no number after the shape phase, expected one from --dg-number-ops
    ```
  }];
}

def MixedPrecision : Pass<"dg-mixed-precision", "mlir::ModuleOp"> {
  let summary = "Casts to bf16 or f16 what gains from it, by the classes that ops state";
  let description = [{
    Products, convolutions and attention have operands and results of 16 bits; elementwise ops, movements and the rows of layer norm follow what they
    read; losses, statistics, functions with steep slopes and ops that are not known to gain stay as they are. Parameters stay f32. The module's attribute
    `dg.precision` has a `#dg.precision` for each op: its name, kind, type and reason.
    ```mlir
    // before, and after precision=bf16
    %p = dg.linear %x, %w                                   %1 = dg.cast %x {to = bf16} : (tensor<4x6xf32>) -> tensor<4x6xbf16>
                                                            %2 = dg.cast %w {to = bf16} : (tensor<3x6xf32>) -> tensor<3x6xbf16>
                                                            %3 = dg.linear %1, %2 : (tensor<4x6xbf16>, tensor<3x6xbf16>) -> tensor<4x3xbf16>
                                                            %p = dg.cast %3 {to = f32} : (tensor<4x3xbf16>) -> tensor<4x3xf32>
    ```
  }];
  let options = [Option<"precision", "precision", "std::string", "\"f32\"", "f32, bf16 or f16">,
                 ListOption<"overrides", "overrides", "std::string", "PATTERN=f32|bf16|f16 by name of an op, its kind or a parameter; the first that matches decides">];
}

def AddEvaluation : Pass<"dg-add-evaluation", "mlir::ModuleOp"> {
  let summary = "Copies @loss to @eval, which will also report accuracy";
  let description = [{
    ```mlir
    // before                                               // after
    dg.graph @loss(…) { … }                                 dg.graph @loss(…) { … }
                                                            dg.graph @eval(…) { … }
    ```
  }];
}

def WeighSamples : Pass<"dg-weigh-samples", "mlir::ModuleOp"> {
  let summary = "Makes a loss a weighted sum over samples";
  let description = [{
    Replaces the mean over the batch by Σ sample_weight · loss per sample, with `sample_weight` a new input. Padded rows weigh 0, so
    uneven shards, last partial batches, micro-batches and accumulation all sum to the mean over the samples of the step.
    In `@eval` the accuracy is returned beside the loss where the loss is one of classes; with `metrics` also what
    metrics are computed from, with a row for each sample.
    ```mlir
    // before                                               // after, with a new input sample_weight
    %loss = dg.nll %x, %y                                   %1 = dg.pick %x, %y
                                                            %2 = dg.scale %1 {factor = -1.0}
                                                            %3 = dg.mul %2, %sample_weight
    dg.return %loss                                         %loss = dg.reduce_sum %3 {dims = array<i64: 0>}
    ```
  }];
  let options = [Option<"metrics", "metrics", "bool", "false", "@eval also returns what metrics are computed from">,
                 Option<"microbatches", "microbatches", "int64_t", "1", "Micro-batches of a step">,
                 Option<"pieces", "pieces", "int64_t", "1", "Micro-batches of a batch">,
                 Option<"padded", "padded", "int64_t", "0", "Rows of a step that hold no sample">];
}

def TrainingForms : Pass<"dg-training-forms", "mlir::ModuleOp"> {
  let summary = "Replaces ops that compute otherwise while training by what they compute then";
  let description = [{
    In @loss only; @eval and @infer keep them. Batch norm takes the statistics of the micro-batch, in which rows count by
    `sample_weight`, and moves its running ones in the update phase.
    ```mlir
    // before, in @loss                                     // after
    %n = dg.batch_norm %x, %g, %b, %m, %v {momentum = 0.25} %mean, %variance = dg.moments %x, %share, … {dims = array<i64: 0, 2>}
                                                            %n = dg.normalize %x, %mean, …
                                                            %next = dg.add %kept, %seen {place = #dg.place<phase = update>}
                                                            dg.update %next {param = "bn.running_mean"}
    ```
  }];
}

def Decompose : Pass<"dg-decompose", "mlir::ModuleOp"> {
  let summary = "Replaces composite ops by their parts";
  let description = [{
    ```mlir
    // before                                               // after
    %p = dg.linear %x, %w                                   %p = dg.matmul %x, %w {transpose_rhs}
    ```
  }];
  let options = [Option<"storesScores", "stores-scores", "bool", "false",
                        "attention keeps its scores in memory, as on devices without a kernel for attention in blocks">];
}

def CheckSamples : Pass<"dg-check-samples", "mlir::ModuleOp"> {
  let summary = "Rejects batches that are cut or padded where an op mixes samples";
  let description = [{
    Padding repeats samples with weight 0 in the loss. An op of @eval or @infer that adds up over samples, or compares them with each other, counts it.
    Batch norm takes running statistics in both graphs, and weighs its rows while it is trained.
    Which op it is stays on the module, as `dg.mixes_samples`: only whole batches may be run.
    ```mlir
    // before                                               // after padded=2
    %mean = dg.reduce_mean %x {dims = array<i64: 0>}        error: mixes the samples of a batch, but 2 rows of each step are padding, which would count
    ```
  }];
  let options = [
    Option<"padded", "padded", "int64_t", "0", "Rows of a step, over all ranks and micro-batches, that hold no sample">,
    Option<"pieces", "pieces", "int64_t", "1", "Micro-batches of a batch">
  ];
}

def Differentiate : Pass<"dg-differentiate", "mlir::ModuleOp"> {
  let summary = "Inserts the gradients of the loss: @loss becomes @train";
  let description = [{
    Reverse mode, by the ops' own gradients. Afterwards @train returns the loss and "grad NAME" for each trained
    parameter. Gradients of a value with several uses are summed in the reverse order of the uses; ops that lead to no parameter get none.
    Each op knows its origin: the number of the forward op that it belongs to. With a `loss-scale` gradients are those of the loss times a state
    of that name, which --dg-add-optimizer divides by and adapts.
    ```mlir
    // before, in @loss                                     // after, in @train
    %p = dg.matmul %x, %w {transpose_rhs}                   %p = dg.matmul %x, %w {transpose_rhs}
    …                                                       …
    dg.return %loss {names = ["loss"]}                      %g = dg.matmul %dp, %x {transpose_lhs, place = #dg.place<phase = backward, …>}
                                                            dg.return %loss, %g {names = ["loss", "grad w"]}
    ```
  }];
  let options = [Option<"lossScale", "loss-scale", "double", "0", "What the scale of the loss starts with; 0: there is none">];
}

def PruneScans : Pass<"dg-prune-scans", "mlir::ModuleOp"> {
  let summary = "Leaves out of scans what nobody reads";
  let description = [{
    After gradients were taken: those of operands that lead to no parameter, and of the tape what the backward pass does not need.
    ```mlir
    // before: nobody reads %all                            // after
    %last, %all = dg.scan carry(%h = %h0) over(%x = %xs) {  %last = dg.scan carry(%h = %h0) over(%x = %xs) {
      %n = dg.add %h, %x                                      %n = dg.add %h, %x
      %s = dg.tanh %n                                         dg.return %n
      dg.return %n, %s                                      }
    }
    ```
  }];
}

def HoistFromScans : Pass<"dg-hoist-from-scans", "mlir::ModuleOp"> {
  let summary = "Takes products of all trips, and what is the same in each, out of scans";
  let description = [{
    Products of scanned slices with whole weights, products that are only stacked, sums over trips of products, and what depends on whole
    operands alone.
    ```mlir
    // before                                               // after, without the reshapes to [trips · rows, width]
    %last = dg.scan carry(%h = %h0)                         %ps = dg.matmul %xs, %w
        over(%x = %xs) with(%u = %w) {                      %last = dg.scan carry(%h = %h0) over(%p = %ps) {
      %p = dg.matmul %x, %u                                   %n = dg.add %h, %p
      %n = dg.add %h, %p                                      dg.return %n
      dg.return %n                                          }
    }
    ```
  }];
}

def PackScanWeights : Pass<"dg-pack-scan-weights", "mlir::ModuleOp"> {
  let summary = "Packs the weights of products in scans once for all trips";
  let description = [{
    ```mlir
    // before                                               // after
    %last = dg.scan carry(%h = %h0) over(%x = %xs)          %r = dg.reshape %w {shape = array<i64: 16, 32, 128>}
        with(%u = %w) {                                     %t = dg.transpose %r {permutation = array<i64: 0, 2, 1>}
      %p = dg.matmul %h, %u {transpose_rhs}                 %last = dg.scan carry(%h = %h0) over(%x = %xs) with(%u = %t) {
      …                                                       %p = dg.panel_product %h, %u {columns = 512}
    }                                                         …
    ```
  }];
}

def NarrowGradients : Pass<"dg-narrow-gradients", "mlir::ModuleOp"> {
  let summary = "Rounds gradients to 16 bits before data ranks sum them, and widens them for their update";
  let description = [{
    ```mlir
    // before, and after precision=f16
    dg.return %loss, %g {names = ["loss", "grad w"]}        %1 = dg.cast %g {to = f16, place = #dg.place<phase = update, …>}
                                                            %2 = dg.cast %1 {to = f32, place = #dg.place<label = "w", phase = update, …>}
                                                            dg.return %loss, %2 {names = ["loss", "grad w"]}
    ```
  }];
  let options = [Option<"precision", "precision", "std::string", "\"bf16\"", "bf16 or f16">];
}

def AddOptimizer : Pass<"dg-add-optimizer", "mlir::ModuleOp"> {
  let summary = "Turns the gradients that @train returns into parameter updates";
  let description = [{
    ```mlir
    // before, and after optimizer=sgd
    dg.return %loss, %g {names = ["loss", "grad w"]}        %1 = dg.sgd %w, %g {weight_decay = 0.0}
                                                            dg.update %1 {param = "w"}
                                                            dg.return %loss {names = ["loss"]}
    ```
  }];
  let options = [Option<"optimizer", "optimizer", "std::string", "\"\"", "NAME:key=value,…[;PATTERN:lr=value,weight_decay=value]; empty: the module's dg.optimizer">,
                 Option<"growthInterval", "growth-interval", "int64_t", "2000", "Steps without an overflow after which the scale of the loss is doubled">];
}

def FuseCasts : Pass<"dg-fuse-casts", "mlir::ModuleOp"> {
  let summary = "Removes casts that undo each other and makes others part of a matrix product";
  let description = [{
    A product reads an f32 parameter and rounds it by itself, and gives its sums in f32 where they would be widened anyway. What is summed over
    micro-batches keeps its wider type.
    ```mlir
    // before                                               // after: it reads f32 and gives f32
    %c = dg.cast %w {to = bf16}                             %p = dg.matmul %x, %w {to = f32, transpose_rhs}
    %p = dg.matmul %x, %c {transpose_rhs}                     : (tensor<4x8xbf16>, tensor<6x8xf32>) -> tensor<4x6xf32>
    %f = dg.cast %p {to = f32}
    ```
  }];
  let options = [Option<"microbatches", "microbatches", "int64_t", "1", "Micro-batches of a step">];
}

def VerifyPrecision : Pass<"dg-verify-precision", "mlir::ModuleOp"> {
  let summary = "Closes the precision phase: every cast changes the type, and none undoes the one before it";
  let description = [{
    ```mlir
    // before                                               // after
    %f = dg.cast %x {to = f32}
    %h = dg.cast %f {to = bf16}                             error: 'dg.cast' op narrows what was widened in the same phase, expected …
    ```
  }];
}

def VerifyTraining : Pass<"dg-verify-training", "mlir::ModuleOp"> {
  let summary = "Closes the train phase: @train has one update for each trained parameter and no loss op; no phase reads what a later one makes";
  let description = [{
    ```mlir
    // before, without an update of "w"                     // after
    %w = dg.parameter "w" tensor<6xf32> uniform 0.5         error: 'dg.parameter' op 'w' is trained and has no update, expected one from …
    ```
  }];
}

def PlanGraph : Pass<"dg-plan-graph", "mlir::ModuleOp"> {
  let summary = "Searches the pipeline stage of every op and what the tensor axis cuts";
  let description = [{
    The first graph (@train, where there is one) goes through the partitioner's search with the module's mesh. Backward ops, updates and
    other graphs follow their forward op to its stage; with several chunks to a rank, `stage` counts chunks until
    --dg-split-stages deals them out. With a tensor axis each forward op that reads more than parameters gets `dg.cut`.
    ```mlir
    // before, in a module with tensor=2
    %p = dg.matmul %x, %w {place = #dg.place<label = "p", origin = 1>}
    // after
    %p = dg.matmul %x, %w {dg.cut = #dg.cut<result 0, dim 1>, place = #dg.place<label = "p", origin = 1, stage = 0>}
    ```
    In dgc the cluster, memory and pins are the request's; here it is the host and the mesh is one by hand.
  }];
  let options = [Option<"microbatches", "microbatches", "int64_t", "1", "Micro-batches of a step">,
                 Option<"chunks", "chunks", "int64_t", "1", "Parts of the model that a rank holds">];
}

def AssignShardings : Pass<"dg-assign-shardings", "mlir::ModuleOp"> {
  let summary = "Gives every operand and result its sharding over the data and tensor axes";
  let description = [{
    Inputs are cut over "data" by samples. Over "tensor" an op with `dg.cut` is cut along that dimension, or not at all; everything else
    follows by the ops' sharding rules. A gradient of a cut parameter whose operands are whole is made in the parts that are kept.
    With ZeRO the update of a trained parameter is cut over "data" too, along the first whole dimension that divides evenly, and with it
    the optimizer's state; with `zero=3` the parameter lies so as well. A parameter without such a dimension stays whole.
    An op has a sharding for each operand, then for each result: the axes that cut its dimensions, and those over which it is a partial sum.
    ```mlir
    // before, in a module with data=2 and tensor=2
    %h = dg.matmul %x, %w {dg.cut = #dg.cut<result 0, dim 1>, transpose_rhs}
    %y = dg.matmul %h, %v {transpose_rhs}
    // after: %y is a sum of two
    %h = dg.matmul %x, %w {place = #dg.place<…, shardings = <["data", ""], []>, <["tensor", ""], []>, <["data", "tensor"], []>>, transpose_rhs}
    %y = dg.matmul %h, %v {place = #dg.place<…, shardings = <["data", "tensor"], []>, <["", "tensor"], []>, <["data", ""], ["tensor"]>>, …}
    ```
  }];
  let options = [Option<"zero", "zero", "int64_t", "0", "Cut over data: 1 optimizer state, 2 also gradients, 3 also parameters">];
}

def VerifyPartition : Pass<"dg-verify-partition", "mlir::ModuleOp"> {
  let summary = "Closes the partition phase: every op has a stage, every operand and result a sharding of its rank that divides evenly";
  let description = [{
    ```mlir
    // before                                               // after
    %y = dg.relu %x                                         error: 'dg.relu' op has no stage after the partition phase, expected one from --dg-plan-graph
    ```
  }];
}

def SplitShards : Pass<"dg-split-shards", "mlir::ModuleOp"> {
  let summary = "Makes every type local to one rank and inserts the collectives between shardings";
  let description = [{
    ```mlir
    // before, with the shardings of the example of --dg-assign-shardings
    %h = dg.matmul %x, %w : (tensor<8x6xf32>, tensor<10x6xf32>) -> tensor<8x10xf32>
    %y = dg.matmul %h, %v : (tensor<8x10xf32>, tensor<4x10xf32>) -> tensor<8x4xf32>
    // after
    %h = dg.matmul %x, %w : (tensor<4x6xf32>, tensor<5x6xf32>) -> tensor<4x5xf32>
    %p = dg.matmul %h, %v : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x4xf32>
    %y = dg.all_reduce %p {axis = "tensor", place = #dg.place<label = "y">} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    ```
  }];
  let options = [Option<"zero", "zero", "int64_t", "0", "From 2 on gradients are cut over data as soon as they are made">];
}

def Rematerialize : Pass<"dg-rematerialize", "mlir::ModuleOp"> {
  let summary = "Runs forward ops again in the backward pass, cheapest for each byte first, until so many bytes less are live at once";
  let description = [{
    ```mlir
    // before: %p lives until %i reads it                       // after saved=1024
    %p = dg.matmul %x, %w                                       %p = dg.matmul %x, %w
    %s = dg.scale %p                                            %s = dg.scale %p
    …                                                           …
    %i = dg.mul %h, %p {place = #dg.place<phase = backward>}    %again = dg.matmul %x, %w {place = #dg.place<label = "p", phase = backward>}
                                                                %i = dg.mul %h, %again {place = #dg.place<phase = backward>}
    ```
    Ops with `dg.recompute`, which --dg-plan-graph writes, run again in any case; collectives and what leaves the graph never do.
  }];
  let options = [ListOption<"saved", "saved", "int64_t", "Bytes by which the peak of each part of the model shall fall; none: only what was decided runs again">,
                 Option<"flopsPerByte", "flops-per-byte", "double", "10.0", "Operations in the time of moving a byte, where an op is compared with another">];
}

def SliceSends : Pass<"dg-slice-sends", "mlir::ModuleOp"> {
  let summary = "Sends what is whole on each tensor rank to another stage in parts, where gathering it there is faster than sending it whole";
  let description = [{
    ```mlir
    // before, in a module with tensor=2                     // after
    %r = dg.relu %h {place = #dg.place<stage = 0>}           %r = dg.relu %h {place = #dg.place<stage = 0>}
      : (tensor<4x6xf32>) -> tensor<4x6xf32>                 %s = dg.slice_shard %r {axis = "tensor", dim = 0 : i64, place = #dg.place<stage = 0>}
                                                               : (tensor<4x6xf32>) -> tensor<2x6xf32>
                                                             %g = dg.all_gather %s {axis = "tensor", dim = 0 : i64, place = #dg.place<stage = 1>}
    %p = dg.mul %r, %w2 {place = #dg.place<stage = 1>}       %p = dg.mul %g, %w2 {place = #dg.place<stage = 1>}
    ```
    --dg-split-stages then sends the part. In dgc the cluster is the request's.
  }];
  let options = [Option<"cluster", "cluster", "std::string", "\"\"", "A preset, or the path of a cluster file; empty: the host">,
                 Option<"stages", "stages", "int64_t", "0", "As --dg-split-stages">,
                 Option<"folded", "folded", "bool", "false", "As --dg-split-stages">];
}

def MarkWeightGradients : Pass<"dg-mark-weight-gradients", "mlir::ModuleOp"> {
  let summary = "Marks backward ops that only an update waits for, so that --dg-split-stages gives them chunks of their own";
  let description = [{
    ```mlir
    // before                                               // after
    %dx = dg.matmul %g, %w                                  %dx = dg.matmul %g, %w
    %dw = dg.matmul %g, %x {transpose_lhs}                  %dw = dg.matmul %g, %x {dg.weight_gradient, transpose_lhs}
    ```
  }];
}

def SplitStages : Pass<"dg-split-stages", "mlir::ModuleOp"> {
  let summary = "Cuts each graph into chunks: one for each stage and phase, joined by sends and receives";
  let description = [{
    Where a rank holds several parts of the model, each has its own chunks, and what passes between parts of one rank is handed over by name.
    A chunk then says in `part` which part it is of; one of marked weight gradients has `weight_gradients`.
    ```mlir
    // before, in @train                                    // after
    %r = dg.relu %h {place = #dg.place<stage = 0>}          dg.graph @train.0.forward(…) {
    %p = dg.mul %r, %w2 {place = #dg.place<stage = 1>}        %r = dg.relu %h
                                                              dg.send %r {channel = 0, peer_stage = 1}
                                                            dg.graph @train.1.forward() {
                                                              %r = dg.receive {channel = 0, peer_stage = 0}
                                                              %p = dg.mul %r, %w2
    ```
  }];
  let options = [Option<"microbatches", "microbatches", "int64_t", "1", "Micro-batches of a step">,
                 Option<"stages", "stages", "int64_t", "0", "Stages that the parts are dealt out to; 0: one for each part">,
                 Option<"folded", "folded", "bool", "false", "Parts go down the stages and up again, else round and round">];
}

def VerifySplit : Pass<"dg-verify-split", "mlir::ModuleOp"> {
  let summary = "Closes the split phase: every graph is a chunk, and values leave a stage by a send with one receive, never by name";
  let description = [{
    ```mlir
    // before, without a receive                            // after
    dg.send %x {channel = 3, peer_stage = 1}                error: 'dg.send' op has no receive of channel 3 on stage 1
    ```
  }];
}

def StartCommunicationEarly : Pass<"dg-start-communication-early", "mlir::ModuleOp"> {
  let summary = "Moves collectives and receives to where their operands are ready";
  let description = [{
    Receives come first, a collective right behind the op that makes its operand; a parameter that lies cut is gathered while the one before it is
    used. Codegen starts communication where it finds it and finishes it at the first reader.
    ```mlir
    // before                                            // after
    %g = dg.matmul %dy, %x {transpose_lhs}               %g = dg.matmul %dy, %x {transpose_lhs}
    %d = dg.matmul %dy, %w                               %s = dg.all_reduce %g {axis = "data"}
    %s = dg.all_reduce %g {axis = "data"}                %d = dg.matmul %dy, %w
    ```
  }];
}

def FuseSoftmaxPick : Pass<"dg-fuse-softmax-pick", "mlir::ModuleOp"> {
  let summary = "Picks an element of each row's log-softmax without storing the others";
  let description = [{
    `pick` of a `log_softmax` that nobody else reads becomes `pick_log_softmax`, whose gradient needs the input and one number for each row.
    ```mlir
    // before                                               // after
    %l = dg.log_softmax %x                                  %p, %s = dg.pick_log_softmax %x, %y
    %p = dg.pick %l, %y
    ```
  }];
}

def OverwriteOperands : Pass<"dg-overwrite-operands", "mlir::ModuleOp"> {
  let summary = "Lets the gradient of a softmax with cross-entropy take the place of its input";
  let description = [{
    Marks `pick_log_softmax_grad` with `overwrites` where its input was computed, in this chunk or an earlier one, and is not read afterwards.
    ```mlir
    // before                                               // after: %d lies where %a lay
    %d = dg.pick_log_softmax_grad %p, %p, %a, %y, %s        %d = dg.pick_log_softmax_grad %p, %p, %a, %y, %s {overwrites}
    ```
  }];
}

def FuseElementwise : Pass<"dg-fuse-elementwise", "mlir::ModuleOp"> {
  let summary = "Puts chains of elementwise ops into one kernel";
  let description = [{
    ```mlir
    // before                                               // after
    %a = dg.add %x, %b                                      %c = dg.fused %x, %b {
    %r = dg.relu %a                                         ^bb0(%p: tensor<4x6xf32>, %q: tensor<6xf32>):
    %c = dg.mul %r, %x                                        %a = dg.add %p, %q
                                                              %r = dg.relu %a
                                                              %m = dg.mul %r, %p
                                                              dg.return %m
                                                            }
    ```
  }];
}

def BlockChannels : Pass<"dg-block-channels", "mlir::ModuleOp"> {
  let summary = "Lets the channels of images lie in blocks of 16 through a chunk";
  let description = [{
    In inference, where weights are packed once. Convolutions become `dg.blocked_conv`; pools, elementwise ops and sums over places
    follow; values that anything else reads are brought back to [n, c, h, w].
    ```mlir
    // before                                               // after: %b and %k are %x and %w in blocks
    %c = dg.conv2d %x, %w                                   %c = dg.blocked_conv %b, %k {strides = array<i64: 1, 1>} : (…) -> tensor<1x1x4x4x16xf32> {
      : (…) -> tensor<1x16x4x4xf32>                         ^bb0(%s: tensor<1x1x4x4x16xf32>):
                                                              dg.return %s
                                                            }
    %r = dg.relu %c                                         %r = dg.relu %c : (tensor<1x1x4x4x16xf32>) -> tensor<1x1x4x4x16xf32>
    ```
  }];
}

def FuseConvolution : Pass<"dg-fuse-convolution", "mlir::ModuleOp"> {
  let summary = "Computes elementwise ops, and the zeros of a padding, in the convolution before them";
  let description = [{
    ```mlir
    // before                                               // after
    %c = dg.blocked_conv %b, %k {…} : … {                   %r = dg.blocked_conv %b, %k {…} : … {
    ^bb0(%s: tensor<1x1x4x4x16xf32>):                       ^bb0(%s: tensor<1x1x4x4x16xf32>):
      dg.return %s                                            %e = dg.relu %s
    }                                                         dg.return %e
    %r = dg.relu %c                                         }
    ```
  }];
}

def HoistPreparation : Pass<"dg-hoist-preparation", "mlir::ModuleOp"> {
  let summary = "Moves what an inference computes from parameters alone into a program that runs once";
  let description = [{
    The chunks of program "prepare" return what the chunks of "infer" read as inputs of the same names. Only what is not larger than its
    operands is kept. A job that trains keeps its inference as it is.
    ```mlir
    // before                                               // after
    dg.graph @infer.0.forward(%x: …) {                      dg.graph @prepare.0.forward() {
      %w = dg.parameter "w"                                   %w = dg.parameter "w"
      %t = dg.transpose %w                                    %t = dg.transpose %w
      %y = dg.matmul %x, %t                                   dg.return %t {names = ["prepared#0"]}
                                                            dg.graph @infer.0.forward(%x: …, %t: …) attributes {input_names = ["x", "prepared#0"], …} {
                                                              %y = dg.matmul %x, %t
    ```
  }];
}

def VerifyChunks : Pass<"dg-verify-chunks", "mlir::ModuleOp"> {
  let summary = "Closes the fuse and layout phases: fused ops hold elementwise ops alone, no loss op is left";
  let description = [{
    ```mlir
    // before                                               // after
    %loss = dg.mse %x, %y                                   error: 'dg.mse' op is left after the layout phase, expected its parts, which have kernels
    ```
  }];
}

#endif
