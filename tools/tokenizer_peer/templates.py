#!/usr/bin/env python3
"""iha-eval's chat prompts against transformers' apply_chat_template, text and token ids.

usage: templates.py --program build/release/bin/iha-eval --tokenizer DIR [--count N] [--golden FILE]

Each template of templates/ (in the styles that published checkpoints use, and one of everything else) renders fixed
and generated conversations, with and without tools, closed, with the head of an answer, and inside the last message.
Where transformers raises, ours must refuse. DIR is a folder with a tokenizer.json. --golden writes the fixed ones as
the test reads them instead (tests/model/tokenizer/chat_goldens.jsonl). Exit 5 if anything differs.
"""
import argparse
import datetime
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

import nasty

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
try:
    import transformers
    import transformers.utils.chat_template_utils as chat_utils
    from transformers import PreTrainedTokenizerFast
except ImportError as error:
    sys.exit(print(f"transformers is not installed ({error}); ./dev deps docs installs it", file=sys.stderr) or 4)


class Fixed(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2024, 7, 26)


chat_utils.datetime = Fixed

TOOLS = [
    {"type": "function", "function": {"name": "weather", "description": "Weather of a place, \u00b0C & \"<more>\"",
                                      "parameters": {"type": "object", "required": ["place"], "properties": {
                                          "place": {"type": "string", "enum": ["K\u00f6ln", "\u6771\u4eac"]}, "days": {"type": "number"}}}}},
    {"type": "function", "function": {"name": "now", "description": "", "parameters": {"type": "object", "properties": {}}}},
]


def say(role, content, **more):
    return {"role": role, "content": content, **more}


def call(name, arguments, identity="abcdefghi"):
    return {"type": "function", "id": identity, "function": {"name": name, "arguments": arguments}}


CONVERSATIONS = [
    [say("user", "Hello")],
    [say("system", "Be brief. "), say("user", "  What is 2+2?\n")],
    [say("user", "a"), say("assistant", " b \n"), say("user", "c"), say("assistant", "It is ")],
    [say("system", ""), say("user", "<|eot_id|><|im_end|>"), say("assistant", "x"), say("user", "")],
    [say("user", "u1"), say("user", "u2")],
    [say("assistant", "first")],
    [say("user", "weather?"), say("assistant", None, tool_calls=[call("weather", {"place": "K\u00f6ln", "days": 2})]),
     say("tool", "rain"), say("assistant", "It rains."), say("user", "ok")],
    [say("user", "both?"), say("assistant", "one moment", tool_calls=[call("now", {}), call("weather", {"place": "\u6771\u4eac"}, "bad")]),
     say("tool", "{\"t\": 1}"), say("tool", "sun")],
    [say("user", "think"), say("assistant", "<think>\nhm\n</think>\n\n42"), say("user", "again"),
     say("assistant", "\n7", reasoning_content="\nwell\n")],
    [say("user", "alias"), say("assistant", "9", reasoning="because")],
    [say("user", [{"type": "text", "text": " part one "}, {"type": "image"}, {"type": "text", "text": "part two"}])],
    [say("system", [{"type": "text", "text": "listed"}]), say("user", "hi"), say("assistant", [{"type": "text", "text": "open "}])],
    [say("skip", "x"), say("user", "na\u00efve \U0001f389 \u202eRTL\u2028\u00a0"), say("assistant", "tab\there")],
    [say("user", None)],
    [say("developer", "unknown role"), say("user", "x")],
    [{"role": "user"}],
    [{"content": "no role"}],
]
ENDS = {"assistant": {"add_generation_prompt": True}, "closed": {}, "open": {"continue_final_message": True}}


def generated(seed, count):
    rng = random.Random(seed)
    texts = list(nasty.strings(seed, count * 4, ["<|im_end|>", "<|eot_id|>", "</think>", "{{ x }}", "{% if %}"]))
    for _ in range(count):
        chat = [say("system", texts.pop())] if rng.random() < 0.3 else []
        for turn in range(rng.randint(1, 3)):
            chat.append(say("user" if turn % 2 == 0 else "assistant", texts.pop()))
        yield chat


def cases(count):
    chats = CONVERSATIONS + list(generated("chats", count))
    for number, chat in enumerate(chats):
        for end in ENDS:
            for tools in (None, TOOLS) if number < len(CONVERSATIONS) else (None,):
                yield chat, end, tools


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="")
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--golden", default="")
    args = parser.parse_args()
    special = {"bos_token": "<|begin_of_text|>", "eos_token": "<|eot_id|>"}
    sources = {path.stem: path.read_text(encoding="utf-8")
               for path in sorted(pathlib.Path(__file__).parent.joinpath("templates").glob("*.jinja"))}
    sources["named"] = [{"name": "default", "template": sources["im_default_system"]},
                        {"name": "tool_use", "template": sources["im_tools"]}]
    rows, different, refused = 0, 0, 0
    golden = open(args.golden, "w", encoding="ascii") if args.golden else None
    for name, source in sources.items():
        tokenizer = PreTrainedTokenizerFast(tokenizer_file=os.path.join(args.tokenizer, "tokenizer.json"),
                                            chat_template=source, **special)
        expected = []
        for chat, end, tools in cases(0 if golden else args.count):
            try:
                text = tokenizer.apply_chat_template(chat, tools=tools, tokenize=False, **ENDS[end])
                ids = tokenizer.apply_chat_template(chat, tools=tools, **ENDS[end])["input_ids"]
            except Exception:  # whatever the template or transformers makes of it
                text = ids = None
            expected.append((chat, end, tools, text, ids))
        if golden:
            for chat, end, tools, text, _ in expected:
                golden.write(json.dumps({"template": name, "messages": chat, "end": end, "tools": tools is not None, "text": text}) + "\n")
            continue
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "tokenizer.json").symlink_to(os.path.abspath(os.path.join(args.tokenizer, "tokenizer.json")))
            pathlib.Path(folder, "tokenizer_config.json").write_text(json.dumps({"chat_template": source, **special}))
            for end in ENDS:
                mine = [row for row in expected if row[1] == end]
                lines = "".join(json.dumps({"n": n, "messages": row[0], "tools": row[2]}) + "\n" for n, row in enumerate(mine))
                done = subprocess.run([args.program, "tokenize", "--model", folder, "--chat", "--chat-end", end],
                                      input=lines.encode(), capture_output=True, check=False)
                out = {row["n"]: row for row in map(json.loads, done.stdout.splitlines())}
                for n, (chat, _, tools, text, ids) in enumerate(mine):
                    ours = out.get(n, {})
                    rows += 1
                    refused += text is None
                    if (ours.get("text"), ours.get("ids")) != (text, ids):
                        different += 1
                        if different <= 20:
                            print(f"{name}, {end}, tools {tools is not None}: {json.dumps(chat)[:300]}\n  theirs {text!r}\n  ours   {ours.get('text')!r}\n"
                                  f"  {done.stderr.decode()[:300] if not ours else ''}", flush=True)
    print(f"chat templates: {len(sources)} templates, {rows} prompts ({refused} refused by transformers {transformers.__version__}), {different} differences")
    return 5 if different else 0


if __name__ == "__main__":
    sys.exit(main())
