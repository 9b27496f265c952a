#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""broken.py: that the conformance suite fails for every broken backend, and passes the unbroken one.

  broken.py --suite CONFORMANCE --probe PROBE --plugin BROKEN.so NAME=PLUGIN.so... [--level LEVEL] [--jobs N]
            [--no-control] [--table FILE] [--only GLOB...]

A fault is caught when a case fails with it that passes, or is not listed, without it. First the cases run that the fault's row names,
then all but those of numbers, in core and in full, then all; the first case that fails ends a run, and what was
caught ends it all. Prints TAP, and the table of what caught what in how many seconds."""
import argparse
import collections
import concurrent.futures
import fnmatch
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

RUN_SECONDS = 300  # of one run of the suite; none is to take so long, whatever the backend does
CONTROL_SECONDS = 900  # of a whole one, of a backend with nothing wrong
HANG_SCALE = 0.05  # what a case may take when it hangs, of what it may take otherwise
SCAN_MS = 3000     # what loading and scanning may take then
# Cases of numbers are ten times as many as all others.
WITHOUT_NUMBERS = [group + '/*' for group in (
    'load', 'hygiene', 'declared', 'skew', 'tables', 'lifecycle', 'memory', 'limits', 'order', 'points', 'exec', 'pair',
    'faults', 'kernels', 'claims', 'replay', 'random')]
NOTHING_RAN = 3
BAD = ('failed', 'crashed', 'hung', 'ended')


class Suite:
    def __init__(self, options):
        self.program, self.plugin = options.suite, os.path.abspath(options.plugin)
        self.around = {name: os.path.abspath(path) for name, path in (pair.split('=', 1) for pair in options.around)}
        lines = subprocess.run([options.probe, '--list'], check=True, capture_output=True, text=True).stdout
        self.faults = [json.loads(line) for line in lines.splitlines()]
        self.good = {}  # by what it is put around, and the case: whether it passes without a fault

    def run(self, fault, name, level, globs, words=(), limit=RUN_SECONDS):
        """(exit status, {case: outcome}, seconds, what it printed, whether the fault did anything) of a run of the suite."""
        command = [self.program, self.plugin, '--level', level, '--jobs', '1', *words]
        for glob in globs:
            command += ['--filter', glob]
        started = time.monotonic()
        with tempfile.TemporaryDirectory(prefix='tiny-broken-') as folder:
            report, manifest = pathlib.Path(folder, 'report.json'), pathlib.Path(folder, 'broken.json')
            if name.startswith('hang-'):
                manifest.write_text(json.dumps({'format_version': 1, 'name': 'BROKEN', 'abi': 1, 'module': self.plugin,
                                                'class': 'simulator', 'probe': {'timeout_ms': SCAN_MS}}))
                command += ['--timeout-scale', str(HANG_SCALE), '--manifest', str(manifest)]
            environment = dict(os.environ, TINY_BROKEN=name, TINY_BROKEN_AROUND=self.around[fault['around']],
                               TINY_BROKEN_TRACE=f'{folder}/trace', XDG_CACHE_HOME=f'{folder}/cache', MALLOC_PERTURB_='0',
                               SAMPLE_BOARD='latency=2000')
            if fault['arch']:
                environment['TINY_BROKEN_ARCH'] = fault['arch']
            with tempfile.TemporaryFile() as out:
                process = subprocess.Popen(command + ['--json', str(report)], stdin=subprocess.DEVNULL, stdout=out,
                                           stderr=subprocess.STDOUT, env=environment, start_new_session=True)
                try:
                    status = process.wait(limit)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, 9)
                    process.wait()
                    status = 'the suite hangs'
                out.seek(0)
                text = out.read().decode(errors='replace')
            cases = {}
            if report.exists():
                cases = {case['name']: case['outcome'] for case in json.loads(report.read_text())['cases']}
            return status, cases, time.monotonic() - started, text, pathlib.Path(folder, 'trace').exists()

    def passes(self, fault, level, case):
        """Whether that case passes, or is not listed, with nothing wrong."""
        key = fault['around'], fault['arch'], case
        if key not in self.good:
            status, cases, *rest = self.run(fault, 'none', level, [case])
            # One that is listed for what the fault claims is not there without it: nothing ran.
            self.good[key] = cases.get(case, 'passed' if status == NOTHING_RAN else None) == 'passed'
        return self.good[key]

    def catch(self, fault, deepest):
        """(the case that failed because of it, seconds, whether the fault has ever done anything, exit status)."""
        hint = [glob for glob in fault['cases'].split('|') if glob]
        stages = [('core', hint), ('core', WITHOUT_NUMBERS), ('full', WITHOUT_NUMBERS + hint), ('full', [])][:deepest]
        started, has_acted, status = time.monotonic(), False, None
        for level, globs in stages:
            # What fails without the fault as well is no catch, and then the others have to run too.
            for words in (['--fail-fast'], []):
                status, cases, took, text, acted = self.run(fault, fault['name'], level, globs, words)
                has_acted = has_acted or acted
                wrong = [case for case, outcome in cases.items() if outcome in BAD]
                caught = next((case for case in wrong if self.passes(fault, level, case)), None)
                if caught and status not in (0, 77):
                    return caught, time.monotonic() - started, has_acted, status
                if not wrong:
                    break
        return None, time.monotonic() - started, has_acted, status


def control(suite, options):
    """Nothing wrong, nothing found: in core and full, around each that has several faults. (Of one that has a single
    fault the case that catches it is run, as always.)"""
    failed = 0
    counts = collections.Counter(fault['around'] for fault in suite.faults)
    wanted = [(around, level, 'none') for around in suite.around if counts[around] > 1 for level in ('core', 'full')]
    wanted += [('REF', 'core', fault['name']) for fault in suite.faults if fault['name'].startswith('none-')]

    def judge(row):
        around, level, name = row
        return suite.run({'around': around, 'arch': '', 'cases': ''}, name, level, [], limit=CONTROL_SECONDS)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for (around, level, name), (status, cases, seconds, text, acted) in zip(wanted, pool.map(judge, wanted)):
            wrong = [case for case, outcome in cases.items() if outcome in BAD]
            is_right = status == 0 and not wrong and (not acted or name != 'none')
            failed += not is_right
            print(f'{"ok" if is_right else "not ok"} - {name} around {around}, {level}: {len(cases)} cases, status {status}, '
                  f'{seconds:.0f} s{": " if wrong else ""}{", ".join(wrong[:5])}', flush=True)
    return len(wanted), failed


def main():
    parser = argparse.ArgumentParser(description='catches broken backends')
    for name in ('suite', 'probe', 'plugin'):
        parser.add_argument('--' + name, required=True)
    parser.add_argument('--stages', type=int, default=4, help='how far to look, from 1 to 4')
    parser.add_argument('--jobs', type=int, default=2)
    parser.add_argument('--no-control', action='store_true')
    parser.add_argument('--table', help='write it to this file as well')
    parser.add_argument('--only', nargs='+', default=['*'])
    parser.add_argument('around', nargs='+')
    options = parser.parse_args()
    suite = Suite(options)
    started = time.monotonic()
    n_controls, failed = (0, 0) if options.no_control else control(suite, options)
    faults = [fault for fault in suite.faults if not fault['name'].startswith('none') and fault['around'] in suite.around
              and any(fnmatch.fnmatch(fault['name'], glob) for glob in options.only)]
    table = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for fault, (caught, seconds, has_acted, status) in zip(faults, pool.map(lambda one: suite.catch(one, options.stages), faults)):
            failed += not caught
            how = caught or f'MISSED{"" if has_acted else ", it was never met"} (status {status})'
            table.append(f'{fault["name"]:24} {how:44} {seconds:6.1f} s  {fault["what"]}')
            print(f'{"ok" if caught else "not ok"} - {fault["name"]}: {how} [{seconds:.1f} s]', flush=True)
    print(f'1..{len(faults) + n_controls}')
    print(''.join(f'# {line}\n' for line in table), end='')
    print(f'# {len(faults)} broken backends, {failed} not as wanted, {time.monotonic() - started:.0f} s')
    if options.table:
        pathlib.Path(options.table).write_text('\n'.join(table) + '\n')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
