# SPDX-License-Identifier: Apache-2.0
"""Proves that a checkpoint which does not fit on the disk ends the run with a message, leaves nothing half-written, and that the
previous checkpoint is as it was and resumes to the bits of a run that never failed; the same of a job that dgc writes over another."""
import os
import subprocess
import tempfile

import runs

DISK = "/mnt"


class FullDiskTest(runs.JobTest):
    def fail_and_resume(self, job, data, folder, make_room, message, **limits):
        """One good checkpoint, a run that fails at the second, then room, and the run to its end."""
        checkpoint = ["--checkpoint", folder]
        length = ["--steps", "6", "--checkpoint-every", "2steps", "--max-lost", "1"]
        whole_folder = tempfile.mkdtemp(dir=self.folder)
        whole = self.run_job(job, *data, *length, "--checkpoint", whole_folder)
        self.run_job(job, *data, "--steps", "2", *checkpoint)
        good = self.checkpoint_files(folder)
        self.assertEqual(sorted(os.listdir(folder)), ["step-000002"])
        failed = self.run_job(job, *data, *length, *checkpoint, "--resume", code=74, **limits)
        print(failed.err.strip(), flush=True)
        self.assertIn("step-000004", failed.err)
        # What does not fit is found at once, or by the thread that writes behind the steps.
        self.assertRegex(failed.err, "failed while writing a checkpoint, step [456]: ")
        self.assertEqual([event["step"] for event in failed.of("save_failed")], [4])
        self.assertIn("it is tried once more", failed.err)
        self.assertRegex(failed.err, message)
        self.assertEqual(sorted(os.listdir(folder)), ["step-000002"], "a half-written checkpoint stays")
        self.assertTrue(self.checkpoint_files(folder) == good, "the previous checkpoint was altered")
        make_room()
        resumed = self.run_job(job, *data, *length, *checkpoint, "--resume")
        self.assertEqual(resumed.of("start")[0]["step"], 2)
        self.assertEqual(resumed.lines("step"), whole.lines("step")[2:])
        written = self.checkpoint_files(folder)
        for name, content in self.checkpoint_files(whole_folder).items():
            self.assertTrue(written[name] == content, f"{name} differs")

    def test_disk_is_full(self):
        # The lock is a page, a checkpoint of this model two, tensors and manifest: no room for the tensors, then none for the manifest.
        job = self.job("mlp", "--batch", "10", "--mesh", "data=2,pipe=2")
        page = os.sysconf("SC_PAGE_SIZE")
        for pages in (3, 4):
            with self.subTest(pages=pages):
                folder = os.path.join(DISK, str(pages))
                os.mkdir(folder)
                mount = ["mount", "-t", "tmpfs", "-o", f"size={pages * page}", "dg-test", folder]
                subprocess.run(mount, check=True)
                grow = ["mount", "-o", "remount,size=1M", folder]
                self.fail_and_resume(job, runs.MLP_DATA, folder, lambda: subprocess.run(grow, check=True), "(?i)space|full")

    def test_job_does_not_fit(self):
        folder = os.path.join(DISK, "job")
        os.mkdir(folder)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={2 * os.sysconf('SC_PAGE_SIZE')}", "dg-test", folder], check=True)
        for flags in ([], ["--emit", "asm"]):
            with self.subTest(flags=flags):
                path = os.path.join(folder, "job.dgx")
                with open(path, "w") as file:
                    file.write("an earlier job")
                command = [runs.tool("dgc"), os.path.join(runs.EXAMPLES, "lenet.mlir"), "--batch", "8", *flags, "-o", path]
                run = subprocess.run(command, capture_output=True, text=True, timeout=runs.DEADLINE_S)
                print(run.stderr.strip(), flush=True)
                self.assertEqual(run.returncode, 74, run.stderr)
                self.assertRegex(run.stderr, "(?i)^dgc: error: .*(space|full)")
                self.assertEqual(os.listdir(folder), ["job.dgx"], "a half-written job stays")
                with open(path) as file:
                    self.assertEqual(file.read(), "an earlier job")
        for flags in (["--emit", "plan"], ["--ranks", "2", "--explain"], ["--ranks", "2", "--simulate"]):
            with self.subTest(flags=flags), open("/dev/full", "w") as full:
                command = [runs.tool("dgc"), os.path.join(runs.EXAMPLES, "lenet.mlir"), "--batch", "8", *flags]
                run = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=runs.DEADLINE_S)
                self.assertEqual(run.returncode, 74, run.stderr)
                self.assertRegex(run.stderr, "(?m)^dgc: error: standard output cannot be written: .*space")

    def test_file_size_limit(self):
        # 22 MB of parameters and Adam's moments; nothing else that a rank makes is so large.
        job = self.job("wide_mlp", "--batch", "64", "--mesh", "data=2")
        self.fail_and_resume(job, runs.FLAT_DATA, self.path("limited"), lambda: None, "(?i)large|limit",
                             limit_file_bytes=16 << 20)


if __name__ == "__main__":
    runs.isolated(DISK)
    runs.main()
