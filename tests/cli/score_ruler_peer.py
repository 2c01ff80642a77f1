#!/usr/bin/env python3
"""`iha-eval score ruler` beside the rule of NVIDIA's evaluate.py, written here from its description.

Usage: score_ruler_peer.py IHA_EVAL SEED. Prints what differs and exits 1, or "N rows agree".
"""
import json
import random
import re
import subprocess
import sys

program, seed = sys.argv[1], int(sys.argv[2])
draw = random.Random(seed)
PIECES = ["Zürich", "ΟΔΥΣΣΕΥΣ", "İzmir", "8231342", "4f0e", "blue-eyed zucchini", "a", "É", "straße", "word", "\t", "\n",
          "\u00a0", "\x01", "\x1f", " ", ". ", ", ", "\u200b", "1. ", "The answer is ", "Σ", "ẞ", "\u2028", "\x7f"]
TASKS = {name: max if name.startswith("qa") else (lambda hits: sum(hits) / len(hits))
         for name in ("niah_single_1 niah_single_2 niah_single_3 niah_multikey_1 niah_multikey_2 niah_multikey_3 "
                      "niah_multivalue niah_multiquery vt cwe fwe qa_1 qa_2").split()}


def text(most):
    pieces = [draw.choice(PIECES) for _ in range(draw.randrange(most))]
    return "".join(draw.choice((str, str.upper, str.lower, str.title))(piece) for piece in pieces)


def expected(task, outputs, prediction):
    prediction = re.sub(r"[\x00-\x1f]", "\n", prediction.strip()).strip()
    hits = [1.0 if reference.lower() in prediction.lower() else 0.0 for reference in outputs]
    return TASKS[task](hits), prediction == ""


rows, wanted, totals = [], [], {}
for task in TASKS:
    for number in range(draw.choice((7, 32, 96, 500))):
        outputs = [text(4) or "x" for _ in range(draw.choice((1, 1, 3, 4, 10)))]
        prediction = draw.choice((text(12), text(12) + draw.choice(outputs) + text(4), ""))
        rows.append({"task": task, "outputs": outputs, "prediction": prediction, "row": number})
        score, empty = expected(task, outputs, prediction)
        wanted.append({"row": number, "score": score})
        totals.setdefault(task, []).append((score, empty))
done = subprocess.run([program, "score", "ruler"], input="".join(json.dumps(row) + "\n" for row in rows),
                      capture_output=True, text=True, check=True)
got = [json.loads(line) for line in done.stdout.splitlines()]
wrong = [pair for pair in zip(wanted, got, rows) if pair[0] != pair[1]]
summary = "".join(
    f"{task}: string_match_{'part' if task.startswith('qa') else 'all'} "
    f"{round(sum(score for score, _ in scores) / len(scores) * 100, 2):.2f} "
    f"({len(scores)} rows, {sum(empty for _, empty in scores)} empty)\n" for task, scores in totals.items())
if wrong or len(got) != len(rows) or done.stderr != summary:
    print(len(got), len(rows), wrong[:3], done.stderr, summary, sep="\n")
    sys.exit(1)
print(f"{len(rows)} rows agree")
