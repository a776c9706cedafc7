#pragma once

#include <filesystem>
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

/// "No space left on device" and its like, for the "why" of messages.
[[nodiscard]] std::string system_error_text(int error_number);

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

}  // namespace motley::io
