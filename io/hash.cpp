#include "io/hash.hpp"

#include <openssl/evp.h>

#include "kernels/base/error.hpp"

namespace motley::io {
namespace {

void check(int status, char const* call) {
  MOTLEY_VALIDATE(bug,
                  status == 1,
                  "OpenSSL's " << call << " returned " << status
                               << " (SHA-256 needs its default provider); check the installation "
                                  "of OpenSSL");
}

}  // namespace

void Sha256::Traits::release(Raw raw) noexcept { EVP_MD_CTX_free(raw); }

Sha256::Sha256() : context_{EVP_MD_CTX_new()} {
  check(context_ ? 1 : 0, "EVP_MD_CTX_new");
  check(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr), "EVP_DigestInit_ex");
}

void Sha256::update(std::span<std::byte const> bytes) {
  MOTLEY_VALIDATE(bug, context_, "bytes were given to a hash that is finished; use a new one");
  check(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()), "EVP_DigestUpdate");
}

void Sha256::update(std::string_view bytes) { update(std::as_bytes(std::span{bytes})); }

Digest Sha256::finish() {
  MOTLEY_VALIDATE(bug, context_, "a hash was finished twice; keep its value");
  Digest digest{};
  unsigned size = 0;
  check(EVP_DigestFinal_ex(context_.get(), digest.data(), &size), "EVP_DigestFinal_ex");
  context_.reset();
  MOTLEY_ENSURE(size == digest.size());
  return digest;
}

std::string to_hex(Digest const& digest) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * digest.size());
  for (std::uint8_t const byte : digest) {
    text += digits[byte >> 4U];
    text += digits[byte & 15U];
  }
  return text;
}

std::string sha256_hex(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes);
  return to_hex(hash.finish());
}

}  // namespace motley::io
