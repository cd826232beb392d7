# SPDX-License-Identifier: Apache-2.0
"""Proves that a job takes what the search found, and trains as on one rank: stages and cut weights in plan.json are those
that --explain names, pins are met, and losses and gradients are those of one rank.

    python3 compare_searched.py BIN MODEL MESH[+PIN]…        (PIN: LABEL=stage:N or PARAMETER=tensor:D)
"""
import json
import re
import sys
import zipfile

import dg_job
import model_cases
from comparison import Comparison


def ranks_of(mesh):
    return model_cases.count(int(axis.split("=")[1]) for axis in mesh.split(","))


def check_plan(comparison, what, commands, job, source, flags):
    """The first op of each stage and the parameters that are cut, as --explain tells them and as plan.json has them."""
    model = dg_job.EXAMPLES / source if source.endswith(".mlir") else source
    explained = json.loads(commands.run("dgc", model, *flags, "--explain=json"))
    with zipfile.ZipFile(job) as package:
        plan = json.loads(package.read("plan.json"))
    stages = {}
    for chunk in plan["stages"]:
        if chunk["program"] == 0 and chunk["phase"] == "forward":
            for op in chunk["ops"]:
                stages.setdefault(plan["ops"][op]["name"].split("/")[0], chunk["stage"])
    first_ops = [stage["first_op"].split("/")[0] for stage in explained["stages"]]
    # An op that the author gave no name is found under another in the plan.
    named = {op: stage for stage, op in enumerate(first_ops) if not re.fullmatch(r"op\d+", op)}
    comparison.expect(f"{what}: stages of {', '.join(named)}", [stages[op] for op in named], list(named.values()))
    shardings = {value["name"]: value["sharding"] for value in plan["values"] if value["kind"] == "parameter"}
    ops = [op for block in explained["blocks"] for op in block["ops"]]
    told = [(name, int(dim)) for op in ops for dim, name in re.findall(r"dimension (\d+) of ([^ ,;]+)", op["choice"]) if name in shardings]
    if explained["plan"]["mesh"]["tensor"] > 1:
        comparison.expect(f"{what}: weights that are cut", bool(told), True)
    for name, dim in told:
        comparison.expect(f"{what}: sharding of {name}", [d for d, axis in enumerate(shardings[name]) if axis == "tensor"], [dim])


    for pin in (flags[i + 1] for i, flag in enumerate(flags) if flag == "--pin"):
        name, wish, number = re.fullmatch(r"(.+)=(stage|tensor):(\d+)", pin).groups()
        found = [stages[name]] if wish == "stage" else [dim for dim, axis in enumerate(shardings[name]) if axis == "tensor"]
        comparison.expect(f"{what}: {pin}", found, [int(number)])


def main(binaries, name, *plans):
    case, comparison = model_cases.CASES[name], Comparison()
    with dg_job.Commands(binaries) as commands:
        data = model_cases.write_data(case, commands.folder)

        def train(what, flags):
            job = commands.compile(case.source, "--batch", case.batch, *flags)
            losses = commands.losses(job, data, "--steps", case.steps, *case.rate)
            if "--cluster" in flags:
                check_plan(comparison, what, commands, job, case.source, ["--batch", case.batch, *flags])
            return losses, dg_job.gradients_of(commands, case, data, flags, job)

        expected_losses, expected_gradients = train("one rank", [])
        for plan in plans:
            mesh, *pins = plan.split("+")
            what = f"{name} {plan} as searched against 1 rank"
            flags = ["--mesh", mesh, "--cluster", f"cpu:devices={ranks_of(mesh)}", *(word for pin in pins for word in ("--pin", pin))]
            losses, gradients = train(what, flags)
            comparison.check_training(what, losses, expected_losses, case.steps)
            comparison.check_gradients(what, gradients, expected_gradients)
    comparison.finish()


if __name__ == "__main__":
    main(*sys.argv[1:])
