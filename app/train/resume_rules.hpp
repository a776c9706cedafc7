#pragma once

#include <string>
#include <vector>

namespace motley::app {

/// One key whose value in a checkpoint is not the one asked for now.
struct KeyDifference {
  std::string key;
  std::string saved;  ///< as TOML
  std::string now;    ///< as TOML
};

/// Keys that both resolved configurations (TOML texts) have with different values.
[[nodiscard]] std::vector<KeyDifference> config_differences(std::string const& saved,
                                                            std::string const& now);

/// What a run that is being resumed asks for.
struct ResumeWish {
  std::string config;            ///< resolved run.toml
  std::string data_fingerprint;  ///< of data set, window and order
  bool may_override_optimizer = false;
};

/// What a checkpoint was written with.
struct ResumeOffer {
  std::string config;
  std::string data_fingerprint;
};

/// Decides whether a run may go on from a checkpoint.
///
/// Returns  the keys that take their new value, for the log
/// Throws   Error{checkpoint} for another model, Error{data} for other data or another data order,
///          Error{usage} for other optimizer keys unless they may be overridden; each with the
///          saved and the new values
[[nodiscard]] std::vector<KeyDifference> check_resume(ResumeOffer const& offer,
                                                      ResumeWish const& wish);

}  // namespace motley::app
