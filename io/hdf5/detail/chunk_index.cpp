#include "io/hdf5/detail/chunk_index.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <utility>

#include <unistd.h>

namespace motley::io::hdf5::detail {
namespace {

constexpr std::uint64_t undefined_address = ~std::uint64_t{0};
constexpr std::size_t largest_block_bytes = std::size_t{1} << 20U;
constexpr int most_continuations = 64;
constexpr int most_levels = 16;

/// What is not as expected in the file; does not leave this unit.
struct Unexpected {};

void expect(bool condition) {
  if (!condition) throw Unexpected{};
}

/// A piece of the file, taken apart from front to back.
class Block {
 public:
  Block(int descriptor, std::uint64_t offset, std::uint64_t bytes) {
    expect(bytes <= largest_block_bytes);
    bytes_.resize(static_cast<std::size_t>(bytes));
    ssize_t const got =
        ::pread(descriptor, bytes_.data(), bytes_.size(), static_cast<off_t>(offset));
    expect(std::cmp_equal(got, bytes_.size()));
  }

  [[nodiscard]] std::size_t left() const { return bytes_.size() - at_; }
  void skip(std::size_t bytes) {
    expect(bytes <= left());
    at_ += bytes;
  }
  void expect_text(std::string_view text) {
    expect(text.size() <= left() && std::memcmp(&bytes_[at_], text.data(), text.size()) == 0);
    at_ += text.size();
  }
  /// A little-endian number of `bytes` bytes.
  std::uint64_t number(std::size_t bytes) {
    expect(bytes <= left() && bytes <= 8);
    std::uint64_t value = 0;
    std::memcpy(&value, &bytes_[at_], bytes);
    at_ += bytes;
    return value;
  }

 private:
  std::vector<unsigned char> bytes_;
  std::size_t at_ = 0;
};

struct Layout {
  std::uint64_t root = undefined_address;  ///< of the B-tree
};

/// Addresses are counted from the start of the file and take 8 bytes.
void expect_superblock(int descriptor) {
  Block block{descriptor, 0, 20};
  block.expect_text("\x89HDF\r\n\x1a\n");
  std::uint64_t const version = block.number(1);
  expect(version == 2 || version == 3);
  expect(block.number(1) == 8 && block.number(1) == 8);  // of addresses, of lengths
  block.skip(1);
  expect(block.number(8) == 0);  // base address
}

/// Looks for the layout among the messages of an object header, which go on in other blocks.
class HeaderReader {
 public:
  HeaderReader(int descriptor, std::uint64_t address) : descriptor_{descriptor} {
    Block prefix{descriptor, address, 6};
    prefix.expect_text("OHDR");
    expect(prefix.number(1) == 2);
    std::uint64_t const flags = prefix.number(1);
    has_creation_order_ = (flags & 0x04U) != 0;
    std::uint64_t const skipped =
        ((flags & 0x20U) != 0 ? 16U : 0U) + ((flags & 0x10U) != 0 ? 4U : 0U);
    std::uint64_t const width = std::uint64_t{1} << (flags & 0x03U);
    Block size{descriptor, address + 6 + skipped, width};
    read_messages(Block{
        descriptor, address + 6 + skipped + width, size.number(static_cast<std::size_t>(width))});
  }

  [[nodiscard]] std::uint64_t btree() const { return btree_; }

 private:
  void read_messages(Block block) {
    std::size_t const head = has_creation_order_ ? 6 : 4;
    while (block.left() >= head) {
      std::uint64_t const type = block.number(1);
      auto const bytes = static_cast<std::size_t>(block.number(2));
      block.skip(head - 3);
      expect(bytes <= block.left());
      std::size_t const rest = block.left() - bytes;
      if (type == 0x08) read_layout(block);
      if (type == 0x10) read_continuation(block);
      block.skip(block.left() - rest);
    }
  }

  void read_layout(Block& block) {
    expect(block.number(1) == 3 && block.number(1) == 2);  // version, chunked
    expect(block.number(1) == 2);                          // one dim, and the element itself
    btree_ = block.number(8);
  }

  void read_continuation(Block& block) {
    expect(++continuations_ <= most_continuations);
    std::uint64_t const offset = block.number(8);
    std::uint64_t const bytes = block.number(8);
    Block next{descriptor_, offset, bytes};
    next.expect_text("OCHK");
    expect(next.left() >= 4);
    read_messages(Block{descriptor_, offset + 4, bytes - 8});  // without signature and checksum
  }

  int descriptor_;
  bool has_creation_order_ = false;
  int continuations_ = 0;
  std::uint64_t btree_ = undefined_address;
};

struct Node {
  std::uint64_t level = 0;
  std::uint64_t right = undefined_address;
  std::vector<ChunkPlace> children;  ///< of a leaf the chunks, else `offset` is a node's
};

Node read_node(int descriptor, std::uint64_t address) {
  constexpr std::size_t head_bytes = 24;
  constexpr std::size_t key_bytes = 24;
  Block head{descriptor, address, head_bytes};
  head.expect_text("TREE");
  expect(head.number(1) == 1);  // chunks of raw data
  Node node;
  node.level = head.number(1);
  std::uint64_t const entries = head.number(2);
  head.skip(8);
  node.right = head.number(8);
  expect(node.level <= most_levels);
  Block body{descriptor, address + head_bytes, entries * (key_bytes + 8)};
  for (std::uint64_t i = 0; i < entries; ++i) {
    ChunkPlace place;
    place.bytes = body.number(4);
    place.filter_mask = static_cast<std::uint32_t>(body.number(4));
    place.first_element = static_cast<std::int64_t>(body.number(8));
    expect(body.number(8) == 0);
    place.offset = body.number(8);
    node.children.push_back(place);
  }
  return node;
}

/// Goes down to the leftmost leaf, then along the leaves.
std::vector<ChunkPlace> read_leaves(int descriptor, std::uint64_t root) {
  Node node = read_node(descriptor, root);
  while (node.level > 0) {
    expect(!node.children.empty());
    std::uint64_t const level = node.level;
    node = read_node(descriptor, node.children.front().offset);
    expect(node.level == level - 1);
  }
  std::vector<ChunkPlace> places = std::move(node.children);
  while (node.right != undefined_address) {
    node = read_node(descriptor, node.right);
    expect(node.level == 0 && !node.children.empty());
    // In order, so that a circle of damaged links ends here.
    expect(places.empty() || places.back().first_element < node.children.front().first_element);
    places.insert(places.end(), node.children.begin(), node.children.end());
  }
  auto const is_out_of_order = [](ChunkPlace const& a, ChunkPlace const& b) {
    return a.first_element >= b.first_element;
  };
  expect(std::adjacent_find(places.begin(), places.end(), is_out_of_order) == places.end());
  return places;
}

}  // namespace

std::optional<std::vector<ChunkPlace>> read_chunk_index(int descriptor,
                                                        std::uint64_t object_address) {
  try {
    expect_superblock(descriptor);
    HeaderReader const header{descriptor, object_address};
    expect(header.btree() != undefined_address);
    return read_leaves(descriptor, header.btree());
  } catch (Unexpected const&) {
    return std::nullopt;
  }
}

}  // namespace motley::io::hdf5::detail
