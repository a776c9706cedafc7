# For scripts that test, run with `source`: require_or_skip torch "the reason it cannot run here"
# ends the script as skipped (77), or as failed (1) where MOTLEY_REQUIRE, a list such as "torch,cuda", names it.
require_or_skip() {
  case ",${MOTLEY_REQUIRE:-}," in
    *",$1,"*)
      echo "FAILED: MOTLEY_REQUIRE names $1, which this test misses: $2" >&2
      exit 1
      ;;
  esac
  echo "SKIPPED: without $1: $2"
  exit 77
}
