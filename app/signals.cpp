#include "app/signals.hpp"

#include <array>
#include <csignal>

namespace motley::app {
namespace {

// A handler may touch nothing but these (and only lock-free atomics or this type are allowed
// there).
volatile std::sig_atomic_t wants_checkpoint = 0;
volatile std::sig_atomic_t stop_signal = 0;

constexpr std::array<int, 4> caught{SIGUSR1, SIGUSR2, SIGTERM, SIGINT};

void on_signal(int number) {
  if (number == SIGUSR1) {
    wants_checkpoint = 1;
    return;
  }
  if (number == SIGINT && stop_signal == SIGINT) {
    // The user insists: end as if we had never caught it.
    static_cast<void>(std::signal(SIGINT, SIG_DFL));
    static_cast<void>(std::raise(SIGINT));
    return;
  }
  stop_signal = number;
}

void set_handlers(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (int const number : caught) sigaction(number, &action, nullptr);
}

}  // namespace

SignalCatcher::SignalCatcher() {
  wants_checkpoint = 0;
  stop_signal = 0;
  set_handlers(on_signal);
}

SignalCatcher::~SignalCatcher() { set_handlers(SIG_DFL); }

SignalRequest SignalCatcher::take() {
  if (stop_signal != 0) return SignalRequest::stop;
  if (wants_checkpoint == 0) return SignalRequest::none;
  wants_checkpoint = 0;
  return SignalRequest::checkpoint;
}

char const* SignalCatcher::stop_signal_name() {
  switch (stop_signal) {
    case SIGTERM:
      return "TERM";
    case SIGUSR2:
      return "USR2";
    case SIGINT:
      return "INT";
    default:
      return "none";
  }
}

}  // namespace motley::app
