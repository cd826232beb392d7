# SPDX-License-Identifier: Apache-2.0
"""Proves of a hundred random moments what failure_test.py proves of five."""
import failure_test
import runs


class ManyKillsTest(failure_test.FailureTest):
    attempts = 100


if __name__ == "__main__":
    runs.isolated(failure_test.SHARED_MEMORY)
    runs.main()
