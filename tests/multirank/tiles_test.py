# SPDX-License-Identifier: Apache-2.0
"""Proves that jobs compiled for AMX train: whole bf16 steps of a GPT whose products are made in tiles lose what the same steps lose with f32
arithmetic on bf16 factors (x86-64-v3), on one rank and on two; and that a kernel that gives no tiles is named. dgrun itself runs the
machine code: on a processor with AMX, or with tile_host.so loaded before it, which emulates the instructions (TILE_HOST has its path)."""
import os
import subprocess

import runs

TILES, PLAIN = "sapphirerapids", "x86-64-v3"
NEEDED = ("avx512vl", "avx512_vnni", "avx512_bf16", "avx512vbmi")
GPT = ("gpt:layers=2,hidden=64,heads=2,seq=32,vocab=160", "--batch", "6", "--optimizer", "adamw:lr=0.003")
TOKENS = ("--data", "x=randint:160:24x32", "--data", "y=randint:160:24x32")


def flags_of_host():
    with open("/proc/cpuinfo") as file:
        return next(line for line in file if line.startswith("flags")).split()


class TilesTest(runs.JobTest):
    def setUp(self):
        super().setUp()
        flags = flags_of_host()
        lacking = [flag for flag in NEEDED if flag not in flags]
        if lacking:
            self.skipTest(f"this processor lacks {', '.join(lacking)}, which are not emulated")
        self.is_emulated = "amx_tile" not in flags
        self.tile_host = {"LD_PRELOAD": os.environ["TILE_HOST"]} if self.is_emulated else {}

    def compile(self, *flags):
        path = self.path("job.dgx")
        subprocess.run([runs.tool("dgc"), *flags, "--precision", "bf16", "--target", f"{PLAIN},{TILES}", "-o", path], check=True)
        return path

    def check_losses_of_tiles(self, job, *flags):
        flags = (*flags, "--seed", "7")
        plain = self.run_job(job, *flags, "--target", PLAIN)
        tiles = self.run_job(job, *flags, environment=self.tile_host)
        self.assertEqual(tiles.of("start")[0]["target"], TILES)
        expected, found = ([step["loss"] for step in run.of("step")] for run in (plain, tiles))
        self.assertEqual(len(found), 8)
        for step, (want, got) in enumerate(zip(expected, found)):
            self.assertAlmostEqual(want, got, delta=0.004 * want, msg=f"step {step}")
        self.assertNotEqual(expected, found, "sums in another order differ somewhere")
        self.assertLess(found[-1], 0.97 * found[0], "it trains")

    def test_gpt(self):
        self.check_losses_of_tiles(self.compile(*GPT), *TOKENS, "--steps", "8")

    def test_gpt_on_two_ranks(self):
        self.check_losses_of_tiles(self.compile(*GPT, "--mesh", "data=2"), *TOKENS, "--steps", "8")

    def test_a_kernel_without_tiles(self):
        if not self.is_emulated:
            self.skipTest("this host has AMX, and its kernel gives tiles")
        job, environment = self.compile(*GPT), dict(self.tile_host, DG_TEST_REFUSE_TILES="1")
        run = self.run_job(job, *TOKENS, "--steps", "1", "--target", TILES, code=65, environment=environment)
        self.assertEqual(run.err.count("gives no AMX tiles to this process: Operation not permitted"), 1, run.err)
        self.assertIn("--target x86-64-v4", run.err)
        other = self.run_job(job, *TOKENS, "--steps", "1", environment=environment)
        self.assertEqual(other.of("start")[0]["target"], PLAIN, "the next best target of the package")


if __name__ == "__main__":
    runs.main()
