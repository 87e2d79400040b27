import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { AdminClient } from '../apiserver/client.ts';
import type { AddressesResults, Measurement } from '../bench/addresses/measure.ts';
import { paced } from '../bench/addresses/paced.ts';
import { addressesProblems, describeAddresses } from '../bench/addresses/report.ts';
import { readOptions } from '../bench/options.ts';
import { machineFacts } from '../bench/proc.ts';
import { readRequests } from '../bench/requests.ts';

const measured = (p50: number, p95: number, more: Partial<Measurement> = {}): Measurement => ({
  pace: { rate: 5, seconds: 60 },
  asked: 300,
  served: 300,
  ...{ p50, p95, longest: 2 * p95, lateMs: 0, busyBefore: 0.1, writes: 4, ...more },
});

const results = (more: Partial<AddressesResults> = {}): AddressesResults => ({
  machine: machineFacts(),
  plain: measured(20, 40),
  matched: measured(30, 60, { cpuSeconds: 3 }),
  provided: measured(25, 60),
  hurried: measured(50, 120),
  ...{ startSeconds: 4, startMiB: 150, peakMiB: 170, coreMiB: 120 },
  ...more,
});

test('deeds begin at their time, whatever becomes of others, and are timed from there', async () => {
  const ends: number[] = [];
  const latencies = await paced(
    { rate: 200, seconds: 0.1 },
    async () => undefined,
    async (n) => {
      ends.push(n);
      return n === 3 ? undefined : performance.now() + 50;
    },
  );
  assert.equal([latencies.asked, latencies.served, ends.length], [20, 19, 20]);
  assert.ok(latencies.p50 >= 50 && latencies.longest >= latencies.p95);
});

test('what the ledger came to is told with its ratio to MetalLB alone, and what was missed', () => {
  const text = describeAddresses(results());
  assert.match(text, 'median 2.5, 95 of 100 3.0');
  assert.match(
    text,
    '| claims matched with recorded addresses | 5/s for 60 s | 300 of 300 | 30 | 60 | 120 | 4.0 | 10.0 | 0.10 |',
  );
  assert.equal(addressesProblems(results()), []);
  assert.equal(
    addressesProblems(
      results({
        startMiB: 201,
        matched: measured(900, 1_001, { served: 299 }),
        hurried: measured(9_000, 29_000, { served: 1 }),
      }),
    ),
    ['matched claims: 299 of 300 were served', '95 of 100 claims were matched within 1001 ms', 'the role took 201 MiB'],
  );
});

test('addresses of the ledger are requests that count; those that the API server books are none', async () => {
  const line = (group: string): string =>
    `apiserver_request_total{code="200",dry_run="",group="${group}",resource="ipaddresses",verb="PATCH"} 7`;
  const body = ['local.sdn.cozystack.io', 'networking.k8s.io'].map(line).join('\n');
  const admin = { expect: () => Promise.resolve({ body }) } as unknown as AdminClient;
  assert.equal(await readRequests(admin), { 'PATCH 200': 7 });
});

test('the benchmark of the ledger is asked for, and takes a minute at each pace', () => {
  const { addresses, seconds } = readOptions(['--addresses']);
  assert.equal([addresses, seconds, readOptions(['--addresses', '--seconds', '5']).seconds], [true, 60, 5]);
});

test.run();
