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
#
# address: AddressSanitizer with LeakSanitizer, and UndefinedBehaviourSanitizer. thread: ThreadSanitizer over what has threads:
# devices, plugins that hang, the engine with search, lanes and replay, loaders, training, the stress tests and some random
# programs.
# The first run compiles what the part needs, later ones what has changed. 77: the compiler has no sanitizers.
set -euo pipefail
source=$(cd "$(dirname "$0")/.." && pwd)
kind=${1:?address or thread}
folder=${2:?a folder to build in}/$kind
mkdir -p "$2"
outer=$(cd "$2/../.." && pwd)
part=${3:-}
is_part() { [ -z "$part" ] || [ "$part" = "$1" ]; }

case $kind in
address) sanitizers=address,undefined ;;
thread) sanitizers=thread ;;
*) echo "sanitize: $kind is neither address nor thread" >&2; exit 2 ;;
esac

trial=$(mktemp -d)
failed=0 # what fails hides nothing after it
finish() {
  local status=$?
  [ $status != 0 ] || status=$failed
  rm -rf -- "$trial"
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
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
# Without intercept_tls_get_addr=0 a block of thread-local data whose address ends in 0x010, as LLVM's may, is taken for
# one of glibc 2.19 (dtls->header of GCC's libsanitizer), and LeakSanitizer itself ends by reading what is no memory. The
# dynamic linker's memory is searched all the same.
export ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1:intercept_tls_get_addr=0
export LSAN_OPTIONS=suppressions=$source/tests/lsan.supp:print_suppressions=0
export TSAN_OPTIONS=suppressions=$source/tests/tsan.supp:halt_on_error=1:second_deadlock_stack=1

run_tests() { meson test -C "$folder" --print-errorlogs --timeout-multiplier 5 "$@" || failed=1; }
with_plugins() {
  env "TINY_PLUGIN_PATH=$folder/plugins.d" "TINY_SCAN_HELPER=$folder/tools/tiny-scan" "$@"
}
random_programs() { # DEV, arguments
  with_plugins env "DEV=$1" "$folder/tests/differential/test-differential" --seed 4000001 --count $programs "${@:2}" || failed=1
}
if [ "$kind" = address ]; then
  if is_part unit; then run_tests --suite unit; fi
  if is_part programs; then run_tests --suite gradient --suite nonsense --suite stress; fi
  if [ "$part" = python ]; then # what the package loads
    meson compile -C "$folder" tinycore-1.0 tiny-cl tiny-cpu tiny-null tiny-ref tiny-webgpu tiny-scan tinycore
  fi
  programs=300
else
  # GLib's own allocator gives memory from thread to thread without a word.
  export G_SLICE=always-malloc
  # Device, engine with search, lanes and replay, capture and training, threads that are stopped, a forked pool; random programs
  # below.
  tests=(base/descriptor base/stats device/buffer device/device device/table device/timeline engine/asynchronous engine/cache
    engine/interrupt engine/lanes engine/profile engine/realize engine/roof engine/search fault/apart nn/jit nn/loader nn/nn nn/recorder
    plugin/registry plugins-cpu/device)
  run_tests "${tests[@]}"
  run_tests --suite stress
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
      "ASAN_OPTIONS=detect_leaks=0" "LD_PRELOAD=$(${CC:-cc} -print-file-name=libasan.so) $(${CC:-cc} -print-file-name=libubsan.so)" \
      timeout $((end - SECONDS)) $python "${script#*/}" "${arguments[@]}" | grep -v '^ok') || failed=1
  done
}
if [ "$kind" = address ] && is_part python; then
  python_package
fi
