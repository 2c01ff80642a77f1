// config_json.h: a config.json of a model of type llama, written from the parsed value.
//
// The inverse of ParseModelConfig for everything that a Llama config and its block iha_eval can say: parsing the text
// gives the same FunctionBytes. Every field that decides the function is written, none is left to a class default, and
// unknown fields of the config that was read are not carried over. Pure; thread: any.
// Errors: InvalidArgument "config.json: ..." names what has no place in such a config (families whose blocks differ,
// more than one RoPE, biases on q, k, v alone); the caller can only refuse the model.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "model/checkpoint/config.h"

namespace iha::checkpoint {

// config.family is kLlama. The block iha_eval is written if has_iha_eval.
absl::StatusOr<std::string> LlamaConfigJson(const ModelConfig& config);

}  // namespace iha::checkpoint
