#pragma once

#include <exception>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace motley {

/// What went wrong, in the terms a caller can act on. Exit codes: see `exit_code`.
enum class ErrorKind { usage, data, checkpoint, device, bug, write, timeout, plan, numeric };

/// Process exit code of a kind, as documented to users and job scripts.
///
/// 64 usage, 65 data, 66 checkpoint, 69 device, 70 bug, 73 write, 76 timeout, 78 plan, 79 numeric.
[[nodiscard]] int exit_code(ErrorKind kind) noexcept;

/// Exit code of any exception: that of its kind for an Error, 70 for everything else.
[[nodiscard]] int exit_code(std::exception const& error) noexcept;

[[nodiscard]] std::string_view to_string(ErrorKind kind) noexcept;

/// The checkpoint is durable and the target is not reached: run me again.
inline constexpr int exit_code_resume = 75;

/// Where an Error was raised and by which check.
struct ErrorSite {
  char const* expression = "";
  char const* file = "";
  int line = 0;
};

/// The only exception motley throws. The message says the problem, why it is one and what to do.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, std::string const& message, ErrorSite site);

  [[nodiscard]] ErrorKind kind() const noexcept { return kind_; }
  /// The check that failed, as written in the source.
  [[nodiscard]] char const* expression() const noexcept { return site_.expression; }
  [[nodiscard]] char const* file() const noexcept { return site_.file; }
  [[nodiscard]] int line() const noexcept { return site_.line; }
  /// MPI world rank that raised it (0 before MPI starts).
  [[nodiscard]] int world_rank() const noexcept { return world_rank_; }

 private:
  ErrorKind kind_;
  ErrorSite site_;
  int world_rank_;
};

namespace detail {
[[noreturn]] void throw_error(ErrorKind kind, std::string const& message, ErrorSite site);
[[noreturn]] void throw_contract(char const* contract, ErrorSite site);
}  // namespace detail

}  // namespace motley

/// Throws Error{kind} with a streamed message: MOTLEY_FAIL(data, "file \"" << path << "\" is empty
/// (…); …").
#define MOTLEY_FAIL(kind, message)                                                             \
  do {                                                                                         \
    std::ostringstream motley_message;                                                         \
    motley_message << message;                                                                 \
    ::motley::detail::throw_error(                                                             \
        ::motley::ErrorKind::kind, motley_message.str(), {"MOTLEY_FAIL", __FILE__, __LINE__}); \
  } while (false)

/// Checks what users, files and the environment give us. Always on.
#define MOTLEY_VALIDATE(kind, condition, message)                                             \
  do {                                                                                        \
    if (!(condition)) [[unlikely]] {                                                          \
      std::ostringstream motley_message;                                                      \
      motley_message << message;                                                              \
      ::motley::detail::throw_error(                                                          \
          ::motley::ErrorKind::kind, motley_message.str(), {#condition, __FILE__, __LINE__}); \
    }                                                                                         \
  } while (false)

#ifdef MOTLEY_ENABLE_CONTRACTS
#define MOTLEY_CONTRACT(name, condition)                                        \
  do {                                                                          \
    if (!(condition)) [[unlikely]] {                                            \
      ::motley::detail::throw_contract(name, {#condition, __FILE__, __LINE__}); \
    }                                                                           \
  } while (false)
#else
// The condition still compiles, and is never evaluated.
#define MOTLEY_CONTRACT(name, condition) \
  do {                                   \
    if (false) {                         \
      static_cast<void>(condition);      \
    }                                    \
  } while (false)
#endif

/// Contracts check for our own bugs (Error{bug}); on in Debug and CI only.
#define MOTLEY_EXPECT(condition) MOTLEY_CONTRACT("precondition", condition)
#define MOTLEY_ASSERT(condition) MOTLEY_CONTRACT("assertion", condition)
#define MOTLEY_ENSURE(condition) MOTLEY_CONTRACT("postcondition", condition)
