# SPDX-License-Identifier: Apache-2.0
"""What every page must show, view by view, worked out again from plan.json: the checks that the tests of this folder share."""
import math
import re
import tempfile
import time
import unittest

import jobs
from browser import ENTER, ESCAPE, Browser
from jobs import bytes_text, count_text, flop_text, percent, time_text


class ViewTest(unittest.TestCase):
    """Opens pages in one browser; after each test its console must be empty and nothing may have been asked for."""

    @classmethod
    def setUpClass(cls):
        cls.started = time.monotonic()
        cls.directory = tempfile.TemporaryDirectory(prefix="dg-dgviz-")
        cls.folder = cls.directory.name
        cls.browser = Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.quit()
        cls.directory.cleanup()
        print(f"{time.monotonic() - cls.started:.1f} s in all", flush=True)

    def open(self, *files, fragment=""):
        self.browser.resize(1280, 900)
        self.browser.open(jobs.page(self.folder, *files), fragment)

    def tearDown(self):
        console, requests = self.browser.logs()
        self.assertEqual(console, [])
        self.assertEqual(requests, [])

    # ---- What every plan must show ----
    def check_summary(self, plan, measured_us=None):
        self.browser.show("summary")
        figure = lambda name: self.browser.text(f"[data-figure={name}] .value")
        self.assertEqual(figure("step"), time_text(plan["predicted"]["step_us"]))
        self.assertEqual(figure("bubble"), percent(plan["predicted"]["bubble"]))
        self.assertEqual(figure("peak"), bytes_text(max(m["arena_bytes"] for m in plan["memory"])))
        self.assertEqual(figure("parameters"), count_text(plan["model"]["parameters"]))
        self.assertEqual(figure("ranks"), str(plan["mesh"]["pipe"] * plan["mesh"]["data"] * plan["mesh"]["tensor"]))
        self.assertEqual(figure("moved"), bytes_text(round(sum(jobs.traffic(plan, "train").values()))))
        if measured_us is not None:
            self.assertEqual(figure("measured"), time_text(measured_us))
        self.assertRegex(self.browser.text(".lead-panel .lead"), r"limits this plan")
        changes = self.browser.texts(".change .gain")
        self.assertLessEqual(len(changes), 3)
        self.assertTrue(changes or "more than 1 %" in self.browser.text("#view-summary"))

    def check_stage_colours(self, plan, ops):
        """As many boxes have the colour that the legend gives a stage as the stage has ops."""
        self.browser.run("[...document.querySelectorAll('#view-graph button')].find((b) => b.textContent === 'open all').click()")
        colours = self.browser.run("return [...document.querySelectorAll('#view-graph .legend i')].map((i) => getComputedStyle(i).backgroundColor)")
        boxes = self.browser.run("return [...document.querySelectorAll('#view-graph .node:not(.group) .tint')].map((r) => getComputedStyle(r).fill)")
        stages = [plan["ops"][op].get("stage", 0) for op in ops]
        self.assertEqual(len(set(colours)), len(plan["memory"]))
        self.assertEqual([boxes.count(colour) for colour in colours], [stages.count(stage) for stage in range(len(colours))])
        self.browser.run("[...document.querySelectorAll('#view-graph button')].find((b) => b.textContent === 'close all').click()")

    def check_graph(self, plan, some_op):
        self.browser.show("graph")
        ops = jobs.drawn_ops(plan, "train")
        self.assertIn(f"{len(ops)} ops", self.browser.text("#view-graph .panel-head"))
        self.browser.run("[...document.querySelectorAll('#view-graph button')].find((b) => b.textContent === 'open all').click()")
        drawn = self.browser.run("return document.querySelectorAll('#view-graph .node:not(.group)').length")
        self.assertEqual(drawn, len(ops))
        self.browser.run("[...document.querySelectorAll('#view-graph button')].find((b) => b.textContent === 'close all').click()")
        self.assertLess(self.browser.run("return document.querySelectorAll('#view-graph .node').length"), 201)
        cut = self.browser.run("""return [...document.querySelectorAll('#view-graph .node:not(.open)')].filter((n) => {
            const right = n.querySelector('.body').getBoundingClientRect().right;
            return [...n.querySelectorAll('text')].some((t) => t.getBoundingClientRect().right > right) || /[…]$/.test(n.querySelector('.sub').textContent); })
            .map((n) => n.querySelector('.sub').textContent)""")
        self.assertEqual(cut, [], "what stands last in a box, its time or bytes, is whole and inside")
        # Every colour mode has a legend and draws.
        for mode in ("devices", "precision", "fusion", "cost", "work", "stage"):
            self.browser.run("const s = document.querySelector('#view-graph select'); s.value = arguments[0]; s.dispatchEvent(new Event('change'))", mode)
            self.assertGreater(len(self.browser.all("#view-graph .legend i")), 0, mode)
        self.check_stage_colours(plan, ops)
        self.check_moving()
        # An op by search, with what plan.json says of it.
        op = next(number for number in ops if plan["ops"][number]["name"] == some_op)
        self.browser.find(some_op)
        self.browser.press("#search", ENTER)
        side = self.browser.text("#side")
        task = plan["ops"][op]
        self.assertEqual(self.browser.text("#side h3"), some_op)
        self.assertIn(task["kernel"], side)
        self.assertIn(flop_text(task["flops"]), side)
        self.assertRegex(side, r"predicted[\d.]+ (µs|ms) a call")
        for value in jobs.values_of(task):
            self.assertIn(" × ".join(map(str, plan["values"][value]["shape"])), side)
        self.assertEqual(len(self.browser.all("#view-graph .node.selected")), 1)
        self.check_shards(plan, task)

    def check_moving(self):
        where = lambda: self.browser.run("return document.querySelector('#view-graph .graph svg > g').getAttribute('transform')")
        before = where()
        self.browser.press("#view-graph .graph", "+")
        zoomed = where()
        self.assertNotEqual(before, zoomed)
        self.browser.press("#view-graph .graph", "\ue014")  # arrow right
        self.assertNotEqual(zoomed, where())
        moved = where()
        self.browser.drag("#view-graph .graph", 40, 30)
        self.assertNotEqual(moved, where())
        self.browser.press("#view-graph .graph", "0")

    def check_shards(self, plan, task):
        """The drawing of the first tensor: as many cells as parts, each rank of the stage as often as it holds one."""
        if plan["mesh"]["data"] * plan["mesh"]["tensor"] == 1:
            return
        value = plan["values"][jobs.values_of(task)[0]]
        parts = 1
        for axis in value["sharding"]:
            parts *= plan["mesh"][axis] if axis else 1
        cells = self.browser.run("return [...document.querySelector('#side .shards').querySelectorAll('text')].map((t) => t.textContent)")
        self.assertEqual(len(cells), parts)
        per_stage = plan["mesh"]["data"] * plan["mesh"]["tensor"]
        named = sorted(int(rank) for cell in cells for rank in re.findall(r"\d+", cell))
        self.assertEqual(named, list(range(value["stage"] * per_stage, (value["stage"] + 1) * per_stage)))

    def check_timeline(self, plan):
        self.browser.press("body", ESCAPE)
        self.browser.show("timeline")
        view = self.browser.data("view-data")["programs"][0]["predicted"]
        self.assertAlmostEqual(view["total_us"], plan["predicted"]["step_us"], delta=1e-3)
        actions = sum(len(stage) for stage in plan["schedule"]["train"])
        self.assertEqual(len(view["bars"]), actions, "every pass of every micro-batch has its bar")
        last = max(start + length for start, length in zip(view["starts"], view["lengths"]))
        self.assertAlmostEqual(last, plan["predicted"]["step_us"], delta=0.01)
        self.assertRegex(self.browser.text("#view-timeline .words"), r"critical path .* runs through \d+ ops")
        # A click on the longest op of the first row chooses it; from there to the graph and back.
        first = [i for i, row in enumerate(view["row"]) if row == 0 and view["lane"][i] == 0]
        longest = max(first, key=lambda i: view["lengths"][i])
        middle = (view["starts"][longest] + view["lengths"][longest] / 2) / view["total_us"]
        canvas = self.browser.one("#view-timeline canvas").rect
        measured = self.browser.run("return [...document.querySelectorAll('#view-timeline .tools label')].some((l) => l.textContent.includes('own width'))")
        if measured and not self.browser.run("return document.querySelectorAll('#view-timeline .tools input')[1].checked"):
            self.browser.run("document.querySelectorAll('#view-timeline .tools input')[1].click()")
        at = 74 + middle * (canvas["width"] - 80)
        # An op that is narrow from afar is brought nearer, around the pointer.
        width = view["lengths"][longest] / view["total_us"] * (canvas["width"] - 80)
        for _ in range(0 if width > 20 else math.ceil(math.log(20 / width) / 0.36)):
            self.browser.run("const c = document.querySelector('#view-timeline canvas'), r = c.getBoundingClientRect(); c.dispatchEvent(new WheelEvent('wheel',"
                             " { deltaY: -120, ctrlKey: true, clientX: r.left + arguments[0], clientY: r.top + 32, cancelable: true }))", at)
        self.browser.run("return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")
        self.browser.click_at("#view-timeline canvas", at, 26 + 6)
        self.assertEqual(self.browser.text("#side h3"), plan["ops"][view["tasks"][longest]]["name"])
        self.browser.run("[...document.querySelectorAll('#side button')].find((b) => b.textContent === 'in the graph').click()")
        self.assertEqual(self.browser.run("return [...document.querySelectorAll('#tab-graph')].map((t) => t.getAttribute('aria-pressed'))[0]"), "true")
        self.assertEqual(len(self.browser.all("#view-graph .node.selected")), 1)
        self.browser.run("[...document.querySelectorAll('#side button')].find((b) => b.textContent === 'in the timeline').click()")
        self.assertTrue(self.browser.one("#view-timeline canvas").is_displayed())
        self.browser.press("body", ESCAPE)
        self.assertFalse(self.browser.one("#side").is_displayed())

    def check_memory(self, plan):
        self.browser.show("memory")
        for stage, memory in enumerate(plan["memory"]):
            self.assertIn("arena " + bytes_text(memory["arena_bytes"]), self.browser.texts(".curve")[stage])
            self.assertIn(bytes_text(memory["persistent_bytes"]) + " kept", self.browser.texts(".curve-head")[stage])
        curves = self.browser.data("view-data")["programs"][0]["memory"]
        for stage, curve in enumerate(curves):
            kept = sum(v["bytes"] for v in plan["values"] if v["stage"] == stage and v["kind"] in ("parameter", "state"))
            self.assertEqual(curve["peak"][1] + curve["peak"][2], kept)
            self.assertLessEqual(sum(curve["peak"][1:]), plan["memory"][stage]["arena_bytes"])
            if curve["num_alive"] == len(curve["alive"]):
                self.assertEqual(sum(tensor[2] for tensor in curve["alive"]), sum(curve["peak"][1:]))
        names = {value["name"] for value in plan["values"]}
        self.assertTrue(all(row[0] in names for row in self.browser.rows("#view-memory .panel:last-of-type")))

    def check_communication(self, plan):
        self.browser.show("communication")
        expected = jobs.traffic(plan, "train")
        shown = self.browser.run("return [...document.querySelectorAll('.cell')].map((c) => [+c.dataset.from, +c.dataset.to, +c.dataset.value])")
        self.assertEqual({(a, b): value for a, b, value in shown if value}, {pair: round(value) for pair, value in expected.items()})
        moving = [op for op in jobs.drawn_ops(plan, "train") if plan["ops"][op]["kind"] in ("send", "all_reduce", "all_gather", "reduce_scatter")]
        self.assertEqual(len(self.browser.rows("#view-communication > .panel")), len(moving))

    def check_passes(self, job):
        self.browser.show("passes")
        phases = jobs.entry(job, "phases.json")["phases"]
        self.assertEqual(self.browser.texts(".phase-name"), [phase["pass"] or "the model" for phase in phases])
        self.assertEqual(self.browser.texts(".phase-count"), [f"{len(phase['ops'])} ops" for phase in phases])
        changes = [f"+{sum(phase['added'].values())} −{sum(phase['removed'].values())}" for phase in phases]
        self.assertEqual(self.browser.texts(".phase-change")[1:], changes[1:])
        self.browser.all(".phase")[-1].click()
        self.assertGreater(len(self.browser.all("#view-passes .graph .node")), 3)
        kinds = {row[0]: int(row[1]) for row in self.browser.rows("#view-passes .pair .panel")}
        self.assertEqual(sum(kinds.values()), len(phases[-1]["ops"]))

    def check_all(self, job, some_op, measured_us=None):
        plan = jobs.plan_of(job)
        self.check_summary(plan, measured_us)
        self.check_graph(plan, some_op)
        self.check_timeline(plan)
        self.check_memory(plan)
        self.check_communication(plan)
        self.browser.show("alternatives")
        self.assertIn("given by hand", self.browser.text("#view-alternatives"))
        self.browser.show("difference")
        self.assertIn("nothing to compare", self.browser.text("#view-difference"))
        self.assertEqual(self.browser.data("plan-data"), plan)
