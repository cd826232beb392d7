// SPDX-License-Identifier: Apache-2.0
// Reads what the loader reads: program headers, the dynamic table and what it points to, by address. Section headers
// say nothing about what happens at loading.
#include "runtime/device/host/ObjectFile.h"

#include "runtime/abi/KernelAbi.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <vector>

#include <elf.h>

namespace dg {

namespace {

constexpr uint64_t pageBytes = 4096;
constexpr size_t mostHeaders = 64;

class ObjectReader {
public:
  ObjectReader(std::span<const std::byte> bytes, const std::string &name) : bytes(bytes), name(name) {}

  Status check() {
    DG_RETURN_IF_ERROR(readHeader());
    DG_RETURN_IF_ERROR(readSegments());
    DG_RETURN_IF_ERROR(readDynamic());
    DG_RETURN_IF_ERROR(readSymbols());
    DG_RETURN_IF_ERROR(checkTables());
    DG_RETURN_IF_ERROR(checkRelocations(DT_RELA, DT_RELASZ));
    DG_RETURN_IF_ERROR(checkRelocations(DT_JMPREL, DT_PLTRELSZ));
    DG_RETURN_IF_ERROR(checkRelative());
    return checkVersion();
  }

private:
  Status refuse(std::string_view why) const {
    return Status::error(ErrorKind::badInput, "object '{}' cannot be loaded: {}; compile the job again with this dgc",
                         name, why);
  }

  template <typename T> std::optional<T> at(uint64_t offset) const {
    if (offset > bytes.size() || sizeof(T) > bytes.size() - offset)
      return std::nullopt;
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof(T));
    return value;
  }

  /// What lies at an address once the object is loaded; nothing if that is not all from the file.
  template <typename T> std::optional<T> atAddress(uint64_t address, uint64_t index = 0) const {
    uint64_t start = 0;
    if (__builtin_mul_overflow(index, sizeof(T), &start) || __builtin_add_overflow(address, start, &start))
      return std::nullopt;
    for (const Elf64_Phdr &segment : segments)
      if (start >= segment.p_vaddr && start - segment.p_vaddr < segment.p_filesz &&
          sizeof(T) <= segment.p_filesz - (start - segment.p_vaddr))
        return at<T>(segment.p_offset + (start - segment.p_vaddr));
    return std::nullopt;
  }

  /// Whether all of a table comes from the file and stays as it is: a relocation that wrote there could make another
  /// table than the one that was checked.
  bool isFixed(uint64_t address, uint64_t size) const {
    return std::any_of(segments.begin(), segments.end(), [&](const Elf64_Phdr &segment) {
      return !(segment.p_flags & PF_W) && address >= segment.p_vaddr && address - segment.p_vaddr <= segment.p_filesz &&
             size <= segment.p_filesz - (address - segment.p_vaddr);
    });
  }

  Status readHeader() {
    auto found = at<Elf64_Ehdr>(0);
    if (!found || std::memcmp(found->e_ident, ELFMAG, SELFMAG) != 0)
      return refuse("no ELF file");
    if (found->e_ident[EI_CLASS] != ELFCLASS64 || found->e_ident[EI_DATA] != ELFDATA2LSB ||
        found->e_machine != EM_X86_64 || found->e_type != ET_DYN)
      return refuse("no shared object for x86-64");
    if (found->e_phentsize != sizeof(Elf64_Phdr) || found->e_phnum > mostHeaders)
      return refuse("its program headers are not as dgc writes them");
    header = *found;
    return Status::ok();
  }

  Status readSegments() {
    bool hasPlainStack = false;
    for (size_t i = 0; i < header.e_phnum; ++i) {
      auto segment = at<Elf64_Phdr>(header.e_phoff + i * sizeof(Elf64_Phdr));
      if (!segment)
        return refuse("it is cut off");
      switch (segment->p_type) {
      case PT_LOAD:
        DG_RETURN_IF_ERROR(addSegment(*segment));
        break;
      case PT_DYNAMIC:
        if (dynamic)
          return refuse("it has two dynamic tables");
        dynamic = segment->p_vaddr;
        dynamicBytes = segment->p_filesz;
        parts.push_back(*segment);
        break;
      case PT_GNU_STACK:
        hasPlainStack = !(segment->p_flags & PF_X);
        break;
      case PT_PHDR:
      case PT_GNU_EH_FRAME:
      case PT_GNU_RELRO:
        parts.push_back(*segment);
        break;
      case PT_NULL:
        break;
      default:
        return refuse(fmt::format("it has a segment of type {:#x}, which kernels do not need", segment->p_type));
      }
    }
    if (!hasPlainStack)
      return refuse("it asks for a stack that can be executed");
    if (!dynamic)
      return refuse("it has no dynamic table");
    return checkParts();
  }

  /// What lies inside of a loaded segment, where the loader reads, or changes what may be written, by address.
  Status checkParts() const {
    for (const Elf64_Phdr &part : parts) {
      const bool isInside = std::any_of(segments.begin(), segments.end(), [&](const Elf64_Phdr &segment) {
        const bool fits = part.p_vaddr >= segment.p_vaddr && part.p_vaddr - segment.p_vaddr <= segment.p_memsz &&
                          part.p_memsz <= segment.p_memsz - (part.p_vaddr - segment.p_vaddr);
        // The loader writes addresses to the dynamic table, and takes the right to write away from what is RELRO.
        const bool isWritten = part.p_type == PT_DYNAMIC || part.p_type == PT_GNU_RELRO;
        const bool isPlace =
            part.p_type == PT_GNU_RELRO || part.p_offset - segment.p_offset == part.p_vaddr - segment.p_vaddr;
        return fits && isPlace && isWritten == bool(segment.p_flags & PF_W);
      });
      if (!isInside)
        return refuse(fmt::format("its part of type {:#x} lies outside of its memory", part.p_type));
      if (part.p_type == PT_PHDR && part.p_offset != header.e_phoff)
        return refuse("it has two tables of segments");
    }
    return Status::ok();
  }

  /// In ascending order and page by page apart: which of two mappings an address is of needs no answer.
  Status addSegment(const Elf64_Phdr &segment) {
    constexpr uint64_t mostBytes = uint64_t(1) << 40;
    if (segment.p_offset > bytes.size() || segment.p_filesz > bytes.size() - segment.p_offset)
      return refuse("it is cut off");
    if (segment.p_filesz > segment.p_memsz || segment.p_memsz > mostBytes || segment.p_vaddr > mostBytes ||
        segment.p_vaddr % pageBytes != segment.p_offset % pageBytes)
      return refuse("a segment does not fit its memory");
    if (!(segment.p_flags & PF_R))
      return refuse("a segment cannot be read");
    if ((segment.p_flags & PF_W) && (segment.p_flags & PF_X))
      return refuse("a segment is both writable and executable");
    if (!segments.empty()) {
      const Elf64_Phdr &last = segments.back();
      if (segment.p_vaddr / pageBytes * pageBytes < last.p_vaddr + last.p_memsz)
        return refuse("its segments overlap");
    }
    segments.push_back(segment);
    return Status::ok();
  }

  Status readDynamic() {
    for (uint64_t i = 0;; ++i) {
      auto entry = i < dynamicBytes / sizeof(Elf64_Dyn) ? atAddress<Elf64_Dyn>(*dynamic, i) : std::nullopt;
      if (!entry)
        return refuse("its dynamic table has no end");
      if (entry->d_tag == DT_NULL)
        return Status::ok();
      DG_RETURN_IF_ERROR(checkTag(*entry));
      if (!table.emplace(entry->d_tag, entry->d_un.d_val).second)
        return refuse("its dynamic table says a thing twice");
    }
  }

  Status checkTag(const Elf64_Dyn &entry) const {
    const uint64_t value = entry.d_un.d_val;
    switch (entry.d_tag) {
    case DT_HASH:
    case DT_STRTAB:
    case DT_SYMTAB:
    case DT_STRSZ:
    case DT_SONAME:
    case DT_RELA:
    case DT_RELASZ:
    case DT_RELACOUNT:
    case DT_JMPREL:
    case DT_PLTRELSZ:
    case DT_PLTGOT:
    case DT_BIND_NOW:
      return Status::ok();
    case DT_SYMENT: // the loader ends the process at other sizes
      return value == sizeof(Elf64_Sym) ? Status::ok() : refuse("its symbols have another size");
    case DT_RELAENT:
      return value == sizeof(Elf64_Rela) ? Status::ok() : refuse("its relocations have another size");
    case DT_PLTREL:
      return value == DT_RELA ? Status::ok() : refuse("its relocations are of another kind");
    case DT_FLAGS:
      return (value & ~uint64_t(DF_BIND_NOW)) == 0 ? Status::ok()
                                                   : refuse("it asks the loader for more than kernels need");
    case DT_FLAGS_1:
      return (value & ~uint64_t(DF_1_NOW)) == 0 ? Status::ok()
                                                : refuse("it asks the loader for more than kernels need");
    case DT_INIT:
    case DT_INIT_ARRAY:
    case DT_INIT_ARRAYSZ:
    case DT_PREINIT_ARRAY:
    case DT_PREINIT_ARRAYSZ:
      return refuse("it has a constructor, which would run when it is loaded");
    case DT_FINI:
    case DT_FINI_ARRAY:
    case DT_FINI_ARRAYSZ:
      return refuse("it has a destructor, which would run when it is unloaded");
    case DT_NEEDED:
    case DT_AUXILIARY:
    case DT_FILTER:
    case DT_RPATH:
    case DT_RUNPATH:
      return refuse("it would load other libraries");
    default:
      return refuse(fmt::format("its dynamic table has the tag {:#x}, which kernels do not need", entry.d_tag));
    }
  }

  /// The table by which the loader finds names also says how many symbols there are.
  Status readSymbols() {
    for (int64_t needed : {DT_HASH, DT_SYMTAB, DT_STRTAB, DT_STRSZ, DT_SYMENT})
      if (!table.contains(needed))
        return refuse("it has no table of symbols");
    const uint64_t hash = table[DT_HASH], names = table[DT_STRTAB], nameBytes = table[DT_STRSZ];
    if (nameBytes == 0 || !isFixed(names, nameBytes) || atAddress<char>(names, nameBytes - 1) != '\0')
      return refuse("its table of names is damaged");
    if (auto own = table.find(DT_SONAME); own != table.end() && own->second >= nameBytes)
      return refuse("its name is not in its table of names");
    auto numBuckets = atAddress<uint32_t>(hash), numChains = atAddress<uint32_t>(hash, 1);
    if (!numBuckets || !numChains || *numBuckets == 0)
      return refuse("its table of symbols is damaged");
    constexpr uint64_t headWords = 2;
    const uint64_t numWords = headWords + *numBuckets + *numChains;
    if (!isFixed(hash, numWords * sizeof(uint32_t)) || !isFixed(table[DT_SYMTAB], *numChains * sizeof(Elf64_Sym)))
      return refuse("its table of symbols is damaged");
    for (uint64_t i = headWords; i < numWords; ++i)
      if (auto next = atAddress<uint32_t>(hash, i); !next || *next >= std::max(*numChains, 1u))
        return refuse("its table of symbols is damaged");
    if (!doChainsEnd(hash, *numBuckets, *numChains))
      return refuse("its table of symbols has no end");
    for (uint64_t i = 0; i < *numChains; ++i) {
      auto symbol = atAddress<Elf64_Sym>(table[DT_SYMTAB], i);
      if (!symbol || symbol->st_name >= nameBytes)
        return refuse("its table of symbols is damaged");
      switch (ELF64_ST_TYPE(symbol->st_info)) {
      case STT_NOTYPE:
      case STT_OBJECT:
      case STT_FUNC:
      case STT_SECTION:
      case STT_FILE:
        break;
      case STT_GNU_IFUNC:
        return refuse("it has an indirect function, which would run when it is loaded");
      default:
        return refuse("it has a symbol of a kind that kernels do not need");
      }
      symbols.push_back(*symbol);
    }
    return Status::ok();
  }

  /// The loader takes one entry to say that another is there, and two tables with one end for a table and its part.
  Status checkTables() const {
    if (table.contains(DT_RELA) != table.contains(DT_RELAENT) || table.contains(DT_JMPREL) != table.contains(DT_PLTREL))
      return refuse("its relocations are damaged");
    auto valueOf = [&](int64_t tag) { return table.contains(tag) ? table.at(tag) : 0; };
    const uint64_t plain = valueOf(DT_RELA), calls = valueOf(DT_JMPREL);
    if (table.contains(DT_RELA) && table.contains(DT_JMPREL) &&
        !(plain < calls ? valueOf(DT_RELASZ) <= calls - plain : valueOf(DT_PLTRELSZ) <= plain - calls))
      return refuse("its tables of relocations overlap");
    return Status::ok();
  }

  /// Each symbol is in at most one chain, once: who looks for a name comes to an end.
  bool doChainsEnd(uint64_t hash, uint32_t numBuckets, uint32_t numChains) const {
    constexpr uint64_t headWords = 2;
    std::vector<bool> seen(numChains);
    for (uint32_t bucket = 0; bucket < numBuckets; ++bucket)
      for (uint32_t i = *atAddress<uint32_t>(hash, headWords + bucket); i != STN_UNDEF;
           i = *atAddress<uint32_t>(hash, headWords + numBuckets + i)) {
        if (i >= numChains || seen[i])
          return false;
        seen[i] = true;
      }
    return true;
  }

  Status checkRelocations(int64_t where, int64_t size) const {
    auto first = table.find(where), length = table.find(size);
    if (first == table.end() || length == table.end())
      return first == table.end() && length == table.end() ? Status::ok() : refuse("its relocations are damaged");
    if (length->second % sizeof(Elf64_Rela) != 0 || !isFixed(first->second, length->second))
      return refuse("its relocations are damaged");
    for (uint64_t i = 0; i < length->second / sizeof(Elf64_Rela); ++i) {
      auto one = atAddress<Elf64_Rela>(first->second, i);
      if (!one || ELF64_R_SYM(one->r_info) >= std::max<size_t>(symbols.size(), 1))
        return refuse("its relocations are damaged");
      switch (ELF64_R_TYPE(one->r_info)) {
      case R_X86_64_NONE:
      case R_X86_64_64:
      case R_X86_64_GLOB_DAT:
      case R_X86_64_JUMP_SLOT:
      case R_X86_64_RELATIVE:
        break;
      case R_X86_64_IRELATIVE:
        return refuse("it has an indirect function, which would run when it is loaded");
      default:
        return refuse("it has a relocation of a kind that kernels do not need");
      }
      if (!isWritable(one->r_offset) || isInDynamic(one->r_offset))
        return refuse("a relocation would write outside of its data");
    }
    return Status::ok();
  }

  /// The loader takes so many of the first to be plain, and ends the process where one is not.
  Status checkRelative() const {
    auto count = table.find(DT_RELACOUNT), first = table.find(DT_RELA), length = table.find(DT_RELASZ);
    if (count == table.end())
      return Status::ok();
    if (first == table.end() || count->second > length->second / sizeof(Elf64_Rela))
      return refuse("its relocations are damaged");
    for (uint64_t i = 0; i < count->second; ++i)
      if (auto one = atAddress<Elf64_Rela>(first->second, i); !one || ELF64_R_TYPE(one->r_info) != R_X86_64_RELATIVE)
        return refuse("its relocations are damaged");
    return Status::ok();
  }

  /// The dynamic table, which the loader goes on reading.
  bool isInDynamic(uint64_t address) const {
    return address + sizeof(uint64_t) > *dynamic && address < *dynamic + dynamicBytes;
  }

  bool isWritable(uint64_t address) const {
    return std::any_of(segments.begin(), segments.end(), [&](const Elf64_Phdr &segment) {
      return (segment.p_flags & PF_W) && address >= segment.p_vaddr && address - segment.p_vaddr < segment.p_memsz &&
             sizeof(uint64_t) <= segment.p_memsz - (address - segment.p_vaddr);
    });
  }

  bool isNamed(const Elf64_Sym &symbol, std::string_view wanted) const {
    const uint64_t text = table.at(DT_STRTAB) + symbol.st_name;
    for (size_t i = 0; i <= wanted.size(); ++i)
      if (auto letter = atAddress<char>(text, i); !letter || *letter != (i < wanted.size() ? wanted[i] : '\0'))
        return false;
    return true;
  }

  Status checkVersion() const {
    for (const Elf64_Sym &symbol : symbols) {
      if (symbol.st_shndx == SHN_UNDEF || !isNamed(symbol, DG_ABI_VERSION_SYMBOL))
        continue;
      auto version = atAddress<uint32_t>(symbol.st_value);
      if (version && *version == DG_ABI_VERSION)
        return Status::ok();
      return Status::error(ErrorKind::badInput,
                           "object '{}' has kernel ABI version {}, expected {}; compile the job again with this dgc",
                           name, version.value_or(0), DG_ABI_VERSION);
    }
    return Status::error(ErrorKind::badInput,
                         "object '{}' has no symbol '{}': it was not made by dgc; compile the job again with this dgc",
                         name, DG_ABI_VERSION_SYMBOL);
  }

  std::span<const std::byte> bytes;
  const std::string &name;
  Elf64_Ehdr header{};
  std::vector<Elf64_Phdr> segments; ///< those that are loaded
  std::vector<Elf64_Phdr> parts;    ///< those that say what lies in them
  std::optional<uint64_t> dynamic;
  uint64_t dynamicBytes = 0;
  std::map<int64_t, uint64_t> table;
  std::vector<Elf64_Sym> symbols;
};

} // namespace

Status checkObject(std::span<const std::byte> bytes, const std::string &name) {
  return ObjectReader(bytes, name).check();
}

} // namespace dg
