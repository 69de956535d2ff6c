"""Cases that fail, so that each run shows that failures are seen."""

import os
import unittest

import cases


class Canary(unittest.TestCase):
    def test_fails_always(self):
        self.fail("as it has to")

    def test_fails_once(self):
        self.assertNotEqual("1", os.environ.get("ARCTRACE_RUN"), "as it has to, in the first run")

    def test_passes(self):
        pass


if __name__ == "__main__":
    cases.main()
