#include "io/durable_file.hpp"

#include <array>
#include <cerrno>
#include <ctime>
#include <fstream>
#include <iterator>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/base/error.hpp"
#include "kernels/base/log.hpp"

namespace motley::io {

void detail::FileDescriptorTraits::release(Raw descriptor) noexcept {
  // Writers sync before they close; what close reports after that changes nothing.
  static_cast<void>(::close(descriptor));
}

std::string system_error_text(int error_number) {
  return std::generic_category().message(error_number);
}

void throw_write_error(std::filesystem::path const& file, int error_number) {
  MOTLEY_FAIL(write,
              "file " << file << " cannot be written (" << system_error_text(error_number)
                      << "); free space there, or check the permissions and quota of the folder");
}

FileDescriptor create_file(std::filesystem::path const& file) {
  FileDescriptor descriptor{::open(file.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)};
  if (!descriptor) throw_write_error(file, errno);
  return descriptor;
}

void write_at(int descriptor,
              std::span<std::byte const> bytes,
              std::int64_t offset,
              std::filesystem::path const& file) {
  while (!bytes.empty()) {
    ssize_t const written = ::pwrite(descriptor, bytes.data(), bytes.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_write_error(file, errno);
    if (written == 0) throw_write_error(file, ENOSPC);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    offset += written;
  }
}

std::int64_t read_at(int descriptor, std::span<std::byte> bytes, std::int64_t offset) noexcept {
  std::int64_t total = 0;
  while (!bytes.empty()) {
    ssize_t const count = ::pread(descriptor, bytes.data(), bytes.size(), offset + total);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return -errno;
    if (count == 0) break;
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    total += count;
  }
  return total;
}

void sync_file(int descriptor, std::filesystem::path const& file) {
  if (::fsync(descriptor) != 0) throw_write_error(file, errno);
}

void sync_folder(std::filesystem::path const& folder) {
  FileDescriptor const descriptor{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (!descriptor) throw_write_error(folder, errno);
  // Some file systems cannot sync a folder and say EINVAL; their entries are durable at once.
  if (::fsync(descriptor.get()) != 0 && errno != EINVAL) throw_write_error(folder, errno);
}

void write_synced_file(std::filesystem::path const& file, std::string_view content) {
  FileDescriptor const descriptor = create_file(file);
  write_at(descriptor.get(), std::as_bytes(std::span{content}), 0, file);
  sync_file(descriptor.get(), file);
}

std::string read_whole_file(std::filesystem::path const& file) {
  errno = 0;
  std::ifstream stream{file, std::ios::binary};
  std::string content{std::istreambuf_iterator<char>{stream}, {}};
  MOTLEY_VALIDATE(data,
                  stream.good() || (stream.eof() && !stream.bad()),
                  "file " << file << " cannot be read (" << system_error_text(errno)
                          << "); check the path and its permissions");
  return content;
}

std::string utc_time_now() {
  std::time_t const now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::size_t const length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text.data(), length};
}

}  // namespace motley::io
