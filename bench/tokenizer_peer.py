#!/usr/bin/env python3
"""Encoding speed beside Hugging Face `tokenizers`, one thread each, in the same run.

usage: tokenizer_peer.py --speed build/bench/bin/tokenizer_speed --data DATA [--repetitions N] TOKENIZER_DIR...

For each folder with a tokenizer.json and each text: MB/s of both (medians of CPU time), encoding only, and their ratio. The peer is
given its fastest call (encode_batch_fast: no offsets) and its ids are not turned into Python lists. Rows are Markdown.
"""
import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"
try:
    import tokenizers
except ImportError as error:
    sys.exit(print(f"the package tokenizers is not installed ({error}); ./dev deps test installs it", file=sys.stderr) or 4)


def rows(path, *fields):
    lines = pathlib.Path(path).read_text(encoding="utf-8").split("\n")
    return ["\n".join(json.loads(line)[field] for field in fields) for line in lines if line.strip()]


def texts(data):
    """Name to list of texts. Generated ones come from a fixed seed."""
    rng = random.Random(1)
    english = rows(f"{data}/gsm8k/test.jsonl", "question", "answer")
    code = [text for path in sorted(pathlib.Path(data, "mbpp").glob("*.jsonl")) for text in rows(path, "code")]
    cjk = ["".join(chr(rng.randint(0x4E00, 0x9FA5)) if rng.random() < 0.85 else rng.choice("\u3001\u3002\u306e\u306b\u306f\u30fc ABC12") for _ in range(400))
           for _ in range(300)]
    words = ["".join(rng.choice("etaoinshrdlucmfwypvbgk") for _ in range(rng.randint(200, 4000))) for _ in range(200)]
    letters = "".join(rng.choice("etaoinshrdlucmfwypvbgk") for _ in range(1 << 20))
    return {
        "English, 1319 problems": english,
        "English, one text": ["\n".join(english)],
        "code, one text a program": code,
        "CJK, 300 texts": cjk,
        "words of 200 to 4000 letters": words,
        "one word of 64 Ki letters": [letters[:1 << 16]],
        "one word of 1 Mi letters": [letters],
        "1 Mi times one letter": ["a" * (1 << 20)],
        "1 Mi spaces": [" " * (1 << 20)],
    }


def peer_seconds(tokenizer, sample, repetitions, limit_s=20.0):
    seconds = []
    for _ in range(repetitions):
        start = time.process_time()
        tokenizer.encode_batch_fast(sample, add_special_tokens=False)
        seconds.append(time.process_time() - start)
        if sum(seconds) > limit_s:
            break
    return statistics.median(seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--speed", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--only", default="", help="part of a text's name")
    parser.add_argument("folders", nargs="+")
    args = parser.parse_args()
    slower = 0
    print(f"| tokenizer, text | ours | tokenizers {tokenizers.__version__} | ratio |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        for name, sample in texts(args.data).items():
            if args.only not in name:
                continue
            file = pathlib.Path(scratch, "texts.json")
            file.write_text(json.dumps(sample), encoding="ascii")
            size = sum(len(text.encode()) for text in sample)
            for folder in args.folders:
                theirs = peer_seconds(tokenizers.Tokenizer.from_file(f"{folder}/tokenizer.json"), sample, args.repetitions)
                done = subprocess.run([args.speed, folder, str(file), str(args.repetitions)], capture_output=True, check=True)
                ours = json.loads(done.stdout)["encode_s"]
                slower += ours > theirs
                print(f"| {pathlib.Path(folder).name}, {name} | {size / ours / 1e6:.1f} MB/s | {size / theirs / 1e6:.1f} MB/s | "
                      f"{theirs / ours:.2f} |", flush=True)
    print(f"{slower} rows slower than the peer", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
