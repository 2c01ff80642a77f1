// positions.h: how much of a model's context a request takes: the rule of the engine and of whoever plans for it. Pure.
#pragma once

#include <cstdint>

namespace iha::engine {

// Of a prompt and `more` tokens, drawn or scored behind it: all but the last, which is never computed.
inline int64_t PositionsOf(int64_t prompt_tokens, int64_t more) { return prompt_tokens + more - 1; }

}  // namespace iha::engine
