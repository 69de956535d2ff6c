"""Self time by function and thread, with numpy, of millions of calls in bounded memory: columns.py FILE"""
import collections
import sys

import arctrace
import numpy

trace = arctrace.open(sys.argv[1])
sums = collections.Counter()
with trace.calls(values=False) as calls:
    for batch in calls.batches():
        keys = batch.function.astype(numpy.uint64) << numpy.uint64(32) | batch.thread
        found, index = numpy.unique(keys, return_inverse=True)
        times = numpy.zeros(found.size, numpy.uint64)
        numpy.add.at(times, index, batch.self_ns)
        for key, self_ns in zip(found.tolist(), times.tolist()):
            sums[key] += self_ns
    for key, self_ns in sums.most_common(10):
        thread = trace.threads[key & 0xFFFFFFFF]
        print(f"{self_ns:15} ns  {thread.name}/{thread.tid}  {calls.name(key >> 32)}")
