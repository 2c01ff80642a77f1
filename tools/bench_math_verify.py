#!/usr/bin/env python3
"""Pairs per second of Math-Verify on one core: bench_math_verify.py FILE.

FILE has a JSON object a line with "gold" and "answer"; one fresh process, every pair once (Math-Verify caches what it
has parsed). Needs math-verify==0.9.0 with its antlr4 runtime in the Python that runs it. The rival of bench_math.
"""
import json
import sys
import time

from math_verify import parse, verify


def main():
    with open(sys.argv[1], encoding='utf-8') as file:
        pairs = [json.loads(line) for line in file]
    begin, cpu_begin = time.monotonic(), time.process_time()
    equal = 0
    for pair in pairs:
        equal += bool(verify(parse(pair['gold']), parse(pair['answer'])))
    seconds, cpu = time.monotonic() - begin, time.process_time() - cpu_begin
    print(f'Math-Verify: {len(pairs)} pairs, {equal} equal, {len(pairs) / seconds:.0f} pairs/s, '
          f'{len(pairs) / cpu:.0f} pairs/s of CPU time')


if __name__ == '__main__':
    main()
