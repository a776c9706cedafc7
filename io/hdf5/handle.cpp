#include "io/hdf5/handle.hpp"

#include <sstream>
#include <string_view>

#include "kernels/base/log.hpp"

namespace motley::io::hdf5 {
namespace {

/// Appends one entry of HDF5's error stack to the string behind `text`.
extern "C" herr_t append_entry(unsigned depth, H5E_error2_t const* entry, void* text) noexcept {
  try {
    auto& out = *static_cast<std::string*>(text);
    if (depth != 0) out += "; ";
    out += entry->func_name;
    out += ": ";
    out += entry->desc;
    return 0;
  } catch (...) {
    return -1;
  }
}

std::string_view advice(ErrorKind kind, std::string_view stack) {
  if (stack.find("lock") != std::string_view::npos) {
    return "if another program has the file open, end it; if the file system has no locks, set "
           "HDF5_USE_FILE_LOCKING=FALSE in the environment";
  }
  switch (kind) {
    case ErrorKind::write:
      return "check free space, quota and permissions there";
    case ErrorKind::checkpoint:
      return "the file is damaged, cut short or not a checkpoint; use another one";
    default:
      return "check that the path is right and the file is whole, or build it again";
  }
}

}  // namespace

void throw_hdf5_error(Subject const& subject, ErrorSite site) {
  std::string stack;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, append_entry, &stack);
  H5Eclear2(H5E_DEFAULT);
  std::string_view const call{site.expression};
  std::ostringstream message;
  message << "HDF5 call " << call.substr(0, call.find('(')) << " did not succeed on \""
          << subject.file << "\"";
  if (!subject.object.empty()) message << ", \"" << subject.object << "\"";
  message << " (" << (stack.empty() ? "HDF5 gives no reason" : stack) << "); "
          << advice(subject.kind, stack);
  throw Error{subject.kind, message.str(), site};
}

int descriptor_of(hid_t file, Subject const& subject) {
  void* descriptor = nullptr;
  MOTLEY_HDF5_CHECK(subject, H5Fget_vfd_handle(file, H5P_DEFAULT, &descriptor));
  return *static_cast<int const*>(descriptor);
}

void start_hdf5() noexcept {
  H5dont_atexit();
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

void report_unclosed(hid_t id) noexcept {
  try {
    MOTLEY_LOG_LOCAL(error) << "HDF5 could not close handle " << id
                            << " (what was written through it may not be in the file)";
  } catch (...) {
    return;  // there is no memory for a log line; the file is what it is
  }
}

}  // namespace motley::io::hdf5
