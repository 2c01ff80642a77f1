#include "model/tokenizer/chat_template_script.h"

namespace iha::tokenizer {

// TAIL marks the end of the message to be continued; the template may strip its blank, and with it what stands before.
const char kChatTemplateScript[] = R"PY(
import datetime, json, sys

def answer(**fields):
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()

TAIL = "CONTINUE_FINAL_MESSAGE_TAG "
NOW = datetime.datetime(2024, 7, 26)

def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

def environment():
    import jinja2, jinja2.ext, jinja2.nodes, jinja2.sandbox

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

    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda form: NOW.strftime(form)
    return env

def render(template, special, messages, end):
    if end == "open":
        content = messages[-1].get("content")
        if not isinstance(content, str):
            raise ValueError("the last message has no text to continue")
        messages[-1]["content"] = content + TAIL
    text = template.render(messages=messages, tools=None, documents=None,
                           add_generation_prompt=end == "assistant", **special)
    if end != "open":
        return text
    at = text.rfind(TAIL.strip())
    if at < 0:
        raise ValueError("the template leaves out the last message, which was to be continued")
    return text[:at] if text[at:at + len(TAIL)] == TAIL else text[:at].rstrip()

template = special = None
for line in sys.stdin:
    try:
        question = json.loads(line)
        if template is None:
            try:
                env = environment()
            except ImportError as error:
                answer(missing=str(error))
                continue
            special = question["special_tokens"]
            template = env.from_string(question["template"])
            answer(text="")
        else:
            answer(text=render(template, special, question["messages"], question["end"]))
    except Exception as error:
        answer(error=str(error) or type(error).__name__)
)PY";

}  // namespace iha::tokenizer
