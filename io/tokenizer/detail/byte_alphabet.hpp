#pragma once

#include <array>
#include <cstdint>

namespace motley::io::detail {

/// The 256 bytes in GPT-2's order: first those that print ("!" to "~", "¡" to "¬", "®" to "ÿ"),
/// then the others, which tokenizer.json files write as the characters from U+0100 on.
///
/// Source   openai/gpt-2, src/encoder.py, bytes_to_unicode
struct ByteAlphabet {
  std::array<std::uint8_t, 256> byte_at{};        ///< bytes in order
  std::array<std::uint16_t, 256> character_of{};  ///< character that stands for each byte

  constexpr ByteAlphabet() {
    std::size_t count = 0;
    for (unsigned byte = 0; byte < 256; ++byte) {
      if (!prints(byte)) continue;
      byte_at[count++] = static_cast<std::uint8_t>(byte);
      character_of[byte] = static_cast<std::uint16_t>(byte);
    }
    unsigned next_character = 0x100;
    for (unsigned byte = 0; byte < 256; ++byte) {
      if (prints(byte)) continue;
      byte_at[count++] = static_cast<std::uint8_t>(byte);
      character_of[byte] = static_cast<std::uint16_t>(next_character++);
    }
  }

 private:
  static constexpr bool prints(unsigned byte) {
    return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
  }
};

inline constexpr ByteAlphabet byte_alphabet{};

}  // namespace motley::io::detail
