# SPDX-License-Identifier: Apache-2.0
"""Proves that files made to harm their reader (JSON 200,000 deep, a device without end, names with escape sequences) end dgc, dgrun
and dgviz with one message, exit code 65 and nothing that a terminal obeys."""
import json
import os
import subprocess

import runs

DEEP = 200_000
ESCAPES = "\x1b]0;owned\x07\x1b[2J\x9b31m"


class ReadersTest(runs.JobTest):
    def refused(self, command, *words):
        """Ends with 65, and stderr has the words and no control character but line feeds."""
        run = subprocess.run(command, capture_output=True, timeout=runs.DEADLINE_S, cwd=self.folder)
        self.assertEqual(run.returncode, 65, (command, run.stderr))
        text = run.stderr.decode()
        for word in words:
            self.assertIn(word, text)
        self.check_printable(run.stderr)
        return text

    def check_printable(self, output):
        controls = [c for c in output.decode() if (c < " " and c not in "\n\t") or "\x7f" <= c < "\xa0"]
        self.assertEqual(controls, [], output)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def test_json_that_is_nested_too_deep(self):
        job = self.job("mlp", "--batch", "10")
        model = os.path.join(runs.EXAMPLES, "mlp.mlir")
        self.run_job(job, *runs.MLP_DATA, "--steps", "1", "--checkpoint", self.path("saved"))
        for shape, text in (("lists", "[" * DEEP + "]" * DEEP), ("objects", '{"a":' * DEEP + "1" + "}" * DEEP), ("open", "[" * DEEP),
                            ("trace", '{"traceEvents":[{"args":' + "[" * DEEP + "]" * DEEP + "}]}")):
            with self.subTest(shape):
                bad = self.write(shape + ".json", text)
                self.refused([runs.tool("dgc"), model, "--ranks", "2", "--cluster", bad, "-o", self.path("x.dgx")], bad, "nested")
                self.refused([runs.tool("dgviz"), job, bad, "-o", self.path("x.html")], bad, "nested")
                manifest = self.write("saved/step-000001/manifest.json", text)
                self.refused([runs.tool("dgrun"), job, *runs.MLP_DATA, "--checkpoint", "saved", "--resume"], "manifest.json", "nested")
                os.remove(manifest)

    def test_a_file_without_end(self):
        model = os.path.join(runs.EXAMPLES, "mlp.mlir")
        self.refused([runs.tool("dgc"), model, "--ranks", "2", "--cluster", "/dev/zero", "-o", self.path("x.dgx")], "/dev/zero")

    def test_names_with_escape_sequences(self):
        job = self.job("mlp", "--batch", "10")
        model = os.path.join(runs.EXAMPLES, "mlp.mlir")
        cluster = self.write("c.json", json.dumps({"version": 1, ESCAPES: 1}))
        self.refused([runs.tool("dgc"), model, "--ranks", "2", "--cluster", cluster, "-o", self.path("x.dgx")], "c.json")
        event = {"name": ESCAPES, "ph": "X", "ts": 1, "dur": 1, "pid": 0, "tid": 0, "args": {"op": 0, "step": 1, "microbatch": 0}}
        trace = self.write("t.json", json.dumps({"traceEvents": [event]}))
        self.assertIn("\\x1b", self.refused([runs.tool("dgviz"), job, trace, "-o", self.path("x.html")], "another job"))
        named = self.path("folder" + ESCAPES)
        self.assertIn("\\x1b", self.refused([runs.tool("dgrun"), job, *runs.MLP_DATA, "--resume", named], "no checkpoint there"))


if __name__ == "__main__":
    runs.main()
