"""Compares what the fixture turns.c says of its coroutines with a trace of it."""

import json


def check(test, directory, report, records):
    """The order of the coroutines is the program's own, and so are their shares of the time;
    each has a stack of its own, on which no exit lacks its entry. `report` and `records`:
    the view tree, and the records of type COROUTINE."""
    account = json.loads((directory / "turns.json").read_text())
    test.assertGreater(len(account["order"]), 40)
    test.assertEqual([record["coroutine"] for record in records], account["order"])
    test.assertEqual(report["summary"]["orphans"], 0)
    test.assertEqual(report["summary"]["resyncs"], 0)
    (thread,) = report["threads"]
    cum_ns = {node["name"]: node["cum_ns"] for node in thread["root"]["children"]}
    some_ns = sum(least for least, _ in account["ran_ns"]) / 10
    for number, (least, most) in enumerate(account["ran_ns"][1:], 1):
        if most == 0:
            continue
        test.assertLess(least - some_ns, cum_ns[f"coroutine {number}"], cum_ns)
        test.assertLess(cum_ns[f"coroutine {number}"], most + some_ns, cum_ns)
    # The stack of the last coroutine is gone, and main's frames are where it was.
    last = f"coroutine {len(account['ran_ns']) - 1}"
    for node in thread["root"]["children"]:
        if node["name"] == last:
            test.assertNotIn("fill", json.dumps(node))
    return thread["root"]["children"]
