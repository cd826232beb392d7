# SPDX-License-Identifier: Apache-2.0
"""Proves that every view of the page shows what plan.json and the trace say, that nothing is loaded, and that no name of a model
becomes part of the page."""
import json
import os
import re
import unittest

import jobs
from browser import ENTER, ESCAPE, VIEWS
from jobs import bytes_text, percent, time_text
from views import ViewTest


class PageTest(ViewTest):
    def test_lenet_data_parallel(self):
        job = jobs.lenet(self.folder, "lenet.dgx", "--mesh", "data=2", "--save-phases")
        self.open(job)
        self.check_all(job, "conv2/conv2d")
        self.check_passes(job)
        # The other program of the job.
        self.browser.run("[...document.querySelectorAll('#programs button')].find((b) => b.textContent === 'eval').click()")
        self.browser.show("graph")
        self.assertIn(f"{len(jobs.drawn_ops(jobs.plan_of(job), 'eval'))} ops", self.browser.text("#view-graph .panel-head"))

    def test_gpt_with_trace(self):
        job, trace = jobs.gpt_with_trace(self.folder)
        with open(trace) as file:
            events = [event for event in json.load(file)["traceEvents"] if event["ph"] == "X" and event["args"]["program"] == "train"]
        lengths = {}
        for step in {event["args"]["step"] for event in events}:
            own = [event for event in events if event["args"]["step"] == step]
            lengths[step] = max(e["ts"] + e["dur"] for e in own) - min(e["ts"] for e in own)
        first = min(lengths)
        by_length = sorted((us, step) for step, us in lengths.items() if step != first)
        measured_us, shown = by_length[len(by_length) // 2]
        self.open(job, trace)
        self.check_all(job, "b0_q/matmul", measured_us)
        self.check_passes(job)
        self.browser.show("timeline")
        self.assertIn(f"step {shown}, the median of {len(lengths)}", self.browser.text("#view-timeline .panel-head"))
        plan = jobs.plan_of(job)
        view = self.browser.data("view-data")
        self.assertEqual(len(view["programs"][0]["measured"]["tasks"]), sum(event["args"]["step"] == shown for event in events))
        # The errors: measured means against the trace.
        rows = {row[0]: row for row in self.browser.rows("#view-timeline > .panel:last-child")}
        self.assertGreater(len(rows), 10)
        names = [op["name"] for op in plan["ops"]]
        for name, row in rows.items():
            if names.count(name) != 1:
                continue
            calls = {}
            for event in events:
                if event["args"]["step"] == shown and event["name"] == name:
                    start, end = calls.get((event["pid"], event["args"]["microbatch"]), (1e30, 0))
                    calls[event["pid"], event["args"]["microbatch"]] = (min(start, event["ts"]), max(end, event["ts"] + event["dur"]))
            mean = sum(end - start for start, end in calls.values()) / len(calls)
            self.assertEqual(row[3], time_text(round(mean, 3)), name)

    def test_difference_of_two_plans(self):
        before = jobs.lenet(self.folder, "before.dgx", "--mesh", "data=2")
        after = jobs.lenet(self.folder, "after.dgx", "--mesh", "pipe=2")
        self.open(before, after)
        self.assertTrue(self.browser.one("#view-difference").is_displayed(), "two jobs open at their difference")
        a, b = jobs.plan_of(before), jobs.plan_of(after)
        rows = {row[0]: row for row in self.browser.rows("#view-difference .pair .panel")}
        self.assertEqual(rows["step, predicted"][1:3], [time_text(plan["predicted"]["step_us"]) for plan in (a, b)])
        peaks = [max(m["arena_bytes"] for m in plan["memory"]) for plan in (a, b)]
        self.assertEqual(rows["peak memory of a device"][1:3], [bytes_text(peak) for peak in peaks])
        self.assertEqual(rows["bytes between ranks"][1:3], [bytes_text(round(sum(jobs.traffic(plan, "train").values()))) for plan in (a, b)])
        settings = {row[0]: row[1:3] for row in self.browser.rows("#view-difference > .settings")}
        mesh_text = lambda plan: ",".join(f"{axis}={plan['mesh'][axis]}" for axis in ("data", "tensor", "pipe"))
        self.assertEqual(settings["mesh"], [mesh_text(a), mesh_text(b)])
        self.assertEqual(settings["micro-batches"], [str(plan["programs"][0]["microbatches"]) for plan in (a, b)])
        self.assertEqual(settings["schedule"], [plan["programs"][0]["schedule"] for plan in (a, b)])
        self.assertNotIn("models differ", self.browser.text("#view-difference"))
        moved = self.browser.rows("#view-difference > .panel:last-child")
        self.assertTrue(any("stage 0 → 1" in row[2] for row in moved))
        self.assertEqual(self.browser.data("plan-data"), b)

    def test_difference_of_two_models(self):
        before, after = os.path.join(self.folder, "mlp.dgx"), jobs.lenet(self.folder, "other.dgx")
        jobs.run("dgc", "mlp:784-32-10", "--batch", "64", "-o", before)
        self.open(before, after)
        self.assertRegex(self.browser.text("#view-difference .warning"), r"The models differ: .*mlp.* became lenet")

    def test_partial_sums_are_not_drawn_as_whole(self):
        job = jobs.lenet(self.folder, "partial.dgx", "--mesh", "data=2")
        plan = jobs.plan_of(job)
        reduces = [op for op in plan["ops"] if op["kind"] == "all_reduce" and op["name"] == "fc1.weight/all_reduce"]
        gradient = reduces[0]["value"]
        for number, op in enumerate(plan["ops"]):
            if gradient not in jobs.values_of(op):
                continue
            self.open(job, fragment=f"#graph&op={number}")
            row = next(row for row in self.browser.texts("#side .value-row") if row.startswith(plan["values"][gradient]["name"]))
            if op["op"] == "dg.momentum":
                self.assertIn("whole on each of ranks 0–1", row, op["name"])
            else:
                self.assertIn("partial sums: each rank along data holds a summand", row, op["name"])
                self.assertIn("r 0 + 1", row, op["name"])
            self.assertEqual("this op adds them up" in row, op["kind"] == "all_reduce")

    def test_alternatives_of_a_search(self):
        flags = [jobs.GPT, "--batch", "8", "--ranks", "4"]
        job = os.path.join(self.folder, "searched.dgx")
        jobs.run("dgc", *flags, "-o", job)
        why = json.loads(jobs.run("dgc", *flags, "--explain=json", notes=False))
        self.open(job, fragment="#alternatives")
        plan = jobs.plan_of(job)
        self.assertEqual(len(self.browser.all(".point.chosen")), 1)
        self.assertIn(why["binding"], self.browser.text("#view-alternatives"))
        rows = self.browser.rows("#view-alternatives > .panel:last-child")
        peak, search = max(m["arena_bytes"] for m in plan["memory"]), plan["search"]
        expected = [("this plan", search["lower_bound_us"] * (1 + search["gap"]), peak), ("this plan, compiled", plan["predicted"]["step_us"], peak)]
        expected += [(a["description"], a["step_us"], a["peak_bytes"]) for a in plan["search"]["alternatives"]]
        self.assertEqual([(row[0], row[1], row[3]) for row in rows], [(name, time_text(us), bytes_text(peak)) for name, us, peak in expected])
        self.assertIn(time_text(plan["search"]["lower_bound_us"]), self.browser.text("#view-alternatives .panel-head"))
        self.browser.show("summary")
        self.assertEqual(self.browser.text("[data-figure=gap] .value"), percent(plan["search"]["gap"]))
        # Why an op stands where it does: what the search says of it.
        reason = next(op for block in why["blocks"] for op in block["ops"] if op["name"] == "b0_up/matmul")
        self.browser.find("b0_up/matmul")
        self.browser.press("#search", ENTER)
        self.assertIn(reason["choice"], self.browser.text("#side"))
        self.assertIn(reason["bound_by"], self.browser.text("#side"))

    def test_hostile_names_are_text(self):
        job = jobs.sample(self.folder, "hostile")
        self.open(job)
        name = jobs.plan_of(job)["model"]["name"]
        self.assertIn("<img", name)
        for view in VIEWS:
            self.browser.show(view)
        self.browser.find("fc0_0")
        self.browser.press("#search", ENTER)
        self.assertIn(name, self.browser.text("#side"))
        self.assertEqual(self.browser.text("#title"), name)
        self.assertNotEqual(self.browser.driver.title, "broken")
        self.assertEqual(self.browser.run("return document.images.length + document.scripts.length"), 3, "the page's own three scripts, no image")

    def test_small_screens_themes_and_paper(self):
        job = jobs.lenet(self.folder, "small.dgx", "--mesh", "data=2,pipe=2", "--save-phases")
        self.open(job)
        self.browser.resize(390, 844)
        for view in VIEWS:
            self.browser.show(view)
            wide = self.browser.run("return document.documentElement.scrollWidth")
            self.assertLessEqual(wide, 390, f"{view} is wider than a phone")
        # An op that is chosen stays in sight of the sheet that tells of it.
        self.browser.show("graph")
        self.browser.run("[...document.querySelectorAll('#view-graph button')].find((b) => b.textContent === 'fit').click()")
        for name in ("conv1/conv2d", "fc2/matmul"):
            self.browser.find(name)
            self.browser.press("#search", ENTER)
            self.assertEqual(self.browser.text("#side h3"), name)
            box = self.browser.run("const r = document.querySelector('#view-graph .node.selected .body').getBoundingClientRect(); return [r.left, r.right, r.top, r.bottom]")
            over = self.browser.run("return [document.querySelector('#views').getBoundingClientRect().bottom, document.querySelector('#side').getBoundingClientRect().top]")
            self.assertTrue(box[2] >= over[0] and box[3] <= over[1] and box[0] >= 0 and box[1] <= 390, f"{name}: {box} between {over}")
        self.browser.press("body", ESCAPE)
        self.browser.resize(1280, 900)
        colours = set()
        for _ in range(2):
            self.browser.one("#theme").click()
            colours.add(self.browser.run("return getComputedStyle(document.body).backgroundColor"))
        self.assertEqual(len(colours), 2)
        # Paper shows the whole graph and the whole step, whatever the window shows; the screen then is as before.
        self.browser.show("timeline")
        self.browser.press("body", "++++")
        self.browser.show("graph")
        self.browser.press("body", "++++")
        self.browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        self.browser.resize(760, 1000)
        self.browser.run("dispatchEvent(new Event('beforeprint'))")
        outside = self.browser.run("""const host = document.querySelector('#view-graph .graph').getBoundingClientRect();
            return [...document.querySelectorAll('#view-graph .node .body')].map((n) => n.getBoundingClientRect())
              .filter((r) => r.left < host.left - 1 || r.right > host.right + 1 || r.top < host.top - 1 || r.bottom > host.bottom + 1).length""")
        self.assertEqual(outside, 0, "every box of the graph is on the sheet")
        self.assertEqual(self.browser.run("const c = document.querySelector('#view-timeline canvas'); return [c.dataset.shown, c.getBoundingClientRect().right <= innerWidth]"), ["0 1", True])
        self.browser.run("dispatchEvent(new Event('afterprint'))")
        self.browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
        self.browser.resize(1280, 900)
        self.assertNotEqual(self.browser.run("return document.querySelector('#view-timeline canvas').dataset.shown"), "0 1")
        paper = self.browser.pdf()
        self.assertTrue(paper.startswith(b"%PDF"))
        pages = len(re.findall(rb"/Type\s*/Page\b", paper))
        self.assertGreaterEqual(pages, len(VIEWS), "every view is printed")

    def test_links_and_keys(self):
        job = jobs.lenet(self.folder, "links.dgx", "--mesh", "data=2")
        self.open(job, fragment="#graph&op=3")
        self.assertEqual(self.browser.text("#side h3"), jobs.plan_of(job)["ops"][3]["name"])
        self.assertTrue(self.browser.one("#view-graph").is_displayed())
        self.browser.run("location.hash = '#memory&op=5'")
        self.assertTrue(self.browser.one("#view-memory").is_displayed())
        self.assertEqual(self.browser.text("#side h3"), jobs.plan_of(job)["ops"][5]["name"])
        for number, view in enumerate(VIEWS, 1):
            self.browser.press("body", str(number))
            self.assertTrue(self.browser.one(f"#view-{view}").is_displayed(), view)

    def test_keys_work_without_a_click(self):
        job = jobs.lenet(self.folder, "keys.dgx", "--mesh", "data=2", "--save-phases")
        places = {"graph": "document.querySelector('#view-graph .graph svg > g').getAttribute('transform')", "timeline": "document.querySelector('#view-timeline canvas').dataset.shown",
                  "passes": "document.querySelector('#view-passes .graph svg > g').getAttribute('transform')"}
        for view, place in places.items():
            self.open(job, fragment="#" + view)
            for key in ("+", "\ue014", "0"):
                before = self.browser.run("return " + place)
                self.browser.type(key)
                self.browser.run("return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")
                self.assertNotEqual(before, self.browser.run("return " + place), f"{view}: {key!r}")

    def test_escape_ends_a_search(self):
        self.open(jobs.lenet(self.folder, "escape.dgx"), fragment="#graph")
        for where in ("#search", "body"):
            self.browser.find("conv1")
            self.assertGreater(len(self.browser.all("#view-graph .node.dim")), 0)
            self.browser.press(where, ESCAPE)
            self.assertEqual(self.browser.all("#view-graph .node.dim"), [], where)
            self.assertEqual(self.browser.run("return document.querySelector('#search').value"), "")
            self.assertFalse(self.browser.one("#side").is_displayed())

    def test_back_goes_to_the_view_before(self):
        job = jobs.lenet(self.folder, "back.dgx", "--mesh", "data=2")
        self.open(job)
        for view in ("graph", "timeline", "memory"):
            self.browser.show(view)
        self.browser.run("[...document.querySelectorAll('#programs button')].find((b) => b.textContent === 'eval').click()")
        for view, name in (("memory", "train"), ("timeline", "train"), ("graph", "train"), ("summary", "train")):
            self.browser.driver.back()
            self.assertTrue(self.browser.one(f"#view-{view}").is_displayed(), view)
            self.assertEqual(self.browser.text("#programs [aria-pressed=true]"), name)
        self.browser.driver.forward()
        self.assertTrue(self.browser.one("#view-graph").is_displayed())


if __name__ == "__main__":
    unittest.main()
