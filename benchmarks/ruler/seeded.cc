#include <fmt/format.h>

#include "benchmarks/ruler/task_rows.h"
#include "common/errors.h"

namespace iha::benchmarks::ruler {

absl::Status DoesNotFit(const TaskContext& context, int64_t tokens, int64_t size, std::string_view unit) {
  const int64_t least = tokens + context.task->tokens_to_generate + context.reserved;
  return InvalidArgument("the smallest sample ({} {}) takes {} tokens, {} to generate included; it may take {}", size,
                         unit, least, context.task->tokens_to_generate, context.length);
}

}  // namespace iha::benchmarks::ruler
