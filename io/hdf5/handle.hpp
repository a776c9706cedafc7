#pragma once

#include <string>

#include <hdf5.h>

#include "kernels/base/error.hpp"
#include "kernels/base/unique_handle.hpp"

namespace motley::io::hdf5 {

/// What a call works on, for its message, and the kind of Error if it does not succeed.
struct Subject {
  std::string file;
  std::string object;  ///< data set or attribute inside it; may be empty
  ErrorKind kind = ErrorKind::data;
};

/// Throws Error{subject.kind} with HDF5's own error stack, the call and its place.
[[noreturn]] void throw_hdf5_error(Subject const& subject, ErrorSite site);

/// The descriptor of the system that HDF5 reads a file (or the file of an object) through; HDF5
/// owns it.
[[nodiscard]] int descriptor_of(hid_t file, Subject const& subject);

/// Prepares HDF5 for this process; files call it when they open, more than once is harmless.
///
/// HDF5 no longer prints its error stack, which our messages contain, and no longer closes what is
/// open when the process ends: after a full disk that crashes (seen with 1.10.8).
void start_hdf5() noexcept;

/// Logs a handle that HDF5 would not close. Never throws: destructors call it.
void report_unclosed(hid_t id) noexcept;

/// Returns what an HDF5 call returned, if that is not a failure (a negative number).
template <class Result>
Result checked(Result result, Subject const& subject, ErrorSite site) {
  if (result < 0) [[unlikely]] {
    throw_hdf5_error(subject, site);
  }
  return result;
}

template <herr_t (*Close)(hid_t)>
struct HandleTraits {
  using Raw = hid_t;
  static constexpr Raw null() noexcept { return H5I_INVALID_HID; }
  static void release(Raw id) noexcept {
    if (Close(id) < 0) report_unclosed(id);
  }
};

using FileHandle = UniqueHandle<HandleTraits<H5Fclose>>;
using GroupHandle = UniqueHandle<HandleTraits<H5Gclose>>;
using ObjectHandle = UniqueHandle<HandleTraits<H5Oclose>>;
using DatasetHandle = UniqueHandle<HandleTraits<H5Dclose>>;
using AttributeHandle = UniqueHandle<HandleTraits<H5Aclose>>;
using SpaceHandle = UniqueHandle<HandleTraits<H5Sclose>>;
using TypeHandle = UniqueHandle<HandleTraits<H5Tclose>>;
using PropertyHandle = UniqueHandle<HandleTraits<H5Pclose>>;

}  // namespace motley::io::hdf5

/// The result of an HDF5 call, as an expression; throws Error{subject.kind} if the call does not
/// succeed: `DatasetHandle d{MOTLEY_HDF5_CHECK(subject, H5Dopen2(…))};`
#define MOTLEY_HDF5_CHECK(subject, call) \
  ::motley::io::hdf5::checked((call), (subject), {#call, __FILE__, __LINE__})
