# SPDX-License-Identifier: Apache-2.0
# Folders that grow by adding a folder: no list of names to keep in step.

# dg_add_subfolders([EXCEPT names...]): adds every direct subfolder that has a CMakeLists.txt, in alphabetical order.
function(dg_add_subfolders)
  cmake_parse_arguments(ARG "" "" "EXCEPT" ${ARGN})
  file(GLOB lists RELATIVE "${CMAKE_CURRENT_SOURCE_DIR}" CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*/CMakeLists.txt")
  foreach(list IN LISTS lists)
    get_filename_component(folder "${list}" DIRECTORY)
    if(NOT folder IN_LIST ARG_EXCEPT)
      add_subdirectory("${folder}")
    endif()
  endforeach()
endfunction()
