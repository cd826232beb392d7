// What --emit prints goes to stdout or, with -o, to a file; --explain alone writes nothing, with -o the job that it explains.
// REQUIRES: dgc
// RUN: rm -rf %t && mkdir %t
// RUN: dgc %examples/mlp.mlir --batch 8 --emit plan > %t/printed.json
// RUN: dgc %examples/mlp.mlir --batch 8 --emit plan -o %t/written.json | FileCheck %s --allow-empty --check-prefix=NOTHING
// RUN: diff %t/printed.json %t/written.json
// RUN: dgc %examples/mlp.mlir --batch 8 --emit asm -o %t/code.s
// RUN: FileCheck %s --check-prefix=ASM --input-file %t/code.s
// RUN: dgc %examples/mlp.mlir --batch 8 --mesh pipe=2 --explain -o %t/job.dgx | FileCheck %s --check-prefix=WHY
// RUN: unzip -p %t/job.dgx explain.json | FileCheck %s --check-prefix=JSON
// RUN: cd %t && dgc %examples/mlp.mlir --batch 8 --mesh pipe=2 --explain | FileCheck %s --check-prefix=WHY
// RUN: ls %t | FileCheck %s --check-prefix=FILES

// NOTHING-NOT: {{.}}
// ASM: .text
// WHY: pipe=2
// JSON: "pipe": 2
// FILES: code.s
// FILES-NEXT: job.dgx
// FILES-NEXT: printed.json
// FILES-NEXT: written.json
// FILES-NOT: {{.}}
