// extract_code.h: what of a model's text is the program, by named rules. Pure, thread-safe, linear.
//
// Nothing is ever stripped of white space in front: indentation is part of a completion.
#pragma once

#include <string>
#include <string_view>

namespace iha::scoring {

enum class CodeExtraction {
  kWhole,         // "whole": all of it
  kFence,         // "fence": CodeInFence
  kFirstFence,    // "first_fence": before the first ``` (lm-evaluation-harness 0.4.13, humaneval_instruct)
  kMbppInstruct,  // "mbpp_instruct": that tool's mbpp_instruct, bug for bug
};

std::string ExtractCode(CodeExtraction rule, std::string_view text);

// For prompts that end inside a fenced block. A fence is a line that begins (behind blanks) with ```. The first one
// ends the block that the prompt opened, unless nothing but white space stands before it or it names a language: then
// the model opened one of its own, and its content is taken, to the next fence or, where none follows, to the end.
std::string CodeInFence(std::string_view text);

}  // namespace iha::scoring
