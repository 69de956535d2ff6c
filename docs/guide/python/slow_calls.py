"""The longest calls of a function, with arguments and callers: slow_calls.py FILE NAME"""
import heapq
import sys

import arctrace

trace = arctrace.open(sys.argv[1])
with trace.calls() as calls:
    wanted = (call for call in calls if call.name == sys.argv[2] and not call.flags & arctrace.NOT_ENDED)
    for call in heapq.nlargest(5, wanted, key=lambda call: call.duration_ns):
        result = f" = {call.retval}" if call.retval else ""
        print(f"{call.duration_ns:12} ns at {call.start_ns} ns  {call.name}{call.args}{result}")
        print("             in", " > ".join(calls.stack(call.path)))
