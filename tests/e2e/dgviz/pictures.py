# SPDX-License-Identifier: Apache-2.0
"""Takes the pictures of docs/guide/plan-page.md anew. Run by hand, with DG_BIN set; the machine should have nothing else to do.

usage: pictures.py FOLDER      (docs/guide/pictures)
"""
import os
import sys
import tempfile

import jobs
from browser import Browser


def take(browser, folder, name):
    browser.run("return document.activeElement && document.activeElement.blur()")
    browser.driver.save_screenshot(os.path.join(folder, name + ".png"))


def open_group(browser, title):
    browser.run("""const node = [...document.querySelectorAll('#view-graph .node.group')].find((n) => n.querySelector('text').textContent === arguments[0]);
                   node.querySelector('.sign').dispatchEvent(new MouseEvent('click', { bubbles: true }))""", title)


def main():
    folder = sys.argv[1]
    with tempfile.TemporaryDirectory(prefix="dg-pictures-") as work:
        job, trace = jobs.gpt_with_trace(work)
        gpt = jobs.page(work, job, trace)
        lenet_job, lenet_trace = jobs.lenet(work, "lenet.dgx", "--mesh", "pipe=2", "--microbatches", "4", "--save-phases"), os.path.join(work, "lenet.json")
        jobs.run("dgrun", lenet_job, "--data", "x=randn:512x1x28x28", "--data", "y=randint:10:512", "--steps", "8", "--threads", "1", "--trace", lenet_trace)
        lenet = jobs.page(work, lenet_job, lenet_trace)
        resnet = os.path.join(work, "resnet.dgx")
        jobs.run("dgc", "resnet:50", "--batch", "4", "--mesh", "data=2", "-o", resnet)
        browser = Browser(1280, 860)
        try:
            browser.open(lenet)
            take(browser, folder, "summary")
            browser.show("timeline")
            take(browser, folder, "timeline")
            browser.open(gpt)
            browser.show("graph")
            open_group(browser, "b0")
            browser.find("b0_up/matmul")
            browser.run("document.querySelector('#side .link').click()")
            take(browser, folder, "graph")
            browser.one("#theme").click()
            browser.show("communication")
            browser.run("document.querySelector('#side .close').click()")
            take(browser, folder, "communication")
            browser.one("#theme").click()
            browser.show("memory")
            take(browser, folder, "memory")
            browser.show("passes")
            take(browser, folder, "passes")
            browser.open(jobs.page(work, resnet))
            browser.show("graph")
            take(browser, folder, "resnet")
        finally:
            browser.quit()


if __name__ == "__main__":
    main()
