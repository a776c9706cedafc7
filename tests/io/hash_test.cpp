#include "io/hash.hpp"

#include <string>

#include <gtest/gtest.h>

#include "kernels/base/error.hpp"

namespace motley::io {
namespace {

TEST(HashTest, values_equal_those_of_fips_180) {
  // FIPS 180-4 examples (NIST, "SHA256.pdf") and NIST's long-message vector of a million 'a'.
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(HashTest, parts_give_the_value_of_the_whole) {
  Sha256 hash;
  hash.update("a");
  hash.update("");
  hash.update("bc");
  EXPECT_EQ(to_hex(hash.finish()), sha256_hex("abc"));
}

TEST(HashTest, a_finished_hash_refuses_more) {
  Sha256 hash;
  static_cast<void>(hash.finish());
  EXPECT_THROW(hash.update("x"), Error);
  EXPECT_THROW(static_cast<void>(hash.finish()), Error);
}

}  // namespace
}  // namespace motley::io
