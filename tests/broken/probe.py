#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""probe.py: that every fault is one: what a backend with it does differs from what one without does.

  probe.py PROBE BROKEN.so NAME=PLUGIN.so... [--only GLOB...]     TAP

A fault that changes nothing would be missed by every suite, and say nothing of it."""
import concurrent.futures
import fnmatch
import json
import os
import subprocess
import sys
import tempfile

HANG_SECONDS = 3    # of a fault that hangs; twenty times what a run takes
LIMIT_SECONDS = 60  # of any other


class Probe:
    def __init__(self, probe, plugin, around):
        self.probe, self.plugin, self.around = probe, plugin, around
        self.faults = [json.loads(line) for line in
                       subprocess.run([probe, '--list'], check=True, capture_output=True, text=True).stdout.splitlines()]

    def transcript(self, fault, name):
        """What comes of a run with the fault of that name, as @fault is run."""
        path = self.around.get(fault['around'])
        if path is None:
            return None
        # Memory is not to be filled: of one buffer, 4 GiB, only the end is used.
        environment = dict(os.environ, TINY_BROKEN=name, TINY_BROKEN_AROUND=path, LC_ALL='C', MALLOC_PERTURB_='0',
                           SAMPLE_BOARD='latency=2000')
        if fault['arch']:
            environment['TINY_BROKEN_ARCH'] = fault['arch']
        limit = HANG_SECONDS if name.startswith('hang-') else LIMIT_SECONDS
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = subprocess.Popen([self.probe, self.plugin, fault['section']], stdin=subprocess.DEVNULL,
                                       stdout=out, stderr=err, env=environment, start_new_session=True)
            try:
                status = process.wait(limit)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                status = 'hangs'
            out.seek(0)
            err.seek(0)
            return f'{out.read().decode(errors="replace")}{err.read().decode(errors="replace")}status {status}\n'


def difference(good, bad):
    good, bad = good.splitlines(), bad.splitlines()
    for one, other in zip(good, bad):
        if one != other:
            return f'{other!r}, not {one!r}'
    return f'ends with {bad[-1]!r} after {len(bad)} lines, not with {good[-1]!r} after {len(good)}'


def main():
    arguments = sys.argv[1:]
    only = ['*']
    if '--only' in arguments:
        at = arguments.index('--only')
        only = arguments[at + 1:]
        del arguments[at:]
    probe = Probe(arguments[0], arguments[1], dict(pair.split('=', 1) for pair in arguments[2:]))
    good, failed = {}, 0
    for fault in probe.faults:
        key = fault['around'], fault['arch'], fault['section']
        if key not in good and probe.around.get(fault['around']):
            good[key] = probe.transcript(fault, 'none')
    faults = [fault for fault in probe.faults if any(fnmatch.fnmatch(fault['name'], glob) for glob in only)]
    print(f'1..{len(faults)}')
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        runs = pool.map(lambda fault: probe.transcript(fault, fault['name']), faults)
        for number, (fault, bad) in enumerate(zip(faults, runs), 1):
            name = fault['name']
            if bad is None:
                print(f'ok {number} {name} # SKIP it is in source, which this program does not make ({fault["around"]})')
                continue
            ours = good[fault['around'], fault['arch'], fault['section']]
            differs = bad != ours
            is_right = differs == (not name.startswith('none')) and 'there is no fault' not in bad
            failed += not is_right
            print(f'{"ok" if is_right else "not ok"} {number} {name}: {difference(ours, bad) if differs else "the same"}', flush=True)
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
