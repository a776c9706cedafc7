#include "kernels/base/error.hpp"

#include "kernels/base/log.hpp"

namespace motley {
namespace {

struct KindRow {
  ErrorKind kind;
  int code;
  std::string_view name;
};

constexpr KindRow kind_table[] = {
    {ErrorKind::usage, 64, "usage"},
    {ErrorKind::data, 65, "data"},
    {ErrorKind::checkpoint, 66, "checkpoint"},
    {ErrorKind::device, 69, "device"},
    {ErrorKind::bug, 70, "bug"},
    {ErrorKind::write, 73, "write"},
    {ErrorKind::timeout, 76, "timeout"},
    {ErrorKind::plan, 78, "plan"},
    {ErrorKind::numeric, 79, "numeric"},
};

KindRow row_of(ErrorKind kind) noexcept {
  for (KindRow const& row : kind_table) {
    if (row.kind == kind) return row;
  }
  return {ErrorKind::bug, 70, "bug"};
}

}  // namespace

int exit_code(ErrorKind kind) noexcept { return row_of(kind).code; }

int exit_code(std::exception const& error) noexcept {
  auto const* ours = dynamic_cast<Error const*>(&error);
  return exit_code(ours != nullptr ? ours->kind() : ErrorKind::bug);
}

std::string_view to_string(ErrorKind kind) noexcept { return row_of(kind).name; }

Error::Error(ErrorKind kind, std::string const& message, ErrorSite site)
    : std::runtime_error{message}, kind_{kind}, site_{site}, world_rank_{log_rank()} {}

namespace detail {

void throw_error(ErrorKind kind, std::string const& message, ErrorSite site) {
  throw Error{kind, message, site};
}

void throw_contract(char const* contract, ErrorSite site) {
  std::ostringstream message;
  message << site.file << ":" << site.line << ": " << contract << " \"" << site.expression
          << "\" does not hold (this is a bug of motley); please report it with this line";
  throw Error{ErrorKind::bug, message.str(), site};
}

}  // namespace detail
}  // namespace motley
