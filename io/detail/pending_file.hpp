#pragma once

#include <filesystem>

namespace motley::io::detail {

/// A file that appears under its name whole or not at all: it is written under a temporary name in
/// the same folder, then published. Without that its end removes it.
class PendingFile {
 public:
  /// Makes nothing yet. Throws Error{write} if the folder does not exist.
  explicit PendingFile(std::filesystem::path target);
  PendingFile(PendingFile&& other) noexcept;
  PendingFile& operator=(PendingFile&&) = delete;
  PendingFile(PendingFile const&) = delete;
  PendingFile& operator=(PendingFile const&) = delete;
  ~PendingFile();

  /// Where to write.
  [[nodiscard]] std::filesystem::path const& temporary() const noexcept { return temporary_; }
  [[nodiscard]] std::filesystem::path const& target() const noexcept { return target_; }
  /// Syncs what was written and gives it its name, durably, in place of any file of that name.
  /// Throws Error{write}.
  void publish();

 private:
  std::filesystem::path target_;
  std::filesystem::path temporary_;  // empty once published
};

}  // namespace motley::io::detail
