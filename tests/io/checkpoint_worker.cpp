// A process that owns a run folder, for tests that stop and kill it.
//
//   checkpoint_worker save FOLDER ROWS    goes on from the newest checkpoint, saves one after
//   another
//                                         for ever; prints "durable STEP" after each
//   checkpoint_worker check FOLDER ROWS   prints "intact STEP" of what a resume finds (0: nothing)
//   checkpoint_worker hold FOLDER BEAT_MS STALE_MS
//                                         prints "held EPOCH", then tries a save for each line of
//                                         input: "saved" or "refused CODE"
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>

#include "io/checkpoint/checkpoint.hpp"
#include "io/run_folder.hpp"
#include "kernels/base/error.hpp"
#include "tests/io/checkpoint_state.hpp"

namespace {

using namespace motley;

void say(std::string const& line) { std::cout << line << std::endl; }

std::int64_t resume(io::RunFolder const& folder, test::TestState& state) {
  auto const loaded =
      io::resume_checkpoint(folder.path(), io::parse_resume("auto"), state.tensors());
  std::int64_t const step = loaded ? loaded->meta.step : 0;
  MOTLEY_VALIDATE(bug,
                  step == 0 || state.is_of(step),
                  "the tensors of step " << step << " have other values (they were loaded)");
  return step;
}

int save_for_ever(std::string const& path, std::int64_t rows) {
  io::RunFolder const folder{path};
  test::TestState state{rows};
  for (std::int64_t step = resume(folder, state) + 1;; ++step) {
    state.fill(step);
    io::save_checkpoint(folder, test::meta_of(step), state.tensors(), {2, 0, true, 0});
    say("durable " + std::to_string(step));
  }
}

int check(std::string const& path, std::int64_t rows) {
  io::RunFolder const folder{path};
  test::TestState state{rows};
  say("intact " + std::to_string(resume(folder, state)));
  return 0;
}

int hold(std::string const& path, std::int64_t beat_ms, std::int64_t stale_ms) {
  io::RunFolder const folder{
      path, {std::chrono::milliseconds{beat_ms}, std::chrono::milliseconds{stale_ms}}};
  say("held " + std::to_string(folder.lock().epoch));
  test::TestState state{64};
  std::int64_t step = 1000 * static_cast<std::int64_t>(folder.lock().epoch);
  for (std::string line; std::getline(std::cin, line);) {
    try {
      state.fill(++step);
      io::save_checkpoint(folder, test::meta_of(step), state.tensors());
      say("saved");
    } catch (Error const& error) {
      std::cerr << error.what() << "\n";
      say("refused " + std::to_string(exit_code(error)));
    }
  }
  return 0;
}

int run(int argc, char** argv) {
  std::string const mode = argc > 1 ? argv[1] : "";
  if (mode == "save" && argc == 4) return save_for_ever(argv[2], std::atoll(argv[3]));
  if (mode == "check" && argc == 4) return check(argv[2], std::atoll(argv[3]));
  if (mode == "hold" && argc == 5) return hold(argv[2], std::atoll(argv[3]), std::atoll(argv[4]));
  std::cerr << "usage: see the head of checkpoint_worker.cpp\n";
  return exit_code(ErrorKind::usage);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (std::exception const& error) {
    std::cerr << error.what() << "\n";
    return exit_code(error);
  }
}
