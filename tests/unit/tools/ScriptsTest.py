# SPDX-License-Identifier: Apache-2.0
# Proves what quickstart.sh, check.sh and install.sh decide, with commands in place of cmake, ctest and dpkg that only note their
# arguments: which build they configure, which parts a tier has, what the summary says of a part that failed or could not run, and that an
# interrupt leaves nothing behind.
# tests/install runs the real ones on empty machines.
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

TOOLS = sys.argv.pop(1)
SCRIPTS = ("quickstart.sh", "check.sh", "install.sh", "packages", "ctest_counts.py")
NOTE = '#!/bin/bash\necho "${0##*/} $*" >>"$CALLS"\n'
CTEST = NOTE + ('while [[ $1 != --output-junit ]]; do shift; done\n'
                'echo \'<testsuite><testcase name="a" status="run"/></testsuite>\' >"$2"\n')
CMAKE = NOTE + ('if [[ $1 == --preset ]]; then mkdir -p "build/$2" && touch "build/$2/build.ninja"; fi\n'
                '[[ -z ${FAIL:-} || "$*" != *"$FAIL"* ]]\n')
# Says of every package that it is installed.
DPKG_QUERY = '#!/bin/bash\nshift 3\nfor name; do echo "ii  $name"; done\n'


class ScriptsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="dg-scripts-")
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        for name in SCRIPTS:
            os.makedirs(self.path("tools"), exist_ok=True)
            shutil.copy(os.path.join(TOOLS, name), self.path("tools", name))
        for name, text in {"bin/cmake": CMAKE, "bin/ctest": CTEST, "bin/dpkg-query": DPKG_QUERY, "bin/apt-get": NOTE, "bin/git": NOTE,
                           "bin/run-clang-tidy-19": NOTE, "bin/clang-format-19": NOTE, "bin/shellcheck": NOTE,
                           "tools/check-layers": NOTE, "tools/check-passes": NOTE, "tools/check-tests": NOTE, "tools/tsan-tbb.sh": NOTE + "echo /tbb\n",
                           "tests/fuzz/run.sh": NOTE, "tests/multirank/soak.py": "import sys\nprint('soak', *sys.argv[1:])\n", "tests/install/run.sh": NOTE + "echo 'cold quickstart: 7 s'\n"}.items():
            self.write(name, text)

    def path(self, *names):
        return os.path.join(self.root, *names)

    def write(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w", encoding="utf-8") as out:
            out.write(text)
        os.chmod(self.path(name), 0o755)

    def environment(self, **more):
        return dict(os.environ, PATH=self.path("bin") + ":/usr/bin:/bin", CALLS=self.path("calls"), **more)

    def run_script(self, name, *arguments, code=0, **environment):
        """What the script printed, and the calls of the commands that only note them."""
        calls = self.path("calls")
        open(calls, "w", encoding="utf-8").close()
        done = subprocess.run([self.path("tools", name), *arguments], env=self.environment(**environment), capture_output=True,
                              text=True, timeout=50)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        with open(calls, encoding="utf-8") as noted:
            return done.stdout + done.stderr, noted.read().splitlines()

    def testQuickstartNeverConfiguresTests(self):
        _, calls = self.run_script("quickstart.sh", "--configure-only")
        self.assertEqual(calls, ["cmake --preset release -DDG_BUILD_TESTS=OFF"])

    def testQuickstartTakesAConfiguredFolderAsItIs(self):
        self.run_script("check.sh", "--fast")
        _, calls = self.run_script("quickstart.sh", "--configure-only")
        self.assertEqual(calls, [])

    def testCheckSwitchesTestsOnAfterQuickstart(self):
        self.run_script("quickstart.sh", "--configure-only")
        output, calls = self.run_script("check.sh", "--fast")
        self.assertEqual(calls[0], "cmake --preset release -DDG_BUILD_TESTS=ON")
        self.assertEqual([call.split()[0] for call in calls], ["cmake", "cmake", "ctest"])
        self.assertIn("-LE slow", calls[2])
        self.assertTrue(output.endswith("2 passed, 0 failed, 0 skipped\n"), output)

    def testAFailedBuildSkipsItsTests(self):
        output, calls = self.run_script("check.sh", "--fast", code=1, FAIL="--build --preset release")
        self.assertNotIn("ctest", " ".join(calls))
        self.assertIn("FAILED  build release", output)
        self.assertIn("skipped: tests release: the build failed\n", output)
        self.assertTrue(output.endswith("0 passed, 1 failed, 1 skipped\n"), output)

    def testAnInterruptEndsThePartAndWaitsForItsCleaningUp(self):
        self.write("bin/ctest", "#!/bin/bash\ntrap 'echo cleaned >>\"$CALLS\"; exit 1' TERM\necho started\nsleep 1000 &\nwait\n")
        with subprocess.Popen([self.path("tools", "check.sh"), "--fast"], env=self.environment(), stdout=subprocess.PIPE, text=True) as check:
            for line in check.stdout:
                if line == "started\n":
                    break
            check.send_signal(signal.SIGINT)
            # Whoever holds the pipe is one of its processes: the end of the output is the end of all.
            check.stdout.read()
            self.assertEqual(check.wait(50), 130)
        with open(self.path("calls"), encoding="utf-8") as calls:
            self.assertIn("cleaned\n", calls.read())

    def testTheDefaultNeedsNoEmptyMachine(self):
        output, calls = self.run_script("check.sh")
        self.assertFalse([call for call in calls if call.startswith("run.sh")], calls)
        self.assertIn("cmake --preset tsan -DDG_BUILD_TESTS=ON -DCMAKE_PREFIX_PATH=/tbb", calls)
        self.assertNotIn("clean roots", output)

    def testFullRunsEmptyMachinesAndTellsTheColdTime(self):
        output, calls = self.run_script("check.sh", "--full")
        self.assertEqual([call for call in calls if call.startswith("run.sh")],
                         ["run.sh --runs 20000 --seconds 20", "run.sh --probe", "run.sh quickstart check matrix"])
        self.assertIn("cold quickstart: 7 s", output.split("== summary")[1])
        self.assertIn(" 0 failed, 0 skipped", output)

    def testFullTellsThatNoEmptyMachineCouldBeMade(self):
        self.write("tests/install/run.sh", NOTE + 'echo "needs root"\nexit 77\n')
        output, _ = self.run_script("check.sh", "--full")
        self.assertIn("skipped: clean roots: quickstart check matrix: needs root\n", output)
        self.assertIn(" 0 failed, 1 skipped", output)

    def testLongEndsWithItsRowForTheReadme(self):
        output, calls = self.run_script("check.sh", "--long")
        self.assertIn("run.sh --runs 1000000", calls)
        self.assertIn("run.sh quickstart check matrix", calls)
        self.assertTrue([call for call in calls if "many_kills_test$ --repeat until-fail:10" in call], calls)
        self.assertIn("soak --minutes 60 --mesh data=2,pipe=2\n", output)
        self.assertRegex(output.splitlines()[-1], r"^\| \d{4}-\d\d-\d\d \| .* \| \d+ passed, 0 failed, 0 skipped \|$")

    def testHelpAndUnknownArguments(self):
        for tier in ("--fast", "--full", "--long"):
            self.assertIn(tier, self.run_script("check.sh", "--help")[0])
        self.assertIn("'--fulll'", self.run_script("check.sh", "--fulll", code=2)[0])
        self.assertIn("--configure-only", self.run_script("quickstart.sh", "--help")[0])
        self.assertIn("'--epoch'", self.run_script("quickstart.sh", "--epoch", code=2)[0])
        self.assertIn("'tests'", self.run_script("install.sh", "tests", code=2)[0])

    def testListInstallsNothing(self):
        output, calls = self.run_script("install.sh", "--list", "full")
        self.assertEqual((output, calls), ("debootstrap\n", []))


if __name__ == "__main__":
    unittest.main()
