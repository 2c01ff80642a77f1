#!/usr/bin/env python3
"""Generation side by side: `iha-eval generate` and Hugging Face transformers on the same token ids, in turns.

usage: engine_peer.py --program build/release/bin/iha-eval --model DIR [--data DIR] [--threads N] [--repetitions N] [JOB...]

Jobs: gsm8k (32 problems, 5-shot, 127 tokens each), samples (16 samples of one 5-shot prompt, 128 tokens), decode1 (one
sequence, 128 tokens), decode32 (32 sequences, 128 tokens), prefill (16 prompts that share nothing, 1 token each).
Neither side stops before its last token, so both do the same work; models are loaded before the clock starts. transformers
runs float32 with each batch size given for the job and the fastest counts. Prints one row of docs/performance.md a job:
medians of wall seconds, and CPU seconds in parentheses. Needs a Python with torch and transformers.
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
import time

SHOTS = 5
JOBS = {  # name: (new tokens, sequences in a step for ours, batch sizes tried by transformers)
    "gsm8k": (127, 32, (16, 32)),
    "samples": (128, 16, (16,)),
    "decode1": (128, 1, (1,)),
    "decode32": (128, 32, (32,)),
    "prefill": (1, 16, (1, 4)),
}


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
        tokens, batch, _ = JOBS[job]
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


class Transformers:
    def __init__(self, args):
        import torch
        import transformers
        torch.set_num_threads(args.threads)
        transformers.utils.logging.set_verbosity_error()
        self.torch, self.version = torch, transformers.__version__
        self.model = transformers.AutoModelForCausalLM.from_pretrained(args.model, dtype=torch.float32).eval()

    def run(self, job, ids, batch):
        torch = self.torch
        tokens = JOBS[job][0]
        flags = {"max_new_tokens": tokens, "min_new_tokens": tokens, "do_sample": False, "pad_token_id": 0}
        if job == "samples":
            flags.update(do_sample=True, temperature=0.6, top_k=0, top_p=1.0)
        wall, cpu = time.monotonic(), time.process_time()
        with torch.no_grad():
            for first in range(0, len(ids), batch):
                rows = ids[first:first + batch]
                longest = max(map(len, rows))
                padded = torch.tensor([[0] * (longest - len(row)) + row for row in rows])
                mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows])
                out = self.model.generate(padded, attention_mask=mask, **flags)
                assert out.shape[1] == longest + tokens
        return time.monotonic() - wall, time.process_time() - cpu


def median(pairs):
    return tuple(statistics.median(values) for values in zip(*pairs))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--data", type=pathlib.Path, default=os.environ.get("IHA_EVAL_DATA", "../shared/data"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("jobs", nargs="*", metavar="JOB")
    args = parser.parse_args()
    args.data = pathlib.Path(args.data)
    ours, peer = Ours(args), Transformers(args)
    for job in args.jobs or JOBS:
        if job not in JOBS:
            parser.error(f"job {job}: expected one of {', '.join(JOBS)}")
        ids = ours.encode(prompts(job, args.data))
        mine, theirs = [], {batch: [] for batch in JOBS[job][2]}
        for _ in range(args.repetitions):
            mine.append(ours.run(job, ids))
            for batch, times in theirs.items():
                times.append(peer.run(job, ids, batch))
        best = min(theirs, key=lambda batch: median(theirs[batch]))
        (wall, cpu), (peer_wall, peer_cpu) = median(mine), median(theirs[best])
        print(f"| {job}: {len(ids)} sequences, {sum(map(len, ids))} prompt tokens, {JOBS[job][0]} new each | {wall:.2f} s ({cpu:.2f} s) "
              f"| {peer_wall:.2f} s ({peer_cpu:.2f} s), batch {best}, transformers {peer.version}; ours {peer_wall / wall:.2f}x as fast "
              f"| E | {args.threads} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
