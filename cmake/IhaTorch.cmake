# Target `iha_torch`: LibTorch from .deps/ (or -DIHA_TORCH_ROOT), defined only when `./dev deps build` has put it there. Link it only from
# model/ and worker/engine (DESIGN section 3).
#
# Written by hand because Torch's own CMake package stops without a CUDA toolkit. Its include folder also holds an old
# protobuf and a newer fmt: -idirafter keeps them behind ours. Torch exceptions stay inside the file that calls Torch.
set(IHA_TORCH_ROOT "${CMAKE_SOURCE_DIR}/.deps/libtorch" CACHE PATH
  "LibTorch 2.11.0: lib/ and include/ (site-packages/torch of a host with CUDA serves --device cuda)")
if(EXISTS "${IHA_TORCH_ROOT}/lib/libtorch_cpu.so")
  add_library(iha_torch_c10 SHARED IMPORTED GLOBAL)
  set_target_properties(iha_torch_c10 PROPERTIES IMPORTED_LOCATION "${IHA_TORCH_ROOT}/lib/libc10.so")
  add_library(iha_torch_cpu SHARED IMPORTED GLOBAL)
  # libtorch_cpu.so names libcudart and libcupti and finds them by its own run path (../../nvidia/cu13/lib); the linker
  # has to be told the same.
  set_target_properties(iha_torch_cpu PROPERTIES IMPORTED_LOCATION "${IHA_TORCH_ROOT}/lib/libtorch_cpu.so")
  add_library(iha_torch INTERFACE)
  target_link_libraries(iha_torch INTERFACE iha_torch_cpu iha_torch_c10 Threads::Threads)
  target_compile_definitions(iha_torch INTERFACE _GLIBCXX_USE_CXX11_ABI=1)
  target_compile_options(iha_torch INTERFACE
    "SHELL:-idirafter ${IHA_TORCH_ROOT}/include"
    "SHELL:-idirafter ${IHA_TORCH_ROOT}/include/torch/csrc/api/include")
  target_link_options(iha_torch INTERFACE "LINKER:-rpath-link,${IHA_TORCH_ROOT}/../nvidia/cu13/lib")
endif()
# Target `iha_torch_cuda`: its CUDA part as well. The libraries behind it (cuBLAS, cuDNN, NCCL ..) are found when it is
# loaded, by its own run path; they are not needed to link. Headers of CUDA's runtime: iha_cudart.
if(EXISTS "${IHA_TORCH_ROOT}/lib/libtorch_cuda.so" AND TARGET iha_torch)
  foreach(part torch_cuda c10_cuda)
    add_library(iha_torch_${part} SHARED IMPORTED GLOBAL)
    set_target_properties(iha_torch_${part} PROPERTIES IMPORTED_LOCATION "${IHA_TORCH_ROOT}/lib/lib${part}.so")
  endforeach()
  add_library(iha_torch_cuda INTERFACE)
  # Its kernels register themselves when it is loaded: needed even where no symbol of it is used.
  target_link_libraries(iha_torch_cuda INTERFACE iha_torch -Wl,--no-as-needed iha_torch_torch_cuda -Wl,--as-needed
                        iha_torch_c10_cuda)
  target_link_options(iha_torch_cuda INTERFACE LINKER:--allow-shlib-undefined)
endif()
