"""The functions of a trace, as a table: functions.py FILE"""
import sys

import arctrace

trace = arctrace.open(sys.argv[1])
(everything,) = trace.profile()
print(f"{'calls':>10} {'self ms':>12} {'p50 ns':>10} {'p99 ns':>10}  name")
for row in sorted(everything.functions, key=lambda row: -row.self_ns)[:10]:
    print(f"{row.calls:10} {row.self_ns / 1e6:12.3f} {row.p50_ns or '-':>10} {row.p99_ns or '-':>10}  {row.name}")
print(trace.facts["records"], "records,", trace.facts["lost"], "lost")
