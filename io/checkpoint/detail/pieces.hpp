#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "io/checkpoint/checkpoint.hpp"

namespace motley::io::detail {

/// Some consecutive elements of a tensor: what one thread moves between memory and file at a time.
struct Piece {
  std::size_t record = 0;     ///< index into the tensors of the checkpoint
  std::byte* data = nullptr;  ///< where they are in memory; null: nobody wants them
  std::int64_t first = 0;     ///< flat position of the first element in the whole tensor
  std::int64_t count = 0;
  bool is_counted = true;  ///< false: they came before, and must not enter the checksum again
};

/// Descriptions of the tensors of a state, in the order of their first appearance; offsets and
/// checksums are still missing.
///
/// Throws   Error{bug} if two intervals of a tensor disagree about it, if a name cannot stand in an
///          HDF5 file, or if a tensor is not covered once by its intervals
[[nodiscard]] std::vector<TensorRecord> records_of(StateTensors const& state);

/// How the tensors asked for differ from those in the file: all differences, one sentence each.
[[nodiscard]] std::vector<std::string> differences(std::span<TensorRecord const> records,
                                                   StateTensors const& state);

/// Pieces of all tensors asked for, in file order. Each tensor is covered whole: elements that are
/// wanted several times have one counted piece, those that are not wanted have one without memory.
[[nodiscard]] std::vector<Piece> pieces_of(std::span<TensorRecord const> records,
                                           StateTensors const& state);

/// Pieces without memory of all tensors, in file order.
[[nodiscard]] std::vector<Piece> pieces_of_all(std::span<TensorRecord const> records);

/// Elements of a whole tensor in front of a piece, in bytes from the start of the file.
[[nodiscard]] std::int64_t file_offset(TensorRecord const& record, Piece const& piece) noexcept;
[[nodiscard]] std::size_t bytes_of(TensorRecord const& record, Piece const& piece) noexcept;

/// Calls action(i) for i in [0, count) on several threads, roughly in order. After an exception no
/// new calls start, and the first one is thrown again here.
void run_parallel(std::int64_t count, int threads, std::function<void(std::int64_t)> const& action);

/// Reads the pieces of an open state.h5 into their memory and compares each tensor's checksum. Any
/// other bytes go to `visit`, if given, in pieces, from several threads.
///
/// Returns  what is damaged, one sentence a tensor
using VisitPiece = std::function<void(Piece const&, std::span<std::byte const>)>;
[[nodiscard]] std::vector<std::string> read_pieces(int descriptor,
                                                   std::span<TensorRecord const> records,
                                                   std::span<Piece const> pieces,
                                                   int threads,
                                                   VisitPiece const& visit = {});

}  // namespace motley::io::detail
