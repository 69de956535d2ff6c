"""Programs whose own XRay runtime patches their sleds."""

import os

import cases
from hooked import ANY_COMPILER, ShimTest


class Patched(ShimTest):
    def test_before_main(self):
        """Sleds that XRay has patched are not touched."""
        environment = dict(os.environ, XRAY_OPTIONS="patch_premain=true")
        traced = self.compare("./exceptions", compiler=ANY_COMPILER, env=environment)
        self.assertEqual(traced.status, 5)
        self.assertEqual(traced.plain_calls(), {})
        traced = self.compare("./exceptions", compiler=ANY_COMPILER,
                              env=dict(os.environ, XRAY_OPTIONS="patch_premain=false"))
        self.assert_counts(traced)

    def test_while_it_runs(self):
        """XRay writes over our jumps: from then on it sees the calls, and we do not."""
        over = "calls of 3 functions are missing since a uprobe, or code of the program such as XRay's, has written over"
        traced = self.compare("./patches", compiler=ANY_COMPILER, may_say=[over])
        self.assertIn(over, traced.stderr)
        self.assertEqual(traced.status, 4)
        self.assertIn("patched: 20 calls seen\n", traced.stdout)
        calls = traced.plain_calls()
        self.assertEqual((calls["main"], calls["round_of_calls"], calls["work"]), (1, 1, 10))


if __name__ == "__main__":
    cases.main()
