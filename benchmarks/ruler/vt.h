// vt.h: chains of variable assignments in noise, which official and seeded rows of vt are both made of.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/ruler/task_rows.h"

namespace iha::benchmarks::ruler {

inline constexpr std::string_view kUpperCase = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
inline constexpr size_t kChainNames = 5;  // four hops

// "VAR A = VALUE", "VAR B = VAR A ", ...
std::vector<std::string> ChainLines(const std::vector<std::string>& names, const std::string& value);
// Noise lines with line j of the chain before noise line at[j]; `at` ascends.
void AppendChain(int64_t lines, const std::vector<std::string>& chain, const std::vector<int32_t>& at,
                 const CountedPiece& noise, CountedText& text);
struct VtChain {
  std::vector<std::string> names;
  std::string value;
  std::vector<int32_t> at;  // noise lines before which its own stand, ascending
};
// The whole prompt among `lines` lines of noise. `head`: what stands before the context.
Sample BuildVtPrompt(const std::string& head, const std::string& tail, const VtChain& chain, int64_t lines,
                     const CountedPiece& noise, TokenCounter& counter);
// {query} and {num_v} of the words behind the context.
std::string VtTail(const std::string& tail, const std::string& value);
// What stands in front of a prompt's own words: the example with its answer, behind `parts.head`'s chat half.
std::string WithExample(const std::string& head, const std::string& example);

}  // namespace iha::benchmarks::ruler
