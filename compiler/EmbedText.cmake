# SPDX-License-Identifier: Apache-2.0
# Writes OUTPUT, a C++ source that holds the text of FILES as dg::compiler::opPages.
set(source "// SPDX-License-Identifier: Apache-2.0\n// Made by EmbedText.cmake from docs/reference.\n")
string(APPEND source "#include \"compiler/OpPages.h\"\n\nconst char *const dg::compiler::opPages =\n")
separate_arguments(FILES)
foreach(file ${FILES})
  file(READ "${file}" text)
  string(APPEND source "R\"~page~(${text})~page~\"\n")
endforeach()
file(WRITE "${OUTPUT}" "${source};\n")
