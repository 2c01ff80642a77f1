#!/usr/bin/env python3
"""iha-eval's tokenizers against Hugging Face `tokenizers`, text by text.

usage: compare.py --program build/release/bin/iha-eval --cases CASES [--data DATA] [--count N] [--configs N] [--seed S]

For each tokenizer folder of CASES/tokenizers (real pipelines) and for random pipelines over their vocabularies
(configs.py), both sides encode the same strings (the labelled ones, every text of DATA's files, generated ones of
nasty.py) and decode the same ids, with and without special tokens; `detokenize --pieces` must add up to the whole and
each piece be text. Prints every kind of difference once and a last line of totals; exit 5 if there is any, 4 if the
package is not installed. A configuration that the peer refuses or fails on is counted, not compared.
"""
import argparse
import gzip
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
try:
    from tokenizers import Tokenizer
except ImportError as error:
    sys.exit(print(f"the package tokenizers is not installed ({error}); ./dev deps test installs it", file=sys.stderr) or 4)

import configs
import nasty


class Ours:
    """One tokenizer.json in a folder, driven through the command line."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def lines(self, command, rows, *flags):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        done = subprocess.run([self.program, command, "--model", str(self.folder), *flags], input=text.encode(),
                              capture_output=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.decode(errors="replace").strip() or f"exit {done.returncode}")
        return [json.loads(line) for line in done.stdout.split(b"\n") if line]

    def encode(self, texts, special, parse):
        flags = (["--add-special"] if special else []) + ([] if parse else ["--special", "text"])
        return [row["ids"] for row in self.lines("tokenize", ({"text": text} for text in texts), *flags)]

    def decode(self, ids, skip):
        return self.lines("detokenize", ({"ids": row} for row in ids), "--pieces", *(["--skip-special"] if skip else []))


class Tally:
    def __init__(self):
        self.texts = self.decodes = self.differences = self.configs = self.peer_refuses = self.peer_fails = self.ambiguous = 0
        self.refusals = {}
        self.reported = {}

    def report(self, where, what, given, theirs, ours):
        self.differences += 1
        self.reported[where] = self.reported.get(where, 0) + 1
        if self.reported[where] <= 2 and len(self.reported) <= 40:
            print(f"{where}: {what} differs\n  given  {ascii(given)[:2500]}\n  peer   {ascii(theirs)[:600]}\n  ours   {ascii(ours)[:600]}", flush=True)


FAILED = object()


def peer(tally, call):
    """The peer's answer; some pipelines make its Rust code panic, which says nothing about us."""
    try:
        return call()
    except BaseException as error:  # PanicException is no Exception
        if isinstance(error, KeyboardInterrupt):
            raise
        tally.peer_fails += 1
        return FAILED


def compare_texts(tally, where, ours, hf, texts, special, parse):
    hf.encode_special_tokens = not parse
    mine = ours.encode(texts, special, parse)
    assert len(mine) == len(texts), f"{where}: {len(mine)} lines for {len(texts)} texts"
    tally.texts += len(texts)
    for text, ids in zip(texts, mine):
        theirs = peer(tally, lambda t=text: hf.encode(t, add_special_tokens=special).ids)
        if theirs is not FAILED and theirs != ids:
            tally.report(where, f"encoding (add_special={special}, parse={parse})", text,
                         [hf.id_to_token(i) for i in theirs], [hf.id_to_token(i) for i in ids])
    return mine


def compare_ids(tally, where, ours, hf, rows, skip):
    tally.decodes += len(rows)
    for ids, mine in zip(rows, ours.decode(rows, skip)):
        if "".join(mine["pieces"]) != mine["text"]:
            tally.report(where, "the sum of pieces", ids, mine["text"], mine["pieces"])
        theirs = peer(tally, lambda i=ids: hf.decode(i, skip_special_tokens=skip))
        if theirs is not FAILED and theirs != mine["text"]:
            tally.report(where, f"decoding (skip={skip})", (ids, [hf.id_to_token(i) for i in ids]), theirs, mine["text"])


def data_texts(data):
    """Every string in the JSON and text files of the data sets."""
    def walk(value):
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            for key, part in value.items():
                yield key
                yield from walk(part)
        elif isinstance(value, list):
            for part in value:
                yield from walk(part)

    found = {}
    for path in sorted(pathlib.Path(data).rglob("*")):
        if not path.is_file():
            continue
        raw = gzip.open(path).read() if path.suffix == ".gz" else path.read_bytes()
        text = raw.decode("utf-8", errors="replace")
        name = path.name.removesuffix(".gz")
        if name.endswith(".jsonl"):
            values = [json.loads(line) for line in text.split("\n") if line.strip()]
        else:
            values = [json.loads(text)] if name.endswith(".json") else [text]
        for value in values:
            found.update(dict.fromkeys(walk(value)))
    return list(found)


def loud_ids(parsed):
    """Ids that decoding treats specially: byte tokens, added tokens, byte-level symbols."""
    vocab = parsed["model"]["vocab"]
    return [i for token, i in vocab.items() if len(token) == 1 and ord(token) > 0x7F or token.startswith("<0x")] + \
        [token["id"] for token in parsed["added_tokens"]]


def id_limit(parsed):
    return max(max(parsed["model"]["vocab"].values()), max((t["id"] for t in parsed["added_tokens"]), default=0))


def run_family(tally, args, folder, texts, samples):
    parsed = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    hf, ours, name = Tokenizer.from_file(str(folder / "tokenizer.json")), Ours(args.program, folder), folder.name
    added = [token["content"] for token in parsed["added_tokens"]]
    made = list(nasty.strings(f"{args.seed}/{name}", args.count, added, samples))
    for start in range(0, len(made), 50000):
        block = made[start:start + 50000]
        ids = compare_texts(tally, name, ours, hf, block, start % 100000 == 0, True)
        compare_ids(tally, name, ours, hf, ids, start % 100000 != 0)
    compare_texts(tally, name, ours, hf, made[:max(1, args.count // 10)], False, False)
    ids = compare_texts(tally, name, ours, hf, texts, True, True)
    compare_ids(tally, name, ours, hf, ids, True)
    rows = list(nasty.id_sequences(f"{args.seed}/{name}", max(1, args.count // 10), id_limit(parsed), loud_ids(parsed)))
    for skip in (False, True):
        compare_ids(tally, name, ours, hf, rows, skip)


def ambiguous(hf, parsed):
    """Added tokens whose normalized texts are equal or empty: which of them the peer finds changes from run to run."""
    texts = [hf.normalizer.normalize_str(token["content"]) if hf.normalizer else token["content"]
             for token in parsed["added_tokens"] if token["normalized"]]
    return len(set(texts)) != len(texts) or "" in texts


def run_config(tally, args, folders, samples, number, scratch):
    rng = random.Random(f"{args.seed}/config/{number}")
    base = rng.choice(folders)
    parsed = configs.Maker(rng).mix(json.loads((base / "tokenizer.json").read_text(encoding="utf-8")))
    text = json.dumps(parsed)
    (scratch / "tokenizer.json").write_text(text, encoding="utf-8")
    where = f"configuration {number} ({base.name}) " + json.dumps(
        {k: parsed[k] for k in ("normalizer", "pre_tokenizer", "post_processor", "decoder")} |
        {k: v for k, v in parsed["model"].items() if k not in ("vocab", "merges")})
    ours = Ours(args.program, scratch)
    tally.configs += 1
    try:
        hf = Tokenizer.from_str(text)
    except BaseException as error:  # a panic in the peer
        tally.peer_refuses += 1
        try:
            ours.encode(["a"], False, True)
            print(f"{where}: the peer refuses it ({str(error)[:200]}), we do not")
        except RuntimeError:
            pass
        return
    added = [token["content"] for token in parsed["added_tokens"]]
    if ambiguous(hf, parsed):
        tally.ambiguous += 1
        return
    special, parse, skip = rng.random() < 0.5, rng.random() < 0.8, rng.random() < 0.5
    texts = list(nasty.strings(f"{args.seed}/texts/{number}", 150, added, samples))
    try:
        ids = compare_texts(tally, where, ours, hf, texts, special, parse)
    except RuntimeError as error:
        message = str(error)
        key = message[message.find("tokenizer.json"):][:150]
        tally.refusals[key] = tally.refusals.get(key, 0) + 1
        return
    rows = ids[:50] + list(nasty.id_sequences(f"{args.seed}/ids/{number}", 50, id_limit(parsed), loud_ids(parsed)))
    compare_ids(tally, where, ours, hf, rows, skip)


CHARACTER_PARTS = [("pre_tokenizer", {"type": kind}) for kind in ("Whitespace", "WhitespaceSplit", "BertPreTokenizer")] + [
    ("pre_tokenizer", {"type": "Punctuation", "behavior": "Isolated"}),
    ("pre_tokenizer", {"type": "Digits", "individual_digits": True}),
] + [("normalizer", {"type": kind}) for kind in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents")] + [
    ("pre_tokenizer", {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False})
    for regex in (r"\s", r"\w", r"\d", r"[\w]", r"\p{L}", r"\p{N}", r"\p{P}", r"\p{S}", r"\p{M}", r"\p{Lu}", r"\p{Ll}", r"\p{Lt}",
                  r"\p{Lm}", r"\p{Lo}", r"\p{Han}", r"[[:punct:]]", r"[[:alpha:]]", r"[[:alnum:]]", r"(?i)s", r"(?i)k",
                  r"[^\s\p{L}\p{N}]", r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")]


def run_characters(tally, args, scratch):
    """Every code point through every component that asks what kind of character it is.

    The vocabulary is the 256 bytes; a Metaspace after the component marks where each piece starts. Normalizers also see
    each between two marks that want to change places, and before the second half of a composed letter.
    """
    vocab = {f"<0x{b:02X}>": b for b in range(256)} | {"\u2581": 256}
    starts = [start for start in range(0, 0x110000, 256) if not 0xD800 <= start < 0xE000]

    def blocks_of(before, behind):
        return ["".join(f"a{before}{chr(c)}{behind}" for c in range(start, start + 256)) + "a" for start in starts]

    mark = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": False}
    for part, value in CHARACTER_PARTS:
        parsed = {"version": "1.0", "added_tokens": [], "normalizer": None, "pre_tokenizer": mark, "post_processor": None, "decoder": None,
                  "model": {"type": "BPE", "byte_fallback": True, "vocab": vocab, "merges": []}}
        parsed[part] = value if part == "normalizer" else {"type": "Sequence", "pretokenizers": [value, mark]}
        text = json.dumps(parsed)
        (scratch / "tokenizer.json").write_text(text, encoding="utf-8")
        hf, ours = Tokenizer.from_str(text), Ours(args.program, scratch)
        around = [("", ""), ("\u0345", "\u0334"), ("", "\U00011930")] if part == "normalizer" else [("", "")]
        for before, behind in around:
            blocks = blocks_of(before, behind)
            mine = ours.encode(blocks, False, True)
            wrong = [start for start, block, ids in zip(starts, blocks, mine) if hf.encode(block).ids != ids]
            tally.texts += len(blocks)
            characters = [chr(c) for start in wrong for c in range(start, start + 256)]
            singles = [f"a{before}{c}{behind}a" for c in characters]
            mine = ours.encode(singles, False, True)
            found = [c for c, text, ids in zip(characters, singles, mine) if hf.encode(text).ids != ids]
            if wrong:
                tally.report(f"character component {json.dumps(value)}", f"a character between {ascii(before)} and {ascii(behind)}", ranges(found), "", "")


def ranges(characters):
    """"10FF-1100 ..." of sorted characters."""
    runs = []
    for code in sorted(map(ord, characters)):
        if runs and runs[-1][1] == code - 1:
            runs[-1][1] = code
        else:
            runs.append([code, code])
    return " ".join(f"{a:X}-{b:X}" if a != b else f"{a:X}" for a, b in runs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--cases", required=True)
    parser.add_argument("--data", default="")
    parser.add_argument("--count", type=int, default=200000, help="generated strings per tokenizer")
    parser.add_argument("--configs", type=int, default=1000, help="random pipelines")
    parser.add_argument("--first-config", type=int, default=0)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--families", default="", help="comma-separated folder names; empty = all")
    parser.add_argument("--characters", action="store_true", help="every code point through every character class")
    args = parser.parse_args()
    args.program = os.path.abspath(args.program)
    folders = sorted(p.parent for p in pathlib.Path(args.cases, "tokenizers").glob("*/tokenizer.json"))
    labelled = []
    for folder in folders:
        labelled += [json.loads(line)["text"] for line in (folder / "cases.jsonl").read_text().split("\n") if line]
    labelled = list(dict.fromkeys(labelled))
    texts = labelled + (data_texts(args.data) if args.data else [])
    tally = Tally()
    wanted = args.families.split(",") if args.families else [folder.name for folder in folders]
    for folder in folders:
        if folder.name in wanted:
            run_family(tally, args, folder, texts, labelled)
            print(f"{folder.name}: {tally.texts} texts, {tally.decodes} decodings so far, {tally.differences} differences", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        if args.characters:
            run_characters(tally, args, pathlib.Path(scratch))
        for number in range(args.first_config, args.first_config + args.configs):
            run_config(tally, args, folders, labelled, number, pathlib.Path(scratch))
    for message, times in sorted(tally.refusals.items()):
        print(f"refused by us {times} times: {message}")
    print(f"tokenizer peer: {tally.texts} texts, {tally.decodes} decodings, {tally.configs} random pipelines "
          f"({tally.peer_refuses} refused by the peer, {sum(tally.refusals.values())} by us, {tally.ambiguous} ambiguous, {tally.peer_fails} failures "
          f"of the peer), {tally.differences} differences")
    return 5 if tally.differences else 0


if __name__ == "__main__":
    sys.exit(main())
