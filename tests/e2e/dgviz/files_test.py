# SPDX-License-Identifier: Apache-2.0
"""Proves what dgviz writes and answers without a browser: files that other tools read, the page on loopback, refusals of broken and
foreign files, and that the phases which dgc keeps add up."""
import csv
import http.client
import io
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import time
import unittest
import xml.etree.ElementTree
import zipfile

import jobs


class FilesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="dg-dgviz-")
        cls.job = jobs.lenet(cls.folder.name, "lenet.dgx", "--mesh", "data=2,pipe=2", "--save-phases")
        cls.plan = jobs.plan_of(cls.job)
        cls.ops = jobs.drawn_ops(cls.plan, "train")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def export(self, kind):
        return jobs.run("dgviz", self.job, "--export", kind, "-o", "-")

    def test_csv_has_a_line_for_each_op(self):
        rows = list(csv.DictReader(io.StringIO(self.export("csv"))))
        train = {int(row["id"]): row for row in rows if row["program"] == "train"}
        self.assertEqual(sorted(train), sorted(self.ops))
        for number, row in train.items():
            op = self.plan["ops"][number]
            self.assertEqual((row["name"], row["kind"], int(row["stage"]), float(row["flops"])), (op["name"], op["kind"], op["stage"], op.get("flops", 0)))

    def test_perfetto_has_every_run_of_an_op(self):
        events = json.loads(self.export("perfetto"))["traceEvents"]
        train = [event for event in events if event["ph"] == "X" and event["args"]["program"] == "train"]
        self.assertAlmostEqual(max(e["ts"] + e["dur"] for e in train), self.plan["predicted"]["step_us"], delta=0.01)
        lanes = {}
        for event in train:  # properly nested: one lane does one thing at a time
            lanes.setdefault((event["pid"], event["tid"]), []).append((event["ts"], event["ts"] + event["dur"]))
        for spans in lanes.values():
            spans.sort()
            for (_, end), (start, _) in zip(spans, spans[1:]):
                self.assertGreaterEqual(start, end - 1e-6)

    def test_graphviz_reads_the_dot_file(self):
        dot = self.export("dot")
        plain = subprocess.run(["gvpr", "N{print($.name)}"], input=dot, capture_output=True, text=True)
        self.assertEqual((plain.returncode, plain.stderr), (0, ""))
        self.assertEqual(len(plain.stdout.split()), len(self.ops))

    def test_svg_is_well_formed(self):
        root = xml.etree.ElementTree.fromstring(self.export("svg"))
        self.assertGreater(len(root.findall("{http://www.w3.org/2000/svg}g")), 10)

    def test_model_explorer_has_nodes_with_known_sources(self):
        graphs = {graph["id"]: graph for graph in json.loads(self.export("model-explorer"))["graphs"]}
        nodes = graphs["train"]["nodes"]
        self.assertEqual(len(nodes), len(self.ops))
        known = {node["id"] for node in nodes}
        self.assertEqual(len(known), len(nodes))
        self.assertTrue(all(edge["sourceNodeId"] in known for node in nodes for edge in node["incomingEdges"]))

    def test_text_says_what_the_plan_says(self):
        text = jobs.run("dgviz", self.job, "--text")
        for part in (jobs.time_text(self.plan["predicted"]["step_us"]), "4 ranks", "limits this plan", "timeline", " stage 1"):
            self.assertIn(part, text)

    def test_replicas_are_shown_and_predicted(self):
        job = jobs.lenet(self.folder.name, "replicas.dgx", "--mesh", "pipe=2", "--microbatches", "8")
        rows = {}
        for replicas, dealt in ((1, None), (3, [3, 3, 2]), (8, [1] * 8)):
            text = jobs.run("dgviz", job, "--replicas", str(replicas), "--text")
            self.assertIn(f": {2 * replicas} ranks", text)
            if dealt:
                self.assertIn(f"replica={replicas} pipe=2", text)
                self.assertIn(f"dealt to {replicas} replicas: {', '.join(map(str, dealt))}", text)
            events = json.loads(jobs.run("dgviz", job, "--replicas", str(replicas), "--export", "perfetto", "-o", "-"))["traceEvents"]
            rows[replicas] = [e for e in events if e["ph"] == "X" and e["args"]["program"] == "train"]
            end = max(e["ts"] + e["dur"] for e in rows[replicas])
            rows[replicas] = (end, sum("all_reduce replicas" in e["name"] for e in rows[replicas]), len(rows[replicas]))
        self.assertEqual(rows[1][1], 0)
        self.assertGreater(rows[3][1], 0)
        self.assertLess(rows[3][2], rows[1][2], "a replica of three runs three of eight micro-batches")
        self.assertLess(rows[8][0], rows[3][0])
        refused = jobs.run("dgviz", job, "--replicas", "9", "--text", code=2)
        self.assertIn("--microbatches 9", refused)

    def test_phases_add_up(self):
        phases = jobs.entry(self.job, "phases.json")["phases"]
        self.assertEqual(phases[0]["pass"], "")
        for before, after in zip(phases, phases[1:]):
            self.assertEqual(len(before["ops"]) + sum(after["added"].values()) - sum(after["removed"].values()), len(after["ops"]), after["pass"])
        kinds = [op[1] for op in phases[-1]["ops"]]
        self.assertIn("dg.send", kinds)
        self.assertNotIn("dg.send", [op[1] for op in phases[0]["ops"]])
        plain = jobs.lenet(self.folder.name, "plain.dgx")
        with zipfile.ZipFile(plain) as package:
            self.assertNotIn("phases.json", package.namelist())

    def test_serve_answers_its_own_host_only(self):
        server = subprocess.Popen([jobs.tool("dgviz"), self.job, "--serve"], stdout=subprocess.PIPE, text=True)
        try:
            address = server.stdout.readline().strip()
            self.assertRegex(address, r"^http://127\.0\.0\.1:\d+/[0-9a-f]{32}/$")
            port, path = int(address.split(":")[2].split("/")[0]), "/" + address.split("/", 3)[3]

            def ask(method, path, host):
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
                connection.putrequest(method, path, skip_host=True)
                connection.putheader("Host", host)
                connection.endheaders()
                answer = connection.getresponse()
                body = answer.read().decode()
                connection.close()
                return answer.status, body

            status, page = ask("GET", path, f"127.0.0.1:{port}")
            self.assertEqual(status, 200)
            with open(jobs.page(self.folder.name, self.job), encoding="utf-8") as file:
                self.assertEqual(page, file.read())
            self.assertEqual(ask("GET", path, "evil.example")[0], 403)
            for guess in ("/", path[:-1], path[:-2] + "/", "/" + "0" * 32 + "/"):
                self.assertEqual(ask("GET", guess, f"localhost:{port}")[0], 404, "the path is the secret")
            self.assertEqual(ask("GET", "/etc/passwd", f"localhost:{port}")[0], 404)
            self.assertEqual(ask("POST", "/", f"localhost:{port}")[0], 405)
            server.send_signal(signal.SIGINT)
            self.assertEqual(server.wait(timeout=20), 0)
        finally:
            server.kill()
            server.wait()
            server.stdout.close()

    def test_serve_keeps_nobody_waiting_for_another(self):
        server = subprocess.Popen([jobs.tool("dgviz"), self.job, "--serve"], stdout=subprocess.PIPE, text=True)
        idle = []
        try:
            address = server.stdout.readline().strip()
            port, path = int(address.split(":")[2].split("/")[0]), "/" + address.split("/", 3)[3]
            for words in (b"", b"GET / HT", f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode()):
                client = socket.create_connection(("127.0.0.1", port), timeout=jobs.DEADLINE_S)
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                client.sendall(words)  # says nothing, half of it, or all of it and never reads the answer
                idle.append(client)
            begin = time.monotonic()
            for _ in range(3):
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
                connection.request("GET", path)
                self.assertEqual(connection.getresponse().status, 200)
                connection.close()
            self.assertLess(time.monotonic() - begin, 5, "the others have ten seconds each")
            self.assertEqual(idle[1].recv(1), b"", "half a request ends with its deadline")
            server.send_signal(signal.SIGINT)
            self.assertEqual(server.wait(timeout=20), 0)
        finally:
            for client in idle:
                client.close()
            server.kill()
            server.wait()
            server.stdout.close()

    def view_data(self, job):
        with open(jobs.page(self.folder.name, job), encoding="utf-8") as file:
            return json.loads(re.search(r'id="view-data">(.*?)</script>', file.read(), re.S).group(1))

    def test_advice_holds_when_it_is_followed(self):
        kinds = set()
        for model, flags in {"lenet": ["--batch", "64", "--mesh", "pipe=2", "--microbatches", "4"],
                             jobs.GPT: ["--batch", "8", "--mesh", "data=2,tensor=2,pipe=2", "--microbatches", "4"]}.items():
            job, followed = self.path("advised.dgx"), self.path("followed.dgx")
            jobs.run("dgc", model, *flags, "-o", job)
            step_us = jobs.plan_of(job)["predicted"]["step_us"]
            for change in self.view_data(job)["programs"][0]["advice"]["changes"]:
                # What is advised, as flags; the later of two wins nothing, so what is replaced is taken out.
                advised = {r"--microbatches \((\d+) in a step\)": ("--microbatches", 1), r"--batch \((\d+) samples": ("--batch", 2),
                           r"(2) where none was given": ("--accumulate", 2), r"--schedule (zb-h1)": ("--schedule", 1)}
                for pattern, (flag, batches) in advised.items():
                    found = re.search(pattern, change["how"])
                    if not found:
                        continue
                    kept = [part for i, part in enumerate(flags) if flag not in (part, flags[i - 1])]
                    jobs.run("dgc", model, *kept, flag, found.group(1), "-o", followed)
                    actual_us = jobs.plan_of(followed)["predicted"]["step_us"] / batches
                    self.assertAlmostEqual(actual_us, step_us - change["gain_us"], delta=0.04 * step_us, msg=f"{model}: {change['title']}")
                    kinds.add(flag)
        self.assertGreaterEqual(len(kinds), 3, kinds)

    def test_updates_of_one_micro_batch_are_updates(self):
        job = jobs.lenet(self.folder.name, "one.dgx", "--mesh", "data=2")
        rows = list(csv.DictReader(io.StringIO(jobs.run("dgviz", job, "--export", "csv", "-o", "-"))))
        work = {row["op"]: row["work"] for row in rows if row["program"] == "train"}
        self.assertEqual((work["dg.momentum"], work["dg.conv2d_weight_grad"], work["dg.conv2d_input_grad"]), ("update", "weight gradient", "input gradient"))
        products = [row["work"] for row in rows if row["program"] == "train" and row["name"] == "fc1/matmul" and row["phase"] == "backward"]
        self.assertEqual(sorted(products), ["input gradient", "weight gradient"])

    def test_output_is_never_what_it_should_not_be(self):
        with open(self.job, "rb") as file:
            before = file.read()
        self.assertIn("is what dgviz reads", jobs.run("dgviz", self.job, "-o", self.job, code=2))
        self.assertIn("is a folder", jobs.run("dgviz", self.job, "-o", os.path.dirname(self.job), code=2))
        with open(self.job, "rb") as file:
            self.assertEqual(file.read(), before)
        # A link stays a link; what it points to is written.
        os.symlink(self.path("target.html"), self.path("link.html"))
        jobs.run("dgviz", self.job, "-o", self.path("link.html"))
        self.assertTrue(os.path.islink(self.path("link.html")))
        with open(self.path("target.html"), encoding="utf-8") as file:
            self.assertTrue(file.read().lower().startswith("<!doctype html>"))
        # A pipe is written to as it is.
        os.mkfifo(self.path("pipe"))
        with open(self.path("piped.html"), "wb") as piped, subprocess.Popen(["cat", self.path("pipe")], stdout=piped) as reader:
            jobs.run("dgviz", self.job, "-o", self.path("pipe"))
            self.assertEqual(reader.wait(timeout=20), 0)
        with open(self.path("piped.html"), encoding="utf-8") as file:
            self.assertTrue(file.read().lower().startswith("<!doctype html>"))
        self.assertFalse([name for name in os.listdir(os.path.dirname(self.path("x"))) if name.endswith(".partial")])

    def test_broken_and_foreign_files_are_refused(self):
        with open(self.job, "rb") as file:
            whole = file.read()
        with zipfile.ZipFile(self.path("foreign.dgx"), "w") as package:
            package.writestr("hello.txt", "no plan")
        texts = {"empty.dgx": b"", "cut.dgx": whole[:len(whole) // 2], "text.dgx": b"<html>no package</html>",
                 "flipped.dgx": whole[:5000] + bytes([whole[5000] ^ 1]) + whole[5001:]}
        for name, content in texts.items():
            with open(self.path(name), "wb") as file:
                file.write(content)
        for name in [*texts, "foreign.dgx", "missing.dgx"]:
            message = jobs.run("dgviz", self.path(name), "-o", self.path("never.html"), code=65)
            self.assertIn(name, message)
            self.assertEqual(message.count("\n"), 1, message)
        for name, content in {"no.json": b"{}", "half.json": b'{"traceEvents": [{"ph":"X"', "other.json": b'{"traceEvents":[{"ph":"X","name":"?","ts":1,"dur":1,"pid":0,"tid":0,"args":{"op":0,"step":1,"microbatch":0,"program":"train"}}]}'}.items():
            with open(self.path(name), "wb") as file:
                file.write(content)
            message = jobs.run("dgviz", self.job, self.path(name), "-o", self.path("never.html"), code=65)
            self.assertIn(name, message)
        self.assertFalse(os.path.exists(self.path("never.html")))


if __name__ == "__main__":
    unittest.main()
