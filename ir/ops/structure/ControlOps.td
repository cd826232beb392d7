// SPDX-License-Identifier: Apache-2.0
// Control flow: ops that run graphs of their own. Shapes are static, so that a graph inside another costs no more than
// its ops.
#ifndef DG_IR_CONTROLOPS_TD
#define DG_IR_CONTROLOPS_TD

include "ir/dialect/OpBase.td"

class DG_Control<string mnemonic, dag inputs, dag bodies, list<Trait> traits> : Op<DG_Dialect, mnemonic, !listconcat(traits, [
    Pure, SingleBlock, NoTerminator, IsolatedFromAbove, OwnTypes, Evaluates, Cost])> {
  let arguments = !con(inputs, (ins OptionalAttr<DG_PlaceAttr>:$place));
  let results = (outs Variadic<DG_Tensor>:$outputs);
  let regions = bodies;
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def DG_ScanOp : DG_Control<"scan", (ins Variadic<DG_Tensor>:$inputs, I64Attr:$num_carried, I64Attr:$num_scanned, DefaultValuedAttr<I64Attr, "0">:$num_sums,
    UnitAttr:$reverse), (region SizedRegion<1>:$body), [Gradient, ShardedWithShapes]> {
  let summary = "A graph that runs once for each slice of its scanned operands, and carries values from trip to trip";
  let description = [{
    Operands are, in this order: the first values of what is carried, tensors of which the body sees one slice of dimension 0 a trip (all have
    as many; from the last one on with `reverse`), and tensors that the body sees whole. The body's dg.return gives the next carried values, then a
    slice of each stacked result, then `num_sums` summands. Results are the last carried values, the stacked slices, and the sums over all trips.
    ```mlir
    %last, %all = dg.scan carry(%h = %h0) over(%x = %xs) with(%w = %weight) {
      %p = dg.linear %h, %w
      %n = dg.add %p, %x
      dg.return %n, %n
    }
    ```
  }];
  let extraClassDeclaration = [{
    unsigned getNumYielded() { return getNumResults() - unsigned(getNumCarried()) - unsigned(getNumSums()); }
    int64_t getTrips() { return tensorOf(getInputs()[getNumCarried()]).getDimSize(0); }
  }];
}

def DG_IfOp : DG_Control<"if", (ins DG_Tensor:$condition, Variadic<DG_Tensor>:$inputs), (region SizedRegion<1>:$then, SizedRegion<1>:$otherwise),
    [Gradient, ShardedWithShapes]> {
  let summary = "One of two graphs, chosen by a bool";
  let description = [{
    Both see the same values and return values of the same types. The gradient is an `if` of the branches' gradients, which computes the chosen
    branch again.
    ```mlir
    %r = dg.if %isLarge with(%a = %x, %b = %y) {
      %s = dg.add %a, %b
      dg.return %s
    } else {
      dg.return %b
    }
    ```
  }];
}

def DG_WhileOp : DG_Control<"while", (ins DG_Tensor:$condition, Variadic<DG_Tensor>:$inputs, I64Attr:$num_carried, OptionalAttr<I64Attr>:$max_trips),
    (region SizedRegion<1>:$body), [ShardedWithShapes]> {
  let summary = "A graph that runs as long as a bool is true, and carries values from trip to trip";
  let description = [{
    The body's dg.return gives whether there is another trip, then the next carried values, which are the results in the end. It ends after
    `max_trips` trips at the latest. Operands behind the carried ones are seen whole in each trip. It is forward only, since the number of trips is known
    only when it runs: dg.scan has a gradient.
    ```mlir
    %last, %x = dg.while %go carry(%i = %i0, %h = %h0) with(%w = %weight, %one = %step, %n = %limit) attributes {max_trips = 100 : i64} {
      %p = dg.matmul %h, %w
      %j = dg.add %i, %one
      %again = dg.compare %j, %n {predicate = "lt"}
      dg.return %again, %j, %p
    }
    ```
  }];
}

#endif
