// SPDX-License-Identifier: Apache-2.0
// The passes that choose layouts and what is prepared for inference, in the order in which Pipeline.cpp runs them.
#ifndef DG_PASSES_LAYOUTPASSES_TD
#define DG_PASSES_LAYOUTPASSES_TD

include "mlir/Pass/PassBase.td"

def BlockChannels : Pass<"dg-block-channels", "mlir::ModuleOp"> {
  let summary = "Lets the channels of images lie in blocks of 16 through a chunk";
  let description = [{
    In inference, where weights are packed once. Convolutions become `dg.blocked_conv`; pools, elementwise ops and sums over places
    follow; values that anything else reads are brought back to [n, c, h, w].
  }];
}

def FuseConvolution : Pass<"dg-fuse-convolution", "mlir::ModuleOp"> {
  let summary = "Computes elementwise ops, and the zeros of a padding, in the convolution before them";
}

def HoistPreparation : Pass<"dg-hoist-preparation", "mlir::ModuleOp"> {
  let summary = "Moves what an inference computes from parameters alone into a program that runs once";
  let description = [{
    The chunks of program "prepare" return what the chunks of "infer" read as inputs of the same names. Only what is not larger than its
    operands is kept. A job that trains keeps its inference as it is.
  }];
}

def VerifyChunks : Pass<"dg-verify-chunks", "mlir::ModuleOp"> {
  let summary = "Closes the fuse and layout phases: fused ops hold elementwise ops alone, no loss op is left";
}

#endif
