#!/usr/bin/env python3
"""Generation side by side: `iha-eval generate` and a rival on the same token ids, in turns.

usage: engine_peer.py --program build/release/bin/iha-eval --model DIR [--gguf FILE] [--data DIR] [--threads N] [--repetitions N] [JOB...]

Jobs: gsm8k (32 problems, 5-shot, 127 tokens each), samples (16 samples of one 5-shot prompt, 128 tokens), decode1 (one
sequence, 128 tokens), decode32 (32 sequences, 128 tokens), prefill (16 prompts that share nothing, 1 token each).
Neither side stops before its last token, so both do the same work; models are loaded before the clock starts. The rival
is Hugging Face transformers in float32, or with --gguf llama.cpp on that file (`gguf_16bit.py` writes one with 16-bit
weights); the fastest of its settings counts (engine_rivals.py). Prints one row of docs/performance.md a job: medians of
wall seconds, and CPU seconds in parentheses. Needs a Python with torch and transformers, or with llama-cpp-python.
"""
import argparse
import json
import os
import pathlib
import re
import resource
import statistics
import subprocess
import sys

from engine_rivals import LlamaCpp, Transformers

SHOTS = 5
JOBS = {"gsm8k": (127, 32), "samples": (128, 16), "decode1": (128, 1), "decode32": (128, 32), "prefill": (1, 16)}
# name: (new tokens, sequences in a step)


def problems(folder, name):
    with open(folder / "gsm8k" / name, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def prompts(job, data):
    """The texts of a job; [prompt] * n is n samples of it."""
    train, test = problems(data, "train.jsonl"), problems(data, "test.jsonl")
    solved = lambda row: f"Question: {row['question']}\nAnswer: {row['answer']}\n\n"
    asked = lambda row: f"Question: {row['question']}\nAnswer:"
    shots = "".join(map(solved, train[:SHOTS]))
    if job == "gsm8k":
        return [shots + asked(row) for row in test[:32]]
    if job == "samples":
        return [shots + asked(test[0])] * 16
    if job == "decode1":
        return [asked(test[0])]
    if job == "decode32":
        return [asked(row) for row in test[:32]]
    return ["".join(map(solved, train[SHOTS * i:SHOTS * (i + 1)])) + asked(test[i]) for i in range(16)]


class Ours:
    def __init__(self, args):
        self.args = args

    def encode(self, texts):
        done = subprocess.run([self.args.program, "tokenize", "--model", self.args.model, "--add-special"], check=True,
                              input="".join(json.dumps({"text": text}) + "\n" for text in texts).encode(), capture_output=True)
        return [json.loads(line)["ids"] for line in done.stdout.splitlines()]

    def run(self, job, ids):
        """Seconds after the load, as the program counts them; CPU seconds of the whole process less those of a load."""
        tokens, batch = JOBS[job]
        if job == "samples":
            rows, flags = ids[:1], ["--n", str(len(ids)), "--temperature", "0.6"]
        else:
            rows, flags = ids, []
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([self.args.program, "generate", "--model", self.args.model, "--max-new-tokens", str(tokens),
                               "--ignore-eos", "--stats", "--threads", str(self.args.threads), "--max-batch", str(batch), *flags],
                              check=True, input="".join(json.dumps({"ids": row}) + "\n" for row in rows).encode(), capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return float(re.search(r"generated in ([0-9.]+) s", done.stderr.decode()).group(1)), cpu


def median(pairs):
    return tuple(statistics.median(values) for values in zip(*pairs))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--gguf", help="the same model for llama.cpp")
    parser.add_argument("--data", type=pathlib.Path, default=os.environ.get("IHA_EVAL_DATA", "../shared/data"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("jobs", nargs="*", metavar="JOB")
    args = parser.parse_args()
    args.data = pathlib.Path(args.data)
    ours = Ours(args)
    peer = LlamaCpp(args.gguf, args.threads) if args.gguf else Transformers(args.model, args.threads)
    for job in args.jobs or JOBS:
        if job not in JOBS:
            parser.error(f"job {job}: expected one of {', '.join(JOBS)}")
        ids = ours.encode(prompts(job, args.data))
        mine, theirs = [], {way: [] for way in peer.ways(job)}
        for _ in range(args.repetitions):
            mine.append(ours.run(job, ids))
            for way, times in theirs.items():
                times.append(peer.run(job, ids, JOBS[job][0], way))
        best = min(theirs, key=lambda way: median(theirs[way]))
        (wall, cpu), (peer_wall, peer_cpu) = median(mine), median(theirs[best])
        print(f"| {job}: {len(ids)} sequences, {sum(map(len, ids))} prompt tokens, {JOBS[job][0]} new each | {wall:.2f} s ({cpu:.2f} s) "
              f"| {peer_wall:.2f} s ({peer_cpu:.2f} s), {best}, {peer.name}; ours {peer_wall / wall:.2f}x as fast "
              f"| E | {args.threads} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
