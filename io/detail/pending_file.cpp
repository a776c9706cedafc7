#include "io/detail/pending_file.hpp"

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "io/durable_file.hpp"
#include "kernels/base/error.hpp"

namespace motley::io::detail {
namespace {

std::filesystem::path folder_of(std::filesystem::path const& file) {
  return file.has_parent_path() ? file.parent_path() : std::filesystem::path{"."};
}

void sync_content(std::filesystem::path const& file) {
  FileDescriptor const descriptor{::open(file.c_str(), O_RDONLY | O_CLOEXEC)};
  int const error = descriptor && ::fsync(descriptor.get()) == 0 ? 0 : errno;
  MOTLEY_VALIDATE(write,
                  error == 0,
                  "file " << file << " could not be synced to disk (" << system_error_text(error)
                          << "); free space there, or check the disk");
}

}  // namespace

PendingFile::PendingFile(std::filesystem::path target)
    : target_{std::move(target)},
      // The process id keeps two programs apart that write the same file at once.
      temporary_{target_.string() + "." + std::to_string(::getpid()) + ".partial"} {
  std::error_code error;
  MOTLEY_VALIDATE(write,
                  std::filesystem::is_directory(folder_of(target_), error),
                  "file " << target_ << " cannot be written (folder " << folder_of(target_)
                          << " does not exist); make the folder or choose another path");
}

PendingFile::PendingFile(PendingFile&& other) noexcept
    : target_{std::move(other.target_)}, temporary_{std::exchange(other.temporary_, {})} {}

PendingFile::~PendingFile() {
  if (temporary_.empty()) return;
  std::error_code ignored;  // nothing was promised about the temporary file
  std::filesystem::remove(temporary_, ignored);
}

void PendingFile::publish() {
  sync_content(temporary_);
  std::error_code error;
  std::filesystem::rename(temporary_, target_, error);
  MOTLEY_VALIDATE(write,
                  !error,
                  "file " << temporary_ << " cannot be renamed to " << target_ << " ("
                          << error.message() << "); check the permissions of the folder");
  temporary_.clear();
  sync_folder(folder_of(target_));
}

}  // namespace motley::io::detail
