# SPDX-License-Identifier: Apache-2.0
"""Proves of two hundred kills in one training what restart_test.py proves of ten."""
import restart_test
import runs


class StormTest(restart_test.RandomKillsTest):
    number = 200


if __name__ == "__main__":
    runs.isolated(restart_test.SHARED_MEMORY)
    runs.main()
