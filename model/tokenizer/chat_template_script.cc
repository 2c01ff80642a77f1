#include "model/tokenizer/chat_template_script.h"

namespace iha::tokenizer {

// As transformers 5.24 renders: messages lose their null fields, reasoning is given under each of its names. TAIL marks
// the end of the message to be continued; the template may strip its blank, and with it what stands before.
const char kChatTemplateScript[] = R"PY(
import datetime, json, sys

def answer(**fields):
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()

TAIL = "CONTINUE_FINAL_MESSAGE_TAG "
MOST = 8000000
REASONING = ("reasoning_content", "thinking", "reasoning")
FORBIDDEN = ("open", "os.", "subprocess.", "socket.", "ctypes.", "shutil.", "pty.", "fcntl.", "mmap.")

def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

class Dict:
    def __call__(self, *args, **kwargs):
        return dict(*args, **kwargs)

    def fromkeys(self, *args, **kwargs):
        return dict.fromkeys(*args, **kwargs)

def environment(now):
    import jinja2, jinja2.constants, jinja2.debug, jinja2.ext, jinja2.nodes, jinja2.sandbox, pprint

    class Generation(jinja2.ext.Extension):
        tags = {"generation"}

        def parse(self, parser):
            line = next(parser.stream).lineno
            body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
            return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

        def _body(self, caller):
            return caller()

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    class Namespace(jinja2.utils.Namespace):
        def __init__(*args, **kwargs):
            self, args = args[0], args[1:]
            values = dict(*args, **kwargs)
            for name in values:
                Namespace.check(name)
            jinja2.utils.Namespace.__init__(self, values)

        def __setitem__(self, name, value):
            Namespace.check(name)
            jinja2.utils.Namespace.__setitem__(self, name, value)

        @staticmethod
        def check(name):
            if isinstance(name, str) and name.startswith("_"):
                raise jinja2.exceptions.SecurityError(f"a namespace cannot hold {name!r}")

    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda form: now.strftime(form)
    env.globals["dict"] = Dict()
    env.globals["namespace"] = Namespace
    return env

# Whatever gets out of Jinja's sandbox finds a process that opens, starts and reaches nothing.
def lock_up():
    def refuse(event, args):
        if event.startswith(FORBIDDEN):
            raise RuntimeError(f"a chat template must not touch the system ({event})")
    sys.addaudithook(refuse)

def prepared(message):
    message = {key: value for key, value in message.items() if value is not None}
    reasoning = next((message[key] for key in REASONING if key in message), None)
    return message if reasoning is None else {"thinking": reasoning, **message, "reasoning_content": reasoning}

# Marks the end of the text to be continued and returns that text.
def mark(message):
    content = message.get("content")
    if isinstance(content, str):
        message["content"] = content + TAIL
        return content
    for block in reversed(content if isinstance(content, list) else []):
        if isinstance(block, dict) and isinstance(block.get("text"), str):
            text = block["text"]
            block["text"] = text + TAIL
            return text
    raise ValueError("the last message has no text to continue")

def render(templates, special, messages, end, tools):
    messages = [prepared(message) for message in messages]
    open_text = mark(messages[-1]) if end == "open" else None
    template = templates["tool_use" if tools is not None and "tool_use" in templates else "default"]
    parts, size = [], 0
    for part in template.generate(messages=messages, tools=tools, documents=None,
                                  add_generation_prompt=end == "assistant", **special):
        parts.append(part)
        size += len(part)
        if size > MOST:
            raise ValueError(f"the prompt has more than {MOST} characters")
    text = "".join(parts)
    if end != "open":
        return text
    at = text.rfind(TAIL.strip())
    if at < 0 or open_text.strip() not in text:
        raise ValueError("the template leaves out the last message, which was to be continued")
    return text[:at] if text[at:at + len(TAIL)] == TAIL else text[:at].rstrip()

templates = special = None
for line in sys.stdin:
    try:
        question = json.loads(line)
        if templates is None:
            try:
                env = environment(datetime.datetime.fromisoformat(question["date"]))
            except ImportError as error:
                answer(missing=str(error))
                continue
            special = question["special_tokens"]
            loaded = {name: env.from_string(source) for name, source in question["templates"].items()}
            datetime.datetime(2000, 1, 1).strftime("%a")
            lock_up()
            templates = loaded
            answer(text="")
        else:
            answer(text=render(templates, special, question["messages"], question["end"], question["tools"]))
    except RecursionError:
        answer(error="the template nests too deep")
    except MemoryError:
        answer(error="the template needs more memory than it may have")
    except Exception as error:
        answer(error=str(error) or type(error).__name__)
)PY";

}  // namespace iha::tokenizer
