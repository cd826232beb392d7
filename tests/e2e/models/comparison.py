# SPDX-License-Identifier: Apache-2.0
"""Deviations between two trainings, against the tolerances that the project promises."""
from operator import sub

FIRST_LOSS = 1e-6  # relative, step 0
GRADIENT = 1e-5  # of the largest element of the same gradient, step 0
TEN_STEPS = 1e-5  # relative
HUNDRED_STEPS = 1e-4  # relative


class Comparison:
    """Collects deviations; prints each with its tolerance, so that a log shows how near the limit a test is."""

    def __init__(self, print_line=print):
        self.failures = []
        self.print_line = print_line

    def check(self, subject, deviation, tolerance, where=""):
        good = deviation <= tolerance  # also false for NaN
        self.print_line(f"{'ok    ' if good else 'FAILED'} {subject:<58} {deviation:9.2e}  of {tolerance:.0e}  {where}".rstrip())
        if not good:
            self.failures.append(subject)

    def expect(self, subject, found, expected):
        good = found == expected
        self.print_line(f"{'ok    ' if good else 'FAILED'} {subject:<58} {found}" + ("" if good else f"; expected {expected}"))
        if not good:
            self.failures.append(subject)

    def check_losses(self, subject, found, expected, steps, tolerance):
        """The largest relative deviation of the first steps; fewer losses than steps are a failure."""
        if steps < 1 or len(found) < steps or len(expected) < steps:
            steps = max(steps, 1)
            self.expect(f"{subject}: number of losses", (len(found), len(expected)), (steps, steps))
            return
        deviation, step = largest(relative(a, b) for a, b in zip(found[:steps], expected[:steps]))
        self.check(f"{subject}: loss of {steps} step{'s' * (steps > 1)}", deviation, tolerance, f"at step {step}")

    def check_training(self, subject, found, expected, steps):
        """Step 0, ten steps, and where they were run a hundred."""
        self.check_losses(subject, found, expected, 1, FIRST_LOSS)
        self.check_losses(subject, found, expected, 10, TEN_STEPS)
        if steps > 10:
            self.check_losses(subject, found, expected, steps, HUNDRED_STEPS)

    def check_gradients(self, subject, found, expected):
        """Every element of every gradient; prints the worst gradient."""
        self.expect(f"{subject}: gradients", len(found), len(expected) or "one of every parameter")
        self.expect(f"{subject}: gradients of other parameters", sorted(set(found) ^ set(expected)), [])
        deviations = {}
        for name, gradient in expected.items():
            other = found.get(name, ())
            if len(other) != len(gradient):
                self.expect(f"{subject}: elements of {name}", len(other), len(gradient))
                continue
            scale = largest_magnitude(expected[scale_name(name)])
            deviations[name] = gradient_deviation(other, gradient, scale)
        if deviations:
            worst = max(deviations, key=lambda name: order(deviations[name]))
            self.check(f"{subject}: gradients of step 0", deviations[worst], GRADIENT, f"in {worst}")

    def finish(self):
        """Ends the program: 0 where everything agreed, else 1."""
        for subject in self.failures:
            self.print_line(f"error: {subject}: deviates by more than its tolerance")
        raise SystemExit(1 if self.failures else 0)


def scale_name(name):
    """The gradient whose largest element is the unit for this one: itself, but for the bias of attention keys.

    That bias adds the same number to all scores of a query, which softmax takes out again: its gradient is zero, and what is
    computed is rounding alone (1e-9 in f32, 1e-18 in f64). It is held to the unit of the weight beside it.
    """
    return name.removesuffix("bias") + "weight" if name.endswith(".attn.k.bias") else name


def order(deviation):
    """NaN is the largest deviation of all."""
    return float("inf") if deviation != deviation else deviation


def relative(found, expected):
    return abs(found - expected) / abs(expected) if expected else abs(found)


def largest(deviations):
    """The largest of some deviations, and its index."""
    return max(((deviation, index) for index, deviation in enumerate(deviations)), key=lambda pair: order(pair[0]))


def largest_magnitude(values):
    return max(max(values), -min(values))


def gradient_deviation(found, expected, scale):
    """The largest difference of two elements in units of the scale; two gradients of nothing but zeros are equal."""
    if any(value != value for values in (found, expected) for value in values):
        return float("nan")
    difference = max(map(abs, map(sub, found, expected)))
    return difference / scale if scale else float("inf") if difference else 0.0
