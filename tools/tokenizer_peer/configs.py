"""Random tokenizer.json files: real vocabularies under pipelines that nobody ships. Equal seeds give equal files."""
import copy

PATTERNS = [
    r"\s+", r"\S+", r"\w+", r"\W+", r"\d+", r"[^\s\w]", r"\p{L}+|\p{N}{1,3}", r".", r".+", r"(?m).+", r"\X", r"\R", r"\b", r"^.", r"$",
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"[一-龥぀-ゟ゠-ヿ]+", r"[\u4e00-\u9fff]+", r"\p{Han}+", r"\p{Greek}+", r"[[:alpha:]]+", r"[[:punct:]]", r"[[:space:]]+",
    r"[[:digit:]]", r"[^[:alnum:]]", r"[a-z&&[^aeiou]]+", r"[\W\d]", r"[^\S\n]+", r"[\s\p{P}]", r"[^\p{L}\p{M}\s]", r"\P{L}",
    r"\p{^L}", r"\p{Lowercase}", r"\p{Upper}", r"\p{Emoji}", r"\p{Letter}", r"\h+", r"(?i)s|k", r"a*", r"a{2}?", r"(a|b)\1",
    r"(?<n>a)\k<n>", r"(?<=a)b|\Aa|e\z", r"(?>a+)b", r"\d{1,3}(?=(?:\d{3})*\b)", r"(?=(\d{3})+(?!\d))", r"\u0041|\x{42}",
    r"[]a]", r"[a-]", r"a{b", r"[0-9]{,2}",
]
STRINGS = [" ", "▁", "\n", "a", "e ", "--", "  ", "'", "世", "Ġ"]
BEHAVIORS = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
SCHEMES = ["always", "first", "never"]


class Maker:
    """Draws components; `rng` decides all."""

    def __init__(self, rng):
        self.rng = rng

    def coin(self, chance=0.5):
        return self.rng.random() < chance

    def pattern(self):
        return {"Regex": self.rng.choice(PATTERNS)} if self.coin(0.7) else {"String": self.rng.choice(STRINGS)}

    def several(self, draw, depth, most):
        return [draw(depth + 1) for _ in range(self.rng.randint(0, most))]

    def normalizer(self, depth=0):
        kind = self.rng.choice(["Sequence", "NFC", "NFD", "NFKC", "NFKD", "Prepend", "Replace", "Replace", "Lowercase",
                                "StripAccents", "Strip", "ByteLevel"])
        if kind == "Sequence":
            return {"type": kind, "normalizers": self.several(self.normalizer, depth, 3) if depth < 2 else []}
        return {"type": kind} | {
            "Prepend": lambda: {"prepend": self.rng.choice(["▁", "x", " "])},
            "Replace": lambda: {"pattern": self.pattern(), "content": self.rng.choice(["▁", "", " ", "xy"])},
            "Strip": lambda: {"strip_left": self.coin(), "strip_right": self.coin()},
        }.get(kind, dict)()

    def pre_tokenizer(self, depth=0):
        kind = self.rng.choice(["Sequence", "Sequence", "ByteLevel", "ByteLevel", "Split", "Split", "Split", "Digits", "Metaspace",
                                "Metaspace", "Whitespace", "WhitespaceSplit", "Punctuation", "CharDelimiterSplit",
                                "BertPreTokenizer"])
        if kind == "Sequence":
            return {"type": kind, "pretokenizers": self.several(self.pre_tokenizer, depth, 3) if depth < 2 else []}
        return {"type": kind} | {
            "ByteLevel": lambda: {"add_prefix_space": self.coin(), "trim_offsets": self.coin(), "use_regex": self.coin()},
            "Split": lambda: {"pattern": self.pattern(), "behavior": self.rng.choice(BEHAVIORS), "invert": self.coin(0.4)},
            "Digits": lambda: {"individual_digits": self.coin()},
            "Metaspace": lambda: {"replacement": self.rng.choice("▁▁_"), "prepend_scheme": self.rng.choice(SCHEMES),
                                  "split": self.coin()},
            "Punctuation": lambda: {"behavior": self.rng.choice(BEHAVIORS)},
            "CharDelimiterSplit": lambda: {"delimiter": self.rng.choice(" ae")},
        }.get(kind, dict)()

    def post_processor(self, ids, depth=0):
        kind = self.rng.choice(["TemplateProcessing", "TemplateProcessing", "ByteLevel", "Sequence", "RobertaProcessing",
                                "BertProcessing"])
        names = self.rng.sample(sorted(ids), 2)
        text = {"Sequence": {"id": "A", "type_id": 0}}
        if kind == "Sequence":
            return {"type": kind, "processors": [self.post_processor(ids, depth + 1)
                                                 for _ in range(self.rng.randint(0, 2) if depth < 2 else 0)]}
        if kind == "ByteLevel":
            return {"type": kind, "add_prefix_space": self.coin(), "trim_offsets": self.coin(), "use_regex": self.coin()}
        if kind == "TemplateProcessing":
            single = [{"SpecialToken": {"id": name, "type_id": 0}} for name in names[:self.rng.randint(0, 2)]]
            single.insert(self.rng.randint(0, len(single)), text)
            return {"type": kind, "single": single, "pair": [text, {"Sequence": {"id": "B", "type_id": 1}}],
                    "special_tokens": {n: {"id": n, "ids": [ids[n]], "tokens": [n]} for n in names}}
        both = {"sep": [names[0], ids[names[0]]], "cls": [names[1], ids[names[1]]]}
        if kind == "RobertaProcessing":
            both |= {"trim_offsets": self.coin(), "add_prefix_space": self.coin()}
        return {"type": kind} | both

    def decoder(self, depth=0):
        kind = self.rng.choice(["Sequence", "Sequence", "ByteLevel", "ByteFallback", "Fuse", "Metaspace", "Replace", "Strip"])
        if kind == "Sequence":
            return {"type": kind, "decoders": self.several(self.decoder, depth, 4) if depth < 2 else []}
        return {"type": kind} | {
            "ByteLevel": lambda: {"add_prefix_space": self.coin(), "trim_offsets": self.coin(), "use_regex": self.coin()},
            "Metaspace": lambda: {"replacement": "▁", "prepend_scheme": self.rng.choice(SCHEMES), "split": self.coin()},
            "Replace": lambda: {"pattern": self.pattern(), "content": self.rng.choice([" ", "", "ab"])},
            "Strip": lambda: {"content": self.rng.choice(" ae▁"), "start": self.rng.randint(0, 2),
                              "stop": self.rng.randint(0, 2)},
        }.get(kind, dict)()

    def mix(self, base):
        """A copy of the parsed tokenizer.json `base` with some of its parts drawn anew."""
        out = copy.deepcopy(base)
        ids = {token["content"]: token["id"] for token in base["added_tokens"]}
        for part, draw, chance in (("normalizer", self.normalizer, 0.35), ("pre_tokenizer", self.pre_tokenizer, 0.6),
                                   ("post_processor", lambda: self.post_processor(ids), 0.4), ("decoder", self.decoder, 0.45)):
            if self.coin(chance):
                out[part] = draw() if self.coin(0.92) else None
        model = out["model"]
        for flag in ("fuse_unk", "ignore_merges", "byte_fallback"):
            if self.coin(0.2):
                model[flag] = not model.get(flag)
        if self.coin(0.1):
            model["end_of_word_suffix"] = self.rng.choice(["</w>", "e"])
        if self.coin(0.1):
            self.mark_continuations(model)
        if self.coin(0.1):
            model["unk_token"] = self.rng.choice([None, "a", "e"])
        model["dropout"] = None
        for token in out["added_tokens"]:
            if self.coin(0.15):
                flag = self.rng.choice(["lstrip", "rstrip", "single_word", "normalized", "special"])
                token[flag] = not token[flag]
        return out

    def mark_continuations(self, model):
        """continuing_subword_prefix: "##" before every right half of a merge, so that the merges still apply."""
        merges = [m.split(" ") if isinstance(m, str) else list(m) for m in model["merges"]]
        kept, words = [], set(model["vocab"])
        for left, right in merges:
            joined = left + right
            if joined in words and left in words and right in words:
                kept.append([left, "##" + right])
        fresh = max(model["vocab"].values()) + 1
        for right in sorted({right for _, right in kept}):
            if right not in model["vocab"]:
                model["vocab"][right] = fresh
                fresh += 1
        model["merges"] = kept
        model["continuing_subword_prefix"] = "##"
