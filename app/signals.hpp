#pragma once

namespace motley::app {

/// What the signals received so far ask the run to do, the most urgent first.
enum class SignalRequest {
  none = 0,
  checkpoint = 1,  ///< USR1: write a checkpoint, go on
  stop = 2,        ///< USR2, TERM, INT: finish the step, write a checkpoint, exit 75
};

/// Catches USR1, USR2, TERM and INT while it lives; the handlers only set flags.
///
/// A second INT ends the process at once, as without a handler. One object at a time; main thread.
/// The same signals and meanings are documented for job scripts in README.md.
class SignalCatcher {
 public:
  SignalCatcher();
  SignalCatcher(SignalCatcher const&) = delete;
  SignalCatcher& operator=(SignalCatcher const&) = delete;
  SignalCatcher(SignalCatcher&&) = delete;
  SignalCatcher& operator=(SignalCatcher&&) = delete;
  ~SignalCatcher();

  /// The request since the last call. A checkpoint request is answered once; a stop request stays.
  [[nodiscard]] SignalRequest take();
  /// Name of the last signal that asked for a stop, e.g. "TERM".
  [[nodiscard]] static char const* stop_signal_name();
};

}  // namespace motley::app
