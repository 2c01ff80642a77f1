# iha_library(NAME SRCS ... [DEPS ...] [PRIVATE_DEPS ...] [NO_PCH])   static library of one folder
# iha_executable(NAME SRCS ... [DEPS ...])                            program, installed to bin/
# iha_test(NAME SRCS ... [DEPS ...] [LABELS ...] [ENV K=V ...])       one gtest binary; each TEST is a ctest test
# iha_fuzz(NAME SRCS ... [DEPS ...])                                  one libFuzzer target NAME (only when IHA_FUZZ);
#                                                                     seeds in tests/fuzz/corpus/NAME/
# DEPS are what the folder may include (DESIGN section 3): CMake's link visibility is the first check of the
# include rules, `./dev lint` the second.
include(GoogleTest)

# One precompiled header for the libraries, one for the tests: the headers that nearly every file includes.
add_library(iha_pch OBJECT "${CMAKE_SOURCE_DIR}/cmake/empty.cc")
target_link_libraries(iha_pch PUBLIC iha_options absl::status absl::statusor absl::strings absl::time fmt::fmt
                      nlohmann_json::nlohmann_json)
target_precompile_headers(iha_pch PRIVATE <algorithm> <map> <memory> <optional> <span> <string> <string_view> <vector>
                          <absl/status/statusor.h> <fmt/format.h> <nlohmann/json.hpp>)
if(IHA_TESTS)
  add_library(iha_test_pch OBJECT "${CMAKE_SOURCE_DIR}/cmake/empty.cc")
  target_link_libraries(iha_test_pch PUBLIC iha_pch GTest::gmock GTest::gtest)
  # Programs are compiled with -fPIE, objects with -fPIC; a precompiled header serves only its own kind.
  set_target_properties(iha_test_pch PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(iha_test_pch PRIVATE -fPIE)
  target_precompile_headers(iha_test_pch PRIVATE <algorithm> <map> <memory> <optional> <span> <string> <string_view>
                            <vector> <absl/status/statusor.h> <fmt/format.h> <nlohmann/json.hpp>
                            <gmock/gmock.h> <gtest/gtest.h>)
endif()

# All programs, without tests: what quickstart builds.
add_custom_target(iha_programs)

function(iha_library name)
  cmake_parse_arguments(A "NO_PCH" "" "SRCS;DEPS;PRIVATE_DEPS" ${ARGN})
  add_library(${name} STATIC ${A_SRCS})
  target_link_libraries(${name} PUBLIC iha_options absl::status absl::statusor absl::strings absl::time fmt::fmt
                        nlohmann_json::nlohmann_json ${A_DEPS} PRIVATE ${A_PRIVATE_DEPS})
  if(NOT A_NO_PCH)
    target_precompile_headers(${name} REUSE_FROM iha_pch)
  endif()
endfunction()

function(iha_executable name)
  cmake_parse_arguments(A "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${A_SRCS})
  target_link_libraries(${name} PRIVATE iha_options absl::status absl::statusor absl::strings absl::time fmt::fmt
                        nlohmann_json::nlohmann_json ${A_DEPS})
  add_dependencies(iha_programs ${name})
  install(TARGETS ${name} RUNTIME DESTINATION bin)
endfunction()

function(iha_test name)
  cmake_parse_arguments(A "" "" "SRCS;DEPS;LABELS;ENV" ${ARGN})
  add_executable(${name} ${A_SRCS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  target_link_libraries(${name} PRIVATE iha_options absl::status absl::statusor absl::strings absl::time fmt::fmt
                        nlohmann_json::nlohmann_json ${A_DEPS} GTest::gmock GTest::gtest GTest::gtest_main)
  target_precompile_headers(${name} REUSE_FROM iha_test_pch)
  set(props "TIMEOUT;600")
  if(A_LABELS)
    list(APPEND props LABELS "${A_LABELS}")
  endif()
  if(A_ENV)
    list(APPEND props ENVIRONMENT "${A_ENV}")
  endif()
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST TEST_PREFIX "${name}." WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}"
                       PROPERTIES ${props})
endfunction()

function(iha_fuzz name)
  if(NOT IHA_FUZZ)
    return()
  endif()
  cmake_parse_arguments(A "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${A_SRCS})
  target_link_libraries(${name} PRIVATE iha_options absl::status absl::statusor absl::strings absl::time fmt::fmt
                        nlohmann_json::nlohmann_json ${A_DEPS})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
endfunction()
