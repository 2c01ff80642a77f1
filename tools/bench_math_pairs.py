#!/usr/bin/env python3
"""Pairs of answers for bench_math and bench_math_verify.py: bench_math_pairs.py CASES DATA > pairs.jsonl

CASES, DATA: the roots of the labelled cases and of the benchmark data. The labelled pairs of math_equiv, then 300 pairs
like those of a run over MATH-500: the gold answer in a box against the whole solution, an output with a closing line, or
another row's boxed answer.
"""
import json
import sys


def rows(path):
    with open(path, encoding='utf-8') as file:
        return [json.loads(line) for line in file]


def main():
    cases, data = sys.argv[1:3]
    pairs = [(row['gold'], row['pred']) for row in rows(f'{cases}/math_equiv/cases.jsonl')]
    problems = rows(f'{data}/math500/test.jsonl')
    for i, problem in enumerate(problems[:300]):
        boxed = f"$\\boxed{{{problem['answer']}}}$"
        other = problems[(i + 7) % len(problems)]['answer']
        closing = f"So we are done.\nFinal Answer: The final answer is ${problem['answer']}$. I hope it is correct."
        pairs.append((boxed, [problem['solution'], closing, f'$\\boxed{{{other}}}$'][i % 3]))
    for gold, answer in pairs:
        print(json.dumps({'gold': gold, 'answer': answer}))


if __name__ == '__main__':
    main()
