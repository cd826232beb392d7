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
  }];
  let options = [Option<"batch", "batch", "int64_t", "0", "Size of the dimension named batch; 0: not bound">];
}

def AddLoss : Pass<"dg-add-loss", "mlir::ModuleOp"> {
  let summary = "Makes a model that returns predictions return a loss: @loss gets an input y, the targets";
  let description = [{
    The first result of @loss is the prediction. The targets are class numbers (i64, the prediction's shape without its last dimension) where
    the loss takes those, else a tensor like the prediction.
  }];
  let options = [Option<"loss", "loss", "std::string", "\"\"", "A loss op and its attributes: mse, cross_entropy:label_smoothing=0.1,ignore_index=-100, …">];
}

def CheckMesh : Pass<"dg-check-mesh", "mlir::ModuleOp"> {
  let summary = "Rejects meshes that the model cannot be cut over";
  let description = [{Attention heads must divide evenly over the tensor axis.}];
  let options = [Option<"mesh", "mesh", "std::string", "\"\"", "Mesh axes: data=2,tensor=2,pipe=2">];
}

def FreezeParameters : Pass<"dg-freeze-parameters", "mlir::ModuleOp"> {
  let summary = "Takes parameters out of training by name";
  let options = [ListOption<"patterns", "patterns", "std::string", "Names with * and ?, each of which matches at least one parameter">];
}

def NumberOps : Pass<"dg-number-ops", "mlir::ModuleOp"> {
  let summary = "Numbers the ops that the author wrote";
  let description = [{
    The number is the `origin` of the op and of whatever later passes make of it: its parts, its gradients, its updates. Programs that
    are copies of one graph then agree on stages, although each takes ops apart in its own way.
  }];
}

def MixedPrecision : Pass<"dg-mixed-precision", "mlir::ModuleOp"> {
  let summary = "Casts to bf16 or f16 what gains from it, by lists of ops";
  let description = [{
    Products, convolutions and attention have operands and results of 16 bits; elementwise ops, movements and the rows of layer norm follow what they
    read; losses, statistics, functions with steep slopes and whatever no list names stay as they are. Parameters stay f32. The module's attribute
    "dg.precision" has for each op its name, kind, type and reason.
  }];
  let options = [Option<"precision", "precision", "std::string", "\"f32\"", "f32, bf16 or f16">,
                 ListOption<"overrides", "overrides", "std::string", "PATTERN=f32|bf16|f16 by name of an op, its kind or a parameter; the first that matches decides">];
}

def AddEvaluation : Pass<"dg-add-evaluation", "mlir::ModuleOp"> {
  let summary = "Copies @loss to @eval, which will also report accuracy";
}

def WeighSamples : Pass<"dg-weigh-samples", "mlir::ModuleOp"> {
  let summary = "Makes a loss a weighted sum over samples";
  let description = [{
    Replaces the mean over the batch by Σ sample_weight · loss per sample, with `sample_weight` a new input. Padded rows weigh 0, so
    uneven shards, last partial batches, micro-batches and accumulation all sum to the mean over the samples of the step.
    In `@eval` the accuracy is returned beside the loss where the loss is one of classes.
  }];
}

def TrainingForms : Pass<"dg-training-forms", "mlir::ModuleOp"> {
  let summary = "Replaces ops that compute otherwise while training by what they compute then";
  let description = [{
    In @loss only; @eval and @infer keep them. Batch norm takes the statistics of the micro-batch, in which rows count by
    `sample_weight`, and moves its running ones in the update phase.
  }];
}

def Decompose : Pass<"dg-decompose", "mlir::ModuleOp"> {
  let summary = "Replaces composite ops by their parts";
  let options = [Option<"storesScores", "stores-scores", "bool", "false",
                        "attention keeps its scores in memory, as on devices without a kernel for attention in blocks">];
}

def CheckSamples : Pass<"dg-check-samples", "mlir::ModuleOp"> {
  let summary = "Rejects batches that are cut or padded where an op mixes samples";
  let description = [{
    Padding repeats samples with weight 0 in the loss. An op of @eval or @infer that adds up over samples, or compares them with each other, counts it.
    Batch norm takes running statistics in both graphs, and weighs its rows while it is trained.
    Which op it is stays on the module, as `dg.mixes_samples`: only whole batches may be run.
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
  }];
  let options = [Option<"lossScale", "loss-scale", "double", "0", "What the scale of the loss starts with; 0: there is none">];
}

def NarrowGradients : Pass<"dg-narrow-gradients", "mlir::ModuleOp"> {
  let summary = "Rounds gradients to 16 bits before data ranks sum them, and widens them for their update";
  let options = [Option<"precision", "precision", "std::string", "\"bf16\"", "bf16 or f16">];
}

def AddOptimizer : Pass<"dg-add-optimizer", "mlir::ModuleOp"> {
  let summary = "Turns the gradients that @train returns into parameter updates";
  let options = [Option<"optimizer", "optimizer", "std::string", "\"\"", "NAME:key=value,…[;PATTERN:weight_decay=value]; empty: the module's dg.optimizer">,
                 Option<"growthInterval", "growth-interval", "int64_t", "2000", "Steps without an overflow after which the scale of the loss is doubled">];
}

def FuseCasts : Pass<"dg-fuse-casts", "mlir::ModuleOp"> {
  let summary = "Removes casts that undo each other and makes others part of a matrix product";
  let description = [{
    A product reads an f32 parameter and rounds it by itself, and gives its sums in f32 where they would be widened anyway. What is summed over
    micro-batches keeps its wider type.
  }];
  let options = [Option<"microbatches", "microbatches", "int64_t", "1", "Micro-batches of a step">];
}

def AssignStages : Pass<"dg-assign-stages", "mlir::ModuleOp"> {
  let summary = "Gives every op its pipeline stage";
  let description = [{
    Forward ops are cut into contiguous groups whose slowest is as fast as possible, counting the backward work of each op with
    it; backward ops and updates follow their forward op. With several chunks to a rank, `stage` counts chunks until --dg-split-stages
    deals them out. A search may have decided: then `stages` has, for each
    forward op that reads more than parameters, its stage; ops of different stages may be mixed in the program.
  }];
  let options = [Option<"mesh", "mesh", "std::string", "\"\"", "Mesh axes: data=2,tensor=2,pipe=2">,
                 Option<"chunks", "chunks", "int64_t", "1", "Parts of the model that a rank holds">,
                 ListOption<"stages", "stages", "int64_t", "Stage of each forward op of the first graph (default: balanced by cost)">];
}

def AssignShardings : Pass<"dg-assign-shardings", "mlir::ModuleOp"> {
  let summary = "Gives every operand and result its sharding over the data and tensor axes";
  let description = [{
    Inputs are cut over "data" by samples. Weights are cut over "tensor" as Megatron does it: by output where a later layer adds the
    parts up again, by input where the activation arrives cut. Everything else follows by the ops' sharding rules. A search may have
    decided: then `choices` has, for each forward op that reads more than parameters, what is cut over "tensor": r0.1 (dimension 1 of
    result 0), o1.0 (dimension 0 of operand 1) or none. Dimensions, not factors, because these change with the number of samples.
    With ZeRO the update of a trained parameter is cut over "data" too, along the first whole dimension that divides evenly, and with it
    the optimizer's state; with `zero=3` the parameter lies so as well. A parameter without such a dimension stays whole.
  }];
  let options = [Option<"mesh", "mesh", "std::string", "\"\"", "Mesh axes: data=2,tensor=2,pipe=2">,
                 Option<"zero", "zero", "int64_t", "0", "Cut over data: 1 optimizer state, 2 also gradients, 3 also parameters">,
                 ListOption<"choices", "choices", "std::string",
                            "What each forward op of the first graph is cut along (default: by rule)">];
}

def SplitShards : Pass<"dg-split-shards", "mlir::ModuleOp"> {
  let summary = "Makes every type local to one rank and inserts the collectives between shardings";
  let options = [Option<"mesh", "mesh", "std::string", "\"\"", "Mesh axes: data=2,tensor=2,pipe=2">,
                 Option<"zero", "zero", "int64_t", "0", "From 2 on gradients are cut over data as soon as they are made">];
}

def Rematerialize : Pass<"dg-rematerialize", "mlir::ModuleOp"> {
  let summary = "Runs forward ops again in the backward pass, cheapest for each byte first, until so many bytes less are live at once";
  let options = [ListOption<"saved", "saved", "int64_t", "Bytes by which the peak of each part of the model shall fall; none: nothing is done">,
                 Option<"flopsPerByte", "flops-per-byte", "double", "10.0", "Operations in the time of moving a byte, where an op is compared with another">];
}

def MarkWeightGradients : Pass<"dg-mark-weight-gradients", "mlir::ModuleOp"> {
  let summary = "Marks backward ops that only an update waits for, so that --dg-split-stages gives them chunks of their own";
}

def SplitStages : Pass<"dg-split-stages", "mlir::ModuleOp"> {
  let summary = "Cuts each graph into chunks: one for each stage and phase, joined by sends and receives";
  let description = [{
    Where a rank holds several parts of the model, each has its own chunks, and what passes between parts of one rank is handed over by name.
    A chunk then says in "dg.part" which part it is of; one of marked weight gradients has "dg.weight_gradient".
  }];
  let options = [Option<"microbatches", "microbatches", "int64_t", "1", "Micro-batches of a step">,
                 Option<"stages", "stages", "int64_t", "0", "Stages that the parts are dealt out to; 0: one for each part">,
                 Option<"folded", "folded", "bool", "false", "Parts go down the stages and up again, else round and round">];
}

def FuseSoftmaxPick : Pass<"dg-fuse-softmax-pick", "mlir::ModuleOp"> {
  let summary = "Picks an element of each row's log-softmax without storing the others";
  let description = [{
    `pick` of a `log_softmax` that nobody else reads becomes `pick_log_softmax`, whose gradient needs the input and one number for each row.
  }];
}

def OverwriteOperands : Pass<"dg-overwrite-operands", "mlir::ModuleOp"> {
  let summary = "Lets the gradient of a softmax with cross-entropy take the place of its input";
  let description = [{
    Marks `pick_log_softmax_grad` with `overwrites` where its input was computed, in this chunk or an earlier one, and is not read afterwards.
  }];
}

def FuseElementwise : Pass<"dg-fuse-elementwise", "mlir::ModuleOp"> {
  let summary = "Puts chains of elementwise ops into one kernel";
}

#endif
