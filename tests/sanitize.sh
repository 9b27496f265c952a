#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds with sanitizers, in a folder of its own, and runs tests there.
#
#   tests/sanitize.sh address|thread FOLDER [PART]     (meson test --suite sanitize)
#
# PART of address; without it all:
#   unit      the unit tests: tensors, autograd, nn and files among them
#   programs  the gradient, nonsense and stress tests, a share of the random programs
#   python    the Python package, without LeakSanitizer, which knows nothing of an interpreter
#   vendor    the suites fault and sdk, level core of the conformance suite on CPU and REF among them
#   commands  the suite e2e: the command as a user runs it
#
# address: AddressSanitizer with LeakSanitizer, and UndefinedBehaviourSanitizer. thread: ThreadSanitizer over what has threads:
# devices, plugins that hang, the engine with search, lanes and replay, loaders, training, the stress tests, the conformance
# suite's cases of queues, and some random programs.
# A report of any process is a failure, also where a test expects of that process to end with an error. Those of
# UndefinedBehaviourSanitizer beside the other two go to standard error alone, where the tests of commands look for them.
# The first run compiles what the part needs, later ones what has changed. 77: the compiler has no sanitizers.
set -euo pipefail
source=$(cd "$(dirname "$0")/.." && pwd)
kind=${1:?address or thread}
mkdir -p "${2:?a folder to build in}"
folder=$(cd "$2" && pwd)/$kind
outer=$(cd "$2/../.." && pwd)
reports=$folder-reports
part=${3:-}
is_part() { [ -z "$part" ] || [ "$part" = "$1" ]; }

case $kind in
address) sanitizers=address,undefined ;;
thread) sanitizers=thread ;;
*) echo "sanitize: $kind is neither address nor thread" >&2; exit 2 ;;
esac

trial=$(mktemp -d)
rm -rf -- "$reports"
mkdir "$reports"
failed=0 # what fails hides nothing after it
# The reports come last, and turn a run red that would be green.
finish() {
  local status=$? report
  [ $status != 0 ] || status=$failed
  rm -rf -- "$trial"
  for report in "$reports"/*; do
    grep -qE 'ERROR: |WARNING: ThreadSanitizer' "$report" 2>/dev/null || continue
    echo "sanitize: $report"
    head -60 "$report"
    status=1
  done
  exit "$status"
}
trap finish EXIT
echo 'int main (void) { return 0; }' >"$trial/trial.c"
if ! ${CC:-cc} "-fsanitize=$sanitizers" -o "$trial/trial" "$trial/trial.c" 2>"$trial/log" || ! "$trial/trial"; then
  echo "sanitize: skipped, ${CC:-cc} has no -fsanitize=$sanitizers: $(head -1 "$trial/log")"
  exit 77
fi

# What an outer run set is about other plugins.
unset TINY_PLUGIN_PATH TINY_SCAN_HELPER MESON_TEST_ITERATION MESONFLAGS
[ -f "$folder/build.ninja" ] || meson setup "$folder" "$source" --buildtype=debugoptimized -Db_sanitize=$sanitizers -Db_lundef=false
# The library that ./setup has fetched for the build around this one.
[ -d "$outer/webgpu" ] && ln -sfn "$outer/webgpu" "$folder/webgpu"
common=log_path=$reports/report
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
# Without intercept_tls_get_addr=0 a block of thread-local data whose address ends in 0x010, as LLVM's may, is taken for
# one of glibc 2.19 (dtls->header of GCC's libsanitizer), and LeakSanitizer itself ends by reading what is no memory. The
# dynamic linker's memory is searched all the same.
export ASAN_OPTIONS=$common:detect_leaks=1:detect_stack_use_after_return=1:intercept_tls_get_addr=0
export LSAN_OPTIONS=suppressions=$source/tests/lsan.supp:print_suppressions=0
export TSAN_OPTIONS=$common:suppressions=$source/tests/tsan.supp:halt_on_error=1:second_deadlock_stack=1

run_tests() { meson test -C "$folder" --print-errorlogs --timeout-multiplier 5 "$@" || failed=1; }
with_plugins() {
  env "TINY_PLUGIN_PATH=$folder/plugins.d" "TINY_SCAN_HELPER=$folder/tools/tiny-scan" \
    "TINY_CONFORMANCE_HELPER=$folder/sdk/conformance/tiny-conformance" "$@"
}
random_programs() { # DEV, arguments
  with_plugins env "DEV=$1" "$folder/tests/differential/test-differential" --seed 4000001 --count $programs "${@:2}" || failed=1
}
# Queues, memory, objects and errors of CPU, of REF, and of an accelerator with a thread of its own.
conformance_of_queues() {
  local group filters=() subject
  for group in lifecycle memory order points faults replay pair; do filters+=(--filter "$group/*"); done
  ninja -C "$folder" tools/tinycore sdk/conformance/tiny-conformance tests/fault/sample-linear.so
  for subject in CPU REF "$folder/tests/fault/sample-linear.so"; do
    echo "sanitize: conformance of $subject"
    with_plugins env "TINY_CACHE_DIR=$trial" "$folder/tools/tinycore" conformance "$subject" --timeout-scale 10 "${filters[@]}" || failed=1
  done
}
# Plugins that crash on purpose are to end their process by the signal, as without a sanitizer.
with_signals() {
  local signals=handle_segv=0:handle_sigbus=0:handle_sigfpe=0
  ASAN_OPTIONS=$ASAN_OPTIONS:$signals UBSAN_OPTIONS=$UBSAN_OPTIONS:$signals TSAN_OPTIONS=$TSAN_OPTIONS:$signals "$@"
}

if [ "$kind" = address ]; then
  if is_part unit; then run_tests --suite unit; fi
  if is_part programs; then run_tests --suite gradient --suite nonsense --suite stress; fi
  if [ "$part" = python ]; then # what the package loads
    meson compile -C "$folder" tinycore-1.0 tiny-cl tiny-cpu tiny-null tiny-ref tiny-webgpu tiny-scan tinycore
  fi
  if is_part vendor || is_part commands; then
    ninja -C "$folder" # an installation has everything
    if is_part vendor; then
      # As the vendor's guide has it (sdk/guide.md): sizes that no machine has are to be refused, and what is freed is not
      # to be counted as lost.
      ASAN_OPTIONS=$ASAN_OPTIONS:allocator_may_return_null=1 with_signals run_tests --suite fault
      ASAN_OPTIONS=$ASAN_OPTIONS:quarantine_size_mb=0:allocator_may_return_null=1 with_signals run_tests --suite sdk
    fi
    if is_part commands; then
      ASAN_OPTIONS=$ASAN_OPTIONS:allocator_may_return_null=1 with_signals run_tests --suite e2e
    fi
  fi
  programs=300
else
  # GLib's own allocator gives memory from thread to thread without a word.
  export G_SLICE=always-malloc
  # Device, engine with search, lanes and replay, capture and training, threads that are stopped, a forked pool, workers;
  # random programs below.
  tests=(base/descriptor base/stats device/buffer device/device device/table device/timeline engine/asynchronous engine/cache
    engine/interrupt engine/lanes engine/profile engine/realize engine/roof engine/search nn/jit nn/loader nn/nn nn/recorder
    plugin/registry plugins-cpu/device)
  run_tests "${tests[@]}"
  run_tests --suite stress
  with_signals run_tests fault/apart fault/plugins fault/reopen fault/trials fault/worker
  conformance_of_queues
  programs=100
fi
if is_part programs; then
  # The tests above had themselves built, and the plugins.
  ninja -C "$folder" tests/differential/test-differential
  random_programs CPU
  random_programs REF::groups,words,items=1024 --no-f64
fi

# The interpreter is not instrumented: the sanitizers' libraries have to be there before it. Half an hour at most.
python_package() {
  local python=/usr/bin/python3 end=$((SECONDS + 1800)) row
  # The description of the interface and what is in Python are those of the build around this one.
  local typelib=$outer/libtinycore
  if [ ! -f "$typelib/Tiny-1.0.typelib" ] || ! $python -c 'import gi, numpy, torch' 2>/dev/null; then
    echo "sanitize: the Python package is skipped: no introspection in $outer, or $python lacks gi, numpy or torch"
    [ -z "$part" ] || exit 77
    return
  fi
  for row in python/test_{refusals,tensor,exchange,func,jit,recordings,nonsense}.py "python/test_threads.py CPU" \
    "torch/test-torch.py basic" "torch/test-torch.py indexing" "torch/test-torch.py loss" "programs/test-programs.py --count 100"; do
    if [ $SECONDS -ge $end ]; then
      echo "sanitize: tests/$row and what follows had no time left"
      failed=1
      return
    fi
    local script=${row%% *} arguments=() device=REF
    [ "$row" = "$script" ] || read -ra arguments <<<"${row#* }"
    [ "${arguments[*]}" != CPU ] || { device=CPU arguments=(); } # too much for an interpreter
    echo "sanitize: tests/$row"
    (cd "$source/tests/${script%/*}" && with_plugins env DEV=$device \
      "GI_TYPELIB_PATH=$typelib" "PYTHONPATH=$outer/bindings/python" "LD_LIBRARY_PATH=$folder/libtinycore" \
      "ASAN_OPTIONS=log_path=$reports/report:detect_leaks=0" "LD_PRELOAD=$(${CC:-cc} -print-file-name=libasan.so) $(${CC:-cc} -print-file-name=libubsan.so)" \
      timeout $((end - SECONDS)) $python "${script#*/}" "${arguments[@]}" | grep -v '^ok') || failed=1
  done
}
if [ "$kind" = address ] && is_part python; then
  python_package
fi
