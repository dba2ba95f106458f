# What every target of this project is compiled with.

# Contraction into fused multiply-adds is off everywhere: the same source must round alike on the host
# and on the GPU, and from compiler to compiler.
# Suppressed in CUDA code: a template that host lanes and a warp share calls host functions when it is
# instantiated for the host's lanes.
function(coccl_target_options target)
  set(warnings -Wall -Wextra -Wshadow)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # GCC 12 sees an overlap in every `"literal" + string` that it inlines.
    list(APPEND warnings -Wno-restrict)
  endif()
  target_compile_options(
    ${target}
    PRIVATE $<$<COMPILE_LANGUAGE:CXX>:${warnings};-Wpedantic;-ffp-contract=off>
            $<$<COMPILE_LANGUAGE:CUDA>:--fmad=false;--expt-relaxed-constexpr;-diag-suppress=20011,20014;-Xcompiler=-ffp-contract=off>
            # No -Wpedantic here: what nvcc hands to the host compiler has line markers of its own.
            "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:$<LIST:TRANSFORM,${warnings},PREPEND,-Xcompiler=>>")
  target_compile_definitions(${target} PRIVATE COCCL_HAS_CUDA=${COCCL_HAS_CUDA})
  if(COCCL_HAS_CUDA)
    target_include_directories(${target} SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS} ${COCCL_NCCL_INCLUDE_DIR})
  endif()
  set_target_properties(
    ${target}
    PROPERTIES CXX_EXTENSIONS OFF
               CUDA_STANDARD 20
               CUDA_STANDARD_REQUIRED ON
               CUDA_RUNTIME_LIBRARY Static
               POSITION_INDEPENDENT_CODE ON
               CXX_VISIBILITY_PRESET hidden
               CUDA_VISIBILITY_PRESET hidden
               VISIBILITY_INLINES_HIDDEN ON)
endfunction()

# A shared coccl exports its own names and none of what is linked into it (the CUDA runtime above all:
# a process may hold another one).
function(coccl_export_only_coccl target)
  set(script ${PROJECT_SOURCE_DIR}/cmake/exports.map)
  set_target_properties(
    ${target} PROPERTIES CXX_VISIBILITY_PRESET default CUDA_VISIBILITY_PRESET default VISIBILITY_INLINES_HIDDEN OFF
                         LINK_DEPENDS ${script})
  target_link_options(${target} PRIVATE LINKER:--version-script=${script})
endfunction()
