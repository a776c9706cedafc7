#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "kernels/base/unique_handle.hpp"

struct evp_md_ctx_st;  // OpenSSL's EVP_MD_CTX; its header stays in hash.cpp

namespace motley::io {

/// A SHA-256 value, first byte first.
using Digest = std::array<std::uint8_t, 32>;

/// SHA-256 of bytes that arrive in parts.
///
/// Cost     one pass; OpenSSL's code for the CPU it finds
/// Throws   Error{bug} if OpenSSL refuses, or after `finish`
/// Source   FIPS 180-4, section 6.2
class Sha256 {
 public:
  Sha256();

  void update(std::span<std::byte const> bytes);
  void update(std::string_view bytes);
  /// The value over everything given so far; ends the stream.
  [[nodiscard]] Digest finish();

 private:
  struct Traits {
    using Raw = evp_md_ctx_st*;
    static Raw null() noexcept { return nullptr; }
    static void release(Raw raw) noexcept;
  };
  UniqueHandle<Traits> context_;
};

/// 64 lower-case hexadecimal digits.
[[nodiscard]] std::string to_hex(Digest const& digest);

/// SHA-256 of bytes at hand, in hexadecimal.
[[nodiscard]] std::string sha256_hex(std::string_view bytes);

}  // namespace motley::io
