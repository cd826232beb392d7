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
# Hardened; sanitizers bring checks of their own. Kernels that dgc generates are made without these flags. The C runtime of
# Debian 12 is not marked for CET, so that the linker has to be told.
set(DG_PLAIN_CODE -fno-stack-protector -U_FORTIFY_SOURCE) # for what must need no library, as those kernels
if(NOT DG_SANITIZE)
  add_compile_options(-fstack-protector-strong -fstack-clash-protection)
  # What is undefined by an empty list's null pointer (memcpy of nothing) must not remove the tests of that pointer.
  add_compile_options(-fno-delete-null-pointer-checks)
  if(CMAKE_BUILD_TYPE MATCHES "^Rel")
    add_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2) # needs an optimised build
  endif()
  add_link_options(-Wl,-z,relro,-z,now)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    add_compile_options(-fcf-protection=full)
    list(APPEND DG_PLAIN_CODE -fcf-protection=none)
    add_link_options($<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-Wl,-z,shstk>)
  endif()
endif()
# The build id is by what dgc knows code in its cache that this very compiler made.
add_link_options(-fuse-ld=lld-19 -Wl,--build-id)
