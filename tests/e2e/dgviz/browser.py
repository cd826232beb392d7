# SPDX-License-Identifier: Apache-2.0
"""Headless Chromium for the tests of this folder: opens a page from a file, and knows what it printed and asked for."""
import base64
import json
import os
import shutil
import sys
import tempfile

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

VIEWS = ["summary", "graph", "timeline", "memory", "communication", "alternatives", "difference", "passes"]


class Browser:
    """One Chromium for many pages. quit() ends it and its driver."""

    def __init__(self, width=1280, height=900):
        programs = {name: shutil.which(name) for name in ("chromium", "chromedriver")}
        missing = [name for name, path in programs.items() if not path]
        if missing:
            sys.exit(f"{', '.join(missing)}: not found; tools/install.sh test installs them")
        options = Options()
        options.binary_location = programs["chromium"]
        # Root has no sandbox of its own; a page from a file needs none of the network.
        for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage",
                     "--no-first-run", "--disable-background-networking", "--disable-component-update"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        # Chromium leaves folders behind where it keeps temporary files: they go with this one.
        self.scratch = tempfile.TemporaryDirectory(prefix="dg-chromium-", ignore_cleanup_errors=True)
        service = Service(programs["chromedriver"], env={**os.environ, "TMPDIR": self.scratch.name})
        self.driver = webdriver.Chrome(options=options, service=service)
        self.driver.set_page_load_timeout(60)
        self.resize(width, height)

    def quit(self):
        self.driver.quit()
        self.scratch.cleanup()

    def resize(self, width, height):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})

    def open(self, path, fragment=""):
        self.logs()
        self.driver.get("about:blank")
        self.driver.get(f"file://{path}{fragment}")
        self.page = f"file://{path}"
        assert self.run("return document.body.dataset.ready") == "true", "the page's script did not reach its end"

    def logs(self):
        """What the console said, and every address that was asked for, since the last call."""
        console = [entry["message"] for entry in self.driver.get_log("browser")]
        requests = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                requests.append(message["params"]["request"]["url"].split("#")[0])
        return console, [url for url in requests if url not in (getattr(self, "page", ""), "about:blank")]

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def text(self, selector):
        """What is shown, also where it is scrolled away."""
        return self.run("return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent).join('\\n')", selector)

    def texts(self, selector):
        return self.run("return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)", selector)

    def show(self, view):
        self.one(f"#tab-{view}").click()
        shown = self.run("return [...document.querySelectorAll('.view')].filter((v) => v.offsetParent).map((v) => v.id)")
        assert shown == [f"view-{view}"], shown

    def rows(self, selector):
        """The cells of a table's body."""
        return self.run("return [...document.querySelectorAll(arguments[0] + ' tbody tr')].map((r) => [...r.cells].map((c) => c.textContent))", selector)

    def find(self, words):
        box = self.one("#search")
        box.clear()
        box.send_keys(words)

    def press(self, selector, *keys):
        self.run("document.querySelector(arguments[0]).focus()", selector)
        ActionChains(self.driver).send_keys(*keys).perform()

    def type(self, *keys):
        """Presses keys wherever the focus is."""
        ActionChains(self.driver).send_keys(*keys).perform()

    def drag(self, selector, dx, dy):
        ActionChains(self.driver).drag_and_drop_by_offset(self.one(selector), dx, dy).perform()

    def click_at(self, selector, x, y):
        """Clicks a point, given from the element's upper left corner."""
        element = self.one(selector)
        self.run("arguments[0].scrollIntoView({ block: 'center' })", element)
        box = element.rect
        ActionChains(self.driver).move_to_element_with_offset(element, round(x - box["width"] / 2), round(y - box["height"] / 2)).click().perform()

    def data(self, name):
        return json.loads(self.run("return document.getElementById(arguments[0]).textContent", name))

    def pdf(self):
        return base64.b64decode(self.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"])


ENTER, ESCAPE = Keys.ENTER, Keys.ESCAPE
