"""What the fixture turns.c says of its coroutines, against a trace of it."""

import json


def check(test, directory, report, records):
    """The order of the coroutines is the program's own, and so are their shares of the time;
    each has a stack of its own, on which no exit lacks its entry. `report` and `records`: the
    view tree, and the records of type COROUTINE."""
    account = json.loads((directory / "turns.json").read_text())
    test.assertGreater(len(account["order"]), 40)
    test.assertEqual([record["coroutine"] for record in records], account["order"])
    test.assertEqual(report["summary"]["orphans"], 0)
    test.assertEqual(report["summary"]["resyncs"], 0)
    (thread,) = report["threads"]
    cum_ns = {node["name"]: node["cum_ns"] for node in thread["root"]["children"]}
    total = sum(account["ran_ns"])
    for number, ran_ns in enumerate(account["ran_ns"][1:], 1):
        if ran_ns == 0:
            continue
        # The machine may be busy with something else between two readings of the clock.
        test.assertLess(abs(cum_ns[f"coroutine {number}"] - ran_ns), total / 10, cum_ns)
    # The stack of the last one is gone, and main's frames are where it was.
    last = f"coroutine {len(account['ran_ns']) - 1}"
    for node in thread["root"]["children"]:
        if node["name"] == last:
            test.assertNotIn("fill", json.dumps(node))
    return thread["root"]["children"]
