# Compiler settings that every target of ours shares (interface target iha_options).
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

find_program(IHA_CCACHE ccache)
if(IHA_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${IHA_CCACHE}")
  set(CMAKE_C_COMPILER_LAUNCHER "${IHA_CCACHE}")
  set(CMAKE_CUDA_COMPILER_LAUNCHER "${IHA_CCACHE}")
endif()

# A fresh linker for a tree with many small test binaries: lld links each in a fraction of a second.
find_program(IHA_LLD ld.lld)
if(IHA_LLD)
  add_link_options(-fuse-ld=lld)
endif()

add_library(iha_options INTERFACE)
target_include_directories(iha_options INTERFACE "${CMAKE_SOURCE_DIR}" "${CMAKE_BINARY_DIR}")
# What compilers later than those of our tests (Debian 12's) warn about is no error.
set(werror -Werror)
if((CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
   OR (CMAKE_CXX_COMPILER_ID MATCHES Clang AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 15))
  set(werror)
endif()
# No contraction: which multiply-adds fuse is written in the source, so that bits don't depend on the compiler's mood.
target_compile_options(iha_options INTERFACE -ffp-contract=off -Wall -Wextra ${werror} -Wshadow -Wnon-virtual-dtor)
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  target_compile_options(iha_options INTERFACE -Wthread-safety)
else()
  # GCC 12 reports these two inside inlined library code.
  target_compile_options(iha_options INTERFACE -Wno-maybe-uninitialized -Wno-restrict)
endif()
if(IHA_SANITIZE)
  add_compile_options(-fsanitize=${IHA_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${IHA_SANITIZE})
endif()
if(IHA_SANITIZE MATCHES thread)
  # Debian's Abseil is not built with ThreadSanitizer: common/tsan_mutex.cc tells it of every absl::Mutex call of ours.
  add_library(iha_tsan_mutex STATIC "${CMAKE_SOURCE_DIR}/common/tsan_mutex.cc")
  target_link_libraries(iha_tsan_mutex PUBLIC absl::synchronization absl::time)
  target_link_libraries(iha_options INTERFACE iha_tsan_mutex)
  foreach(name 5Mutex4LockEv 5Mutex6UnlockEv 5Mutex7TryLockEv 5Mutex10ReaderLockEv 5Mutex12ReaderUnlockEv 5MutexD1Ev
          5Mutex8LockWhenERKNS0_9ConditionE 5Mutex5AwaitERKNS0_9ConditionE
          5Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE 5Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE
          7CondVar4WaitEPNS0_5MutexE 7CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE
          7CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE)
    add_link_options("LINKER:--wrap=_ZN4absl7debian3${name}")
  endforeach()
endif()
