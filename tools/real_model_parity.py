#!/usr/bin/env python3
"""Real models against Hugging Face transformers: weights, tokenizer, logits and greedy tokens of imported GGUF files.

usage: real_model_parity.py --program build/release/bin/iha-eval --scratch DIR [--strings N] [--tokens N] NAME=FILE.gguf ...

For each file iha-eval imports it and runs it; the other side is transformers' own reading of the same file (weights
dequantised by the `gguf` package, config and tokenizer by transformers' converters), so nothing of ours enters it:
  weights    every tensor equal bit for bit
  tokenizer  tokenizer.json equal key by key, and equal ids on N generated strings and all prompts
  greedy     64 tokens after each prompt: given prompt and answer, transformers' float32 run prefers each next token of
             the answer, so the answer is its own greedy one
  logits     at every position of prompt and answer no further from a float64 run than NOISE times what transformers'
             own float32 run is (both round as they like; the largest over all prompts counts)
Prints one line of results a model; exit 5 if anything differs. Needs ./dev deps parity.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "tokenizer_peer"))
import torch
from gguf import GGUFReader
from safetensors import safe_open
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging

import nasty
from wholly_float64 import float64_twin, wholly_float64

NOISE = 8  # the rule by which handed-in oracles state their tolerance: eight times the peer's own float32 error

# The pre-tokenizers of the models' own tokenizer.json, by GGUF's name, that transformers 5.24 does not know.
PUBLISHED = {
    "smollm": {"type": "Sequence", "pretokenizers": [
        {"type": "Digits", "individual_digits": True},
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}]},
}
LONG = " ".join(f"In year {1900 + 7 * i} the town counted {37 * i % 911} houses, {i} mills and a bridge;" for i in range(28))
PROMPTS = [
    "The capital of France is",
    "Q: What is the boiling point of water at sea level?\nA:",
    "Once upon a time, in a village by the sea, there lived",
    " leading space and then some words",
    "a",
    "def fibonacci(n):\n    \"\"\"Return the n-th Fibonacci number.\"\"\"\n",
    "#include <vector>\nint main() {\n\tstd::vector<int> v = {3, 1, 2};\n",
    "{\"name\": \"Ada\", \"born\": 1815, \"works\": [",
    "SELECT name, COUNT(*) FROM orders WHERE",
    "Natalia sold 48 clips in April and half as many in May. In total she sold 48 + 48/2 = <<48/2=24>>",
    "Let $x$ satisfy $\\frac{1}{x} + 2x^2 = 3$. Then \\boxed{",
    "1234567890 9876543210 3.14159 1,000,000 2^10 =",
    "https://www.example.org/a/b?c=1&d=%20#frag is a link to",
    "中国的首都是哪里？答案是",
    "日本の首都は東京です。カタカナ、ひらがな、漢字",
    "한국의 수도는",
    "Столица России — это город",
    "العاصمة هي مدينة שלום עולם",
    "भारत की राजधानी ไทยแลนด์ 𝐀𝐁 𠀀",
    "👨‍👩‍👧 🏳️‍🌈 🇩🇪 ❤️ emojis mean",
    "tabs\t\tand   runs of    spaces\n\n\nand\r\nlines      ",
    "cafe\u0301 naïve \u200b\u00a0\ufeff \ue000 controls \x07\x1b end",
    "THE QUICK BROWN FOX JUMPS OVER the lazy DOG'S back, we'll say; don't",
    "<|im_start|>user\nName three colours.<|im_end|>\n<|im_start|>assistant\n",
    "<start_of_turn>user\nName three rivers.<end_of_turn>\n<start_of_turn>model\n",
    "yes yes yes yes yes yes yes yes yes yes yes yes yes yes yes yes",
    LONG,  # longer than Gemma's window of 512
]


class Ours:
    def __init__(self, program, model, scratch):
        self.program, self.model, self.scratch = program, str(model), scratch

    def run(self, command, *args, text=""):
        done = subprocess.run([self.program, command, *args], input=text.encode(), capture_output=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{command}: " + (done.stderr.decode(errors="replace").strip() or f"exit {done.returncode}"))
        return done.stdout

    def rows(self, command, rows, *args):
        out = self.run(command, "--model", self.model, *args, text="".join(json.dumps(row) + "\n" for row in rows))
        return [json.loads(line) for line in out.split(b"\n") if line]

    def encode(self, texts):
        return [row["ids"] for row in self.rows("tokenize", ({"text": text} for text in texts), "--add-special")]

    def greedy(self, prompts, tokens):
        rows = self.rows("generate", ({"ids": ids} for ids in prompts), "--max-new-tokens", str(tokens), "--ignore-eos")
        return [row["samples"][0]["ids"] for row in rows]

    def logits(self, ids):
        path = self.scratch / "logits.safetensors"
        self.run("logits", "--model", self.model, "--ids", "-", "--out", str(path), text=json.dumps(ids))
        with safe_open(path, "pt") as file:
            return file.get_tensor("logits")


def compare_weights(model, folder):
    """How many tensors, and the names of those that differ; a tied head is no tensor of ours."""
    with safe_open(folder / "model.safetensors", "pt") as file:
        names = set(file.keys())
        state = model.state_dict()
        wrong = [n for n in sorted(names) if n not in state or not torch.equal(file.get_tensor(n), state[n])]
    wrong += [n for n in state if n not in names and not (n == "lm_head.weight" and model.config.tie_word_embeddings)]
    return len(names), wrong


def differing_keys(theirs, ours, where=""):
    if isinstance(theirs, dict) and isinstance(ours, dict) and where in ("", ".model"):
        return [found for key in sorted(theirs.keys() | ours.keys())
                for found in differing_keys(theirs.get(key), ours.get(key), f"{where}.{key}")]
    return [] if theirs == ours else [where[1:]]


def read_peer(tokenizer, gguf):
    """transformers' tokenizer, with the pre-tokenizer that the file names where transformers takes GPT-2's for it."""
    parsed = json.loads(tokenizer.backend_tokenizer.to_str())
    fields = GGUFReader(gguf).fields
    name = fields["tokenizer.ggml.pre"].contents() if "tokenizer.ggml.pre" in fields else ""
    parsed["pre_tokenizer"] = PUBLISHED.get(name, parsed["pre_tokenizer"])
    return Tokenizer.from_str(json.dumps(parsed))


def one_spelling(parsed):
    """What the library reads alike written alike: "a b" for ["a", "b"], no affix, a template that adds nothing."""
    model, post = parsed["model"], parsed["post_processor"]
    model["merges"] = [m.split(" ") if isinstance(m, str) else m for m in model["merges"]]
    for affix in ("continuing_subword_prefix", "end_of_word_suffix"):
        model[affix] = model[affix] or None
    if post is not None and post["type"] == "TemplateProcessing" and not post["special_tokens"]:
        parsed["post_processor"] = None
    return parsed


def check_tokenizer(peer, folder, ours, strings, seed):
    text = (folder / "tokenizer.json").read_text(encoding="utf-8")
    theirs, mine = one_spelling(json.loads(peer.to_str())), one_spelling(json.loads(text))
    keys = differing_keys(theirs, mine)
    for key in keys:
        left, right = (json.dumps(side["model"][key[6:]] if key.startswith("model.") else side.get(key)) for side in (theirs, mine))
        print(f"  tokenizer.json: {key} differs\n    peer {left[:400]}\n    ours {right[:400]}", flush=True)
    added = [token["content"] for token in mine["added_tokens"]]
    texts = PROMPTS + list(nasty.strings(seed, strings, added, PROMPTS))
    wrong = 0
    for given, ids in zip(texts, ours.encode(texts), strict=True):
        expected = peer.encode(given).ids
        if ids != expected:
            wrong += 1
            if wrong <= 3:
                print(f"  ids differ for {ascii(given)[:300]}\n    peer {expected[:40]}\n    ours {ids[:40]}", flush=True)
    return len(texts), wrong, keys


def largest(values):
    """The largest, NaN if one is: Python's max may drop it."""
    return torch.tensor(list(values), dtype=torch.float64).max().item()


def distance(logits, wanted):
    """The largest difference, in blocks of rows: a vocabulary is long."""
    return largest((a.double() - b).abs().max().item() for a, b in zip(logits.split(64), wanted.split(64), strict=True))


def check_model(args, name, gguf):
    folder = args.scratch / name
    ours = Ours(args.program, folder, args.scratch)
    ours.run("import", "gguf", str(gguf), "--out", str(folder))
    where = {"pretrained_model_name_or_path": str(gguf.parent), "gguf_file": gguf.name}
    tokenizer = AutoTokenizer.from_pretrained(**where)
    peer = read_peer(tokenizer, gguf)
    texts, wrong_texts, keys = check_tokenizer(peer, folder, ours, args.strings, f"parity/{name}")
    model = AutoModelForCausalLM.from_pretrained(**where, dtype=torch.float32, attn_implementation="eager").eval()
    tensors, wrong_tensors = compare_weights(model, folder)
    for tensor in wrong_tensors[:5]:
        print(f"  tensor {tensor} differs", flush=True)
    prompts = [peer.encode(text).ids for text in PROMPTS]
    started = time.monotonic()
    answers = ours.greedy(prompts, args.tokens)
    seconds = time.monotonic() - started
    exact = float64_twin(model)
    unequal = ties = positions = 0
    noises, errors = [], []
    narrowest = float("inf")
    with torch.no_grad():
        for text, ids, answer in zip(PROMPTS, prompts, answers, strict=True):
            whole = torch.tensor([ids + answer])
            with wholly_float64():
                wanted = exact(whole, use_cache=False).logits[0]
            assert wanted.dtype == torch.float64 and len(answer) == args.tokens
            single, mine = model(whole, use_cache=False).logits[0], ours.logits(ids + answer)
            noises.append(distance(single, wanted))
            errors.append(distance(mine, wanted))
            noise, error = largest(noises), largest(errors)
            best = wanted[len(ids) - 1:-1].topk(2).values
            gap = best[:, 0] - best[:, 1]
            theirs = single[len(ids) - 1:-1].argmax(-1).tolist()
            narrowest = min(narrowest, gap.min().item())
            positions += whole.shape[1]
            print(f"  {name}: {len(ids)} tokens {ascii(text)[:60]}: equal {theirs == answer}; so far error {error:.2e}, float32 {noise:.2e}, "
                  f"narrowest lead {narrowest:.1e}", file=sys.stderr, flush=True)
            if theirs != answer:
                at = next(i for i, (a, b) in enumerate(zip(theirs, answer)) if a != b)
                tie = gap[at].item() < 2 * noise
                ties += tie
                unequal += not tie
                print(f"  {ascii(text)[:60]}: token {at} differs, {theirs[at]} for {answer[at]}; the best two are "
                      f"{gap[at].item():.1e} apart", flush=True)
    ok = not (wrong_texts or keys or wrong_tensors or unequal or not error <= NOISE * noise)
    print(f"{name}: {tensors} tensors, {len(wrong_tensors)} differ; tokenizer.json: {len(keys)} keys differ, {texts} strings, "
          f"{wrong_texts} differ; {len(PROMPTS)} prompts x {args.tokens} greedy tokens ({seconds:.0f} s): {unequal} differ, {ties} ties "
          f"(narrowest lead {narrowest:.1e}); {positions} rows of logits: max error {error:.2e}, transformers float32 {noise:.2e}"
          f" -> {'equal' if ok else 'DIFFERENT'}", flush=True)
    return ok


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--scratch", required=True, type=pathlib.Path)
    parser.add_argument("--strings", type=int, default=20000)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("models", nargs="+", metavar="NAME=FILE.gguf")
    args = parser.parse_args()
    args.program = os.path.abspath(args.program)
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    args.scratch.mkdir(parents=True, exist_ok=True)
    good = 0
    for entry in args.models:
        name, _, path = entry.partition("=")
        good += check_model(args, name, pathlib.Path(path).resolve())
    print(f"real models: {good} of {len(args.models)} equal transformers")
    return 0 if good == len(args.models) else 5


if __name__ == "__main__":
    sys.exit(main())
