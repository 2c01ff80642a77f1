#!/usr/bin/env python3
"""How many generations of one model of a run differ from another's.

Usage: compare_generations.py SAMPLES_JSONL MODEL BASELINE
Pairs the lines of samples.jsonl by benchmark, entry, item and sample; prints one line. Exit 1 if one is incomplete.
"""
import json
import sys


def main():
    path, model, baseline = sys.argv[1:4]
    texts = {model: {}, baseline: {}}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            if row["model"] in texts:
                key = (row["benchmark"], row["entry"], row["item_id"], row["sample"])
                texts[row["model"]][key] = (row["text"], row["finish_reason"])
    ours, theirs = texts[model], texts[baseline]
    if not ours or ours.keys() != theirs.keys():
        sys.exit(f"{path}: {len(ours)} generations of {model}, {len(theirs)} of {baseline}; expected the same items")
    differing = sum(ours[key] != theirs[key] for key in ours)
    print(f"{differing} of {len(ours)} generations of {model} differ from those of {baseline}")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    try:
        main()
    except (OSError, ValueError, KeyError) as error:
        sys.exit(f"compare_generations.py: {error}")
