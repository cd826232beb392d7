# SPDX-License-Identifier: Apache-2.0
# Language level, warnings, sanitizers, linker and compiler cache: everything that is the same for every target.
option(DG_ASSERTIONS "Keep assertions in optimised builds" OFF)
option(DG_BUILD_COMPILER "Build dgc and all that needs MLIR" ON)
option(DG_BUILD_TESTS "Build the tests" ON)
set(DG_SANITIZE "" CACHE STRING "Sanitizers, as -fsanitize= takes them")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")

find_program(DG_CCACHE ccache)
if(DG_CCACHE)
  # Precompiled headers need the sloppiness; paths relative to the root let clones share results. See ccache's manual.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 CCACHE_PCH_EXTSUM=1
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${DG_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()

add_compile_options(-Wall -Wextra -Wno-unused-parameter -fno-strict-aliasing)
# clang reports std::stable_sort of libstdc++ 12, which calls std::get_temporary_buffer inside.
add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-deprecated-declarations>)
add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Xclang> $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-fno-pch-timestamp>)
if(DG_ASSERTIONS)
  string(REPLACE "-DNDEBUG" "" CMAKE_CXX_FLAGS_RELWITHDEBINFO "${CMAKE_CXX_FLAGS_RELWITHDEBINFO}")
endif()
if(DG_SANITIZE)
  if(DG_SANITIZE MATCHES undefined)
    # MLIR is built without run-time type information, and inline code of libraries is compiled both ways.
    set(no_vptr -fno-sanitize=vptr)
  endif()
  add_compile_options(-fsanitize=${DG_SANITIZE} ${no_vptr} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${DG_SANITIZE})
endif()
# The build id is by what dgc knows code in its cache that this very compiler made.
add_link_options(-fuse-ld=lld-19 -Wl,--build-id)
