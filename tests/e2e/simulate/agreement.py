# SPDX-License-Identifier: Apache-2.0
"""Proves that dgc --simulate says of a plan what the compiled plan predicts of itself, for the four examples on nine meshes with every
schedule. Prints each plan and the largest difference; exits with 1 where that is more than the goal.

    python3 agreement.py DGC SOURCE [GOAL_PERCENT]
"""
import json
import math
import os
import subprocess
import sys
import tempfile
import zipfile

EXAMPLES = {"mlp": 64, "lenet": 64, "wide_mlp": 256, "gpt": 8}
MESHES = ["data=1", "data=2", "data=4", "tensor=2", "pipe=2", "pipe=4", "data=2,pipe=2", "data=2,tensor=2", "tensor=2,pipe=2"]
SCHEDULES = ["gpipe", "1f1b", "interleaved:2", "zb-h1", "zb-v"]


def step_us(dgc, *arguments):
    """Of the plan or of its simulation; none where there is no such plan, with what dgc says of it."""
    done = subprocess.run([dgc, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return None, done.stderr.strip().splitlines()[-1]
    result = json.loads(done.stdout)
    return result.get("predicted", result)["step_us"], ""


def machines_of_a_plan_by_hand(dgc, ranks, folder):
    """A cluster file of what a job by hand for so many ranks was predicted with."""
    job, path = os.path.join(folder, "job.dgx"), os.path.join(folder, f"{ranks}.json")
    subprocess.run([dgc, "mlp:8-8-8", "--batch", "8", "--optimizer", "sgd:lr=0.1", "--mesh", f"data={ranks}", "-o", job], check=True)
    with zipfile.ZipFile(job) as package, open(path, "wb") as file:
        file.write(package.read("cluster.json"))
    return path


def main(dgc, source, goal="1"):
    with tempfile.TemporaryDirectory() as folder:
        return compare(dgc, source, goal, {ranks: machines_of_a_plan_by_hand(dgc, ranks, folder) for ranks in (1, 2, 4)})


def compare(dgc, source, goal, machines):
    worst, numPlans = 0, 0
    for name, batch in EXAMPLES.items():
        for mesh in MESHES:
            for schedule in SCHEDULES if "pipe" in mesh else ["1f1b"]:
                plan = [os.path.join(source, "examples", name + ".mlir"), "--batch", str(batch), "--mesh", mesh, "--schedule", schedule]
                plan += ["--microbatches", "4" if "pipe" in mesh else "1", "--precision", "f32", "--recompute", "none", "--zero", "0"]
                ranks = math.prod(int(part.split("=")[1]) for part in mesh.split(","))
                simulated, why = step_us(dgc, *plan, "--cluster", machines[ranks], "--simulate=json")
                compiled, whyNot = step_us(dgc, *plan, "--emit", "plan")
                if simulated is None or compiled is None:
                    print(f"{name:10}{mesh:18}{schedule:13}{why or 'simulated'} / {whyNot or 'compiled'}")
                    continue
                difference = 100 * (simulated / compiled - 1)
                numPlans, worst = numPlans + 1, max(worst, abs(difference))
                print(f"{name:10}{mesh:18}{schedule:13}{simulated:12.1f}{compiled:12.1f}{difference:+9.1f} %", flush=True)
    print(f"{numPlans} plans, largest difference {worst:.1f} %, goal {goal} %")
    return 0 if worst <= float(goal) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
