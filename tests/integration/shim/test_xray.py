"""Programs whose own XRay runtime patches their sleds."""

import os

import cases
from harness import ANY_COMPILER, ShimTest, plain_name, unittest


def own_calls(traced):
    """{function: calls} of those of the program."""
    return {plain_name(function["name"]): function["calls"]
            for function in traced.report("flat")["functions"]
            if not function["name"].startswith("[")}  # a part of the process' life


class Patched(ShimTest):
    def test_before_main(self):
        """Sleds that XRay has patched are left to it."""
        environment = dict(os.environ, XRAY_OPTIONS="patch_premain=true")
        traced = self.compare(ANY_COMPILER, "./exceptions", env=environment)
        self.assertEqual(traced.status, 5)
        self.assertEqual(own_calls(traced), {})
        traced = self.compare(ANY_COMPILER, "./exceptions",
                              env=dict(os.environ, XRAY_OPTIONS="patch_premain=false"))
        self.assert_counts(traced)

    def test_while_it_runs(self):
        """XRay writes over our jumps: from then on it sees the calls, and we do not."""
        traced = self.compare(ANY_COMPILER, "./patches")
        self.assertEqual(traced.status, 4)
        self.assertIn("patched: 20 calls seen\n", traced.stdout)
        calls = own_calls(traced)
        self.assertEqual((calls["main"], calls["round_of_calls"], calls["work"]), (1, 1, 10))


if __name__ == "__main__":
    cases.main()
