// An optimizer that is missing, unknown or wrongly written is an error that says what is known.
// RUN: dg-opt %s --dg-add-optimizer -verify-diagnostics
// RUN: not dg-opt %s --dg-add-optimizer=optimizer=lbfgs:lr=1 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not dg-opt %s --dg-add-optimizer=optimizer=sgd:beta1=0.9 2>&1 | FileCheck %s --check-prefix=KEY
// RUN: not dg-opt %s --dg-add-optimizer=optimizer=adam:momentum=0.9 2>&1 | FileCheck %s --check-prefix=ADAMKEY
// RUN: not dg-opt %s --dg-add-optimizer=optimizer=adam:lr=fast 2>&1 | FileCheck %s --check-prefix=VALUE
// RUN: not dg-opt %s --dg-add-optimizer=optimizer=sgd:lr 2>&1 | FileCheck %s --check-prefix=NOVALUE
// RUN: not dg-opt %s --dg-add-optimizer=optimizer=sgd:nesterov=1 2>&1 | FileCheck %s --check-prefix=NESTEROV
// RUN: not dg-opt %s "--dg-add-optimizer=optimizer=sgd:lr=1;w" 2>&1 | FileCheck %s --check-prefix=GROUP
// RUN: not dg-opt %s "--dg-add-optimizer=optimizer=sgd:lr=1;w:momentum=2" 2>&1 | FileCheck %s --check-prefix=GROUPKEY
// RUN: not dg-opt %s "--dg-add-optimizer=optimizer=sgd:lr=1;w:lr=2;*.bias:weight_decay=0" 2>&1 | FileCheck %s --check-prefix=NOBODY
// RUN: not dg-opt %s "--dg-add-optimizer=optimizer=sgd:lr=1;w:lr=2;*:lr=3" 2>&1 | FileCheck %s --check-prefix=OVERRULED
// RUN: not dg-opt %s --dg-add-optimizer=optimizer=sgd:momentum=1.5 2>&1 | FileCheck %s --check-prefix=MOMENTUM

// OVERRULED: error: optimizer 'sgd:lr=1;w:lr=2;*:lr=3': what 'w' says is overruled for all of its parameters by patterns after it
// MOMENTUM: error: optimizer 'sgd:momentum=1.5': found 'momentum=1.5', expected a number below 1
// NOBODY: error: optimizer 'sgd:lr=1;w:lr=2;*.bias:weight_decay=0': has no parameter that '*.bias' names, expected a pattern such as '*.bias' that matches parameters
// GROUP: error: optimizer 'sgd:lr=1;w': found 'w' after ';', expected PATTERN:weight_decay=NUMBER or PATTERN:lr=NUMBER, as *.bias:weight_decay=0
// GROUPKEY: error: optimizer 'sgd:lr=1;w:momentum=2': a group of parameters has no 'momentum', expected one of lr, weight_decay
// NAME: error: optimizer 'lbfgs:lr=1': there is no 'lbfgs', expected sgd, adam, adamw, adagrad, rmsprop, lamb or lion
// KEY: error: optimizer 'sgd:beta1=0.9': sgd has no 'beta1', expected one of
// ADAMKEY: error: optimizer 'adam:momentum=0.9': adam has no 'momentum', expected one of
// VALUE: error: optimizer 'adam:lr=fast': found 'lr=fast', expected lr= a number of at least 0
// NOVALUE: error: optimizer 'sgd:lr': found 'lr', expected lr= a number of at least 0
// NESTEROV: error: optimizer 'sgd:nesterov=1': nesterov needs momentum=

// expected-error@+1 {{is to be trained, but nothing names an optimizer: give --optimizer, for example sgd:lr=0.01}}
dg.graph @train(%loss: tensor<f32>, %g: tensor<4xf32>) typed {
  %w = dg.parameter "w" tensor<4xf32> uniform 0.5 : tensor<4xf32>
  dg.return %loss, %g {names = ["loss", "grad w"]} : (tensor<f32>, tensor<4xf32>) -> ()
}
