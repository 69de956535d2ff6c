"""Each call of a trace, in the order of their ends: calls.py FILE"""
import sys

import arctrace

with arctrace.open(sys.argv[1]).calls() as calls:
    for call in calls:
        print(call.name, call.duration_ns, "ns")
