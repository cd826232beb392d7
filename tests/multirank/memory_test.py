# SPDX-License-Identifier: Apache-2.0
"""Proves that a rank takes the memory that its plan predicts: the peak above its start is the arena within 5 % and 16 MiB."""
import json
import subprocess

import runs

TOKENS = ["--data", "x=randint:8192:40x256", "--data", "y=randint:8192:40x256", "--steps", "2"]
RUNS = {
    "mlp": (["--batch", "64"], [*runs.MLP_DATA, "--steps", "20"]),
    "lenet": (["--batch", "64"], [*runs.IMAGE_DATA, "--steps", "5"]),
    "wide_mlp": (["--batch", "256"], [*runs.FLAT_DATA, "--steps", "3"]),
    "gpt": (["--batch", "4"], TOKENS),
}


class MemoryTest(runs.JobTest):
    def predicted(self, job):
        plan = subprocess.run(["unzip", "-p", job, "plan.json"], capture_output=True, check=True).stdout
        return json.loads(plan)["predicted"]["peak_bytes"]

    def check(self, job, *flags):
        end = self.run_job(job, *flags).of("end")[0]
        self.assertEqual([end["arena_bytes"]], self.predicted(job))
        self.assertLessEqual(end["peak_rss_bytes"], 1.05 * end["arena_bytes"] + (16 << 20))
        # A peak that is far below the arena would mean that something else was measured.
        self.assertGreaterEqual(end["peak_rss_bytes"], 0.9 * end["arena_bytes"])

    def test_models_of_the_examples(self):
        for model, (compile_flags, flags) in RUNS.items():
            for threads in "12":
                with self.subTest(model, threads=threads):
                    self.check(self.job(model, *compile_flags), *flags, "--threads", threads)

    def test_weights_of_a_file_do_not_count_twice(self):
        compile_flags, flags = RUNS["gpt"]
        self.run_job(self.job("gpt", *compile_flags), *flags, "--checkpoint", self.path("trained"))
        weights = self.latest("trained") + "/model.safetensors"
        self.check(self.job("gpt", *compile_flags, "--weights", weights), *flags)


if __name__ == "__main__":
    runs.main()
