# The guard of an unfit program stops it with 69 and a message, and motley itself carries the guard.
# Argument: the program of cpu_guard_stop_main.cpp.
set -u
if [ "$(uname -m)" != x86_64 ]; then
  echo "SKIPPED: CPU features are checked on x86-64 alone"
  exit 77
fi
output=$("$1" 2>&1)
rc=$?
[ $rc = 69 ] || { echo "the exit code is $rc, not 69: $output"; exit 1; }
case $output in
  *"may use "*"xop"*"MOTLEY_ARCH"*) ;;
  *) echo "the message names no missing feature or no remedy: $output"; exit 1 ;;
esac
case $output in *started*) echo "main ran"; exit 1 ;; esac
nm "$MOTLEY" | grep -q motley_cpu_required || { echo "$MOTLEY has no guard"; exit 1; }
