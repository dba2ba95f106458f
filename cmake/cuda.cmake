# Decides whether the CUDA parts are built.
#
# Sets COCCL_HAS_CUDA (1 or 0). With 1 the CUDA language is on and COCCL_NCCL_INCLUDE_DIR holds nccl.h;
# its version is COCCL_NCCL_VERSION. NCCL itself is loaded at run time and never linked.
set(oldest_nccl 2.28)

set(COCCL_NCCL_INCLUDE_DIR "" CACHE PATH "Folder of nccl.h")
set(COCCL_HAS_CUDA 0)
set(left_out "")

# Site folders of the active Python, where NVIDIA's wheels put their headers. An isolated build runs
# with a path of its own, so the environment that asked for the build is looked at as well.
function(coccl_python_site_folders result)
  find_program(python NAMES python3 python HINTS $ENV{VIRTUAL_ENV}/bin NO_CACHE)
  set(ask
      "import os, site, sys, sysconfig; paths = sysconfig.get_paths(); "
      "print(';'.join([paths['purelib'], paths['platlib'], site.getusersitepackages(), *filter(None, sys.path)]))")
  string(CONCAT ask ${ask})
  set(folders "")
  foreach(interpreter IN ITEMS "${Python_EXECUTABLE}" "${python}")
    if(interpreter)
      execute_process(
        COMMAND ${interpreter} -c "${ask}"
        OUTPUT_VARIABLE answer OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
      list(APPEND folders ${answer})
    endif()
  endforeach()
  if(DEFINED ENV{VIRTUAL_ENV})
    file(GLOB venv $ENV{VIRTUAL_ENV}/lib/python3*/site-packages)
    list(APPEND folders ${venv})
  endif()
  list(REMOVE_DUPLICATES folders)
  set(${result} ${folders} PARENT_SCOPE)
endfunction()

function(coccl_find_nccl_header)
  if(COCCL_NCCL_INCLUDE_DIR)
    if(NOT EXISTS ${COCCL_NCCL_INCLUDE_DIR}/nccl.h)
      message(FATAL_ERROR "COCCL_NCCL_INCLUDE_DIR=${COCCL_NCCL_INCLUDE_DIR} holds no nccl.h")
    endif()
  else()
    coccl_python_site_folders(site_folders)
    list(TRANSFORM site_folders APPEND /nvidia/nccl/include)
    find_path(
      found nccl.h NO_CACHE
      PATHS ${CUDAToolkit_INCLUDE_DIRS} /usr/include /usr/local/include ${site_folders}
      NO_DEFAULT_PATH)
    find_path(found nccl.h NO_CACHE)
    if(NOT found)
      return()
    endif()
    # Not kept in the cache: it may lie in an environment that is gone when CMake runs next.
    set(COCCL_NCCL_INCLUDE_DIR ${found})
  endif()
  file(STRINGS ${COCCL_NCCL_INCLUDE_DIR}/nccl.h lines REGEX "^#define NCCL_(MAJOR|MINOR|PATCH) [0-9]+$")
  list(TRANSFORM lines REPLACE "^.* " "")
  list(JOIN lines . version)
  set(COCCL_NCCL_INCLUDE_DIR ${COCCL_NCCL_INCLUDE_DIR} PARENT_SCOPE)
  set(COCCL_NCCL_VERSION ${version} PARENT_SCOPE)
endfunction()

if(NOT COCCL_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "COCCL_CUDA=${COCCL_CUDA}: must be AUTO, ON or OFF")
endif()
if(COCCL_CUDA STREQUAL "OFF")
  set(left_out "COCCL_CUDA=OFF")
else()
  include(CheckLanguage)
  check_language(CUDA)
  find_package(CUDAToolkit QUIET)
  coccl_find_nccl_header()
  if(NOT CMAKE_CUDA_COMPILER)
    set(left_out "no working nvcc was found (set CUDACXX to name one)")
  elseif(NOT CUDAToolkit_FOUND)
    set(left_out "no CUDA toolkit was found beside ${CMAKE_CUDA_COMPILER}")
  elseif(NOT COCCL_NCCL_VERSION)
    set(left_out "nccl.h was not found (install nvidia-nccl-cu${CUDAToolkit_VERSION_MAJOR} or set COCCL_NCCL_INCLUDE_DIR)")
  elseif(COCCL_NCCL_VERSION VERSION_LESS oldest_nccl)
    set(left_out "${COCCL_NCCL_INCLUDE_DIR}/nccl.h is of NCCL ${COCCL_NCCL_VERSION}, older than ${oldest_nccl}")
  else()
    set(COCCL_HAS_CUDA 1)
  endif()
  if(COCCL_CUDA STREQUAL "ON" AND NOT COCCL_HAS_CUDA)
    message(FATAL_ERROR "COCCL_CUDA=ON, but ${left_out}")
  endif()
endif()

if(COCCL_HAS_CUDA)
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
    set(CMAKE_CUDA_ARCHITECTURES "80;90")
  endif()
  enable_language(CUDA)
  message(STATUS "coccl: with CUDA ${CMAKE_CUDA_COMPILER_VERSION} for ${CMAKE_CUDA_ARCHITECTURES}, "
                 "NCCL ${COCCL_NCCL_VERSION} headers in ${COCCL_NCCL_INCLUDE_DIR}")
else()
  message(NOTICE "-- coccl: host build; left out: CUDA kernels and the NCCL transport, since ${left_out}")
endif()
