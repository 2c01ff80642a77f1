#!/usr/bin/env python3
"""Item rates for `./dev calibrate`: item_rates.py LABELLED.jsonl.gz > rates.txt

Share of right answers for each problem with at least 3 labelled outputs, one number a line, sorted.
"""
import collections
import gzip
import json
import sys

right = collections.defaultdict(list)
with gzip.open(sys.argv[1], "rt", encoding="utf-8") as lines:
    for line in lines:
        row = json.loads(line)
        right[row["problem"]].append(bool(row["label"]))
for rate in sorted(sum(labels) / len(labels) for labels in right.values() if len(labels) >= 3):
    print(f"{rate:.6f}")
