#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "kernels/base/unique_handle.hpp"

namespace motley::io {

namespace detail {
struct FileDescriptorTraits {
  using Raw = int;
  static constexpr Raw null() noexcept { return -1; }
  static void release(Raw descriptor) noexcept;
};
}  // namespace detail

/// An open file of the system.
using FileDescriptor = UniqueHandle<detail::FileDescriptorTraits>;

/// What a system error number means ("No space left on device"), for messages.
[[nodiscard]] std::string system_error_text(int error_number);

/// Throws Error{write}: the file cannot be written, for the reason that `error_number` gives.
[[noreturn]] void throw_write_error(std::filesystem::path const& file, int error_number);

/// Opens a file to write it from its start; what was in it is gone.
///
/// Throws   Error{write}
[[nodiscard]] FileDescriptor create_file(std::filesystem::path const& file);

/// Writes all bytes at an offset; `file` is for the message. Any thread.
///
/// Throws   Error{write}
void write_at(int descriptor,
              std::span<std::byte const> bytes,
              std::int64_t offset,
              std::filesystem::path const& file);

/// Reads up to bytes.size() bytes at an offset; fewer only at the end of the file. Any thread.
///
/// Returns  bytes read, or minus the system's error number
[[nodiscard]] std::int64_t read_at(int descriptor,
                                   std::span<std::byte> bytes,
                                   std::int64_t offset) noexcept;

/// Makes the content of a file durable.
///
/// Throws   Error{write}
void sync_file(int descriptor, std::filesystem::path const& file);

/// Makes the entries of a folder durable: what was created, renamed or removed in it.
///
/// Throws   Error{write}
void sync_folder(std::filesystem::path const& folder);

/// Creates or replaces a file, written and synced; its name is durable after `sync_folder` alone.
///
/// Throws   Error{write}; what was there before may be gone then
void write_synced_file(std::filesystem::path const& file, std::string_view content);

/// All of a small file.
///
/// Throws   Error{data} if it cannot be read
[[nodiscard]] std::string read_whole_file(std::filesystem::path const& file);

/// "2026-11-30T23:03:02Z"
[[nodiscard]] std::string utc_time_now();

}  // namespace motley::io
