import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { appendAudit } from '../../bin/addresses/audit.ts';
import { holdingsText } from '../../bin/addresses/listing.ts';
import { addressFinalizers } from '../../constructs/api/addresses.ts';
import { objectOf } from '../../constructs/lib/json.ts';
import { planAdoption } from '../../executor/addressbook/adopt/plan.ts';
import { targetOf } from '../../executor/addressbook/adopt/write.ts';
import { bookOf } from '../../executor/addressbook/book.ts';
import { planStripping } from '../../executor/addressbook/finalizers/plan.ts';
import { holdingsOf } from '../../executor/addressbook/holdings.ts';
import { readService } from '../../executor/addressbook/pins.ts';
import { summaryOf } from '../../executor/addressbook/summary.ts';
import { clientLedgerApi } from '../../executor/addresses/client-api.ts';
import type { KubeClient } from '../../executor/kube/client.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import { addressObject, claimObject, classObject, moment, serviceObject } from './addressbook-support.ts';
import { scenario as coreScenario } from './addresses-bed.ts';
import { associated, one, scenario, stock } from './addresses-metallb-bed.ts';
import { VirtualClock } from './virtualClock.ts';

/** What people write who mean no good, or have no luck. */

const signal = new AbortController().signal;
const notNames = ['', '.', '..', '../../namespaces/x', 'a/b', 'A', 'a b', 'ä', '\ud800', 'a\u0000', 'x'.repeat(65_536)];

test('a server is asked for nothing that can not be a name: there is no such object', async () => {
  const asked: string[] = [];
  const client = {
    get: (ref: { readonly name: string }) => {
      asked.push(ref.name);
      return Promise.resolve({ type: 'found', object: { metadata: {} } });
    },
  } as unknown as KubeClient;
  const api = clientLedgerApi(client);
  for (const name of notNames) {
    assert.equal(await api.read({ kind: 'IPAddressClaim', namespace: 'tenant-a', name }, signal), { type: 'absent' });
    assert.equal(await api.read({ kind: 'IPAddressClaim', namespace: name, name: 'web' }, signal), { type: 'absent' });
    assert.equal(await api.read({ kind: 'IPAddress', name }, signal), { type: 'absent' });
  }
  assert.equal(asked, []);
  for (const name of ['web', '1.a-b.c', 'a'.repeat(63)]) await api.read({ kind: 'IPAddress', name }, signal);
  assert.is(asked.length, 3);
});

for (const name of ['web/x', '../tenant-b/web', ' ', '..', 'x'.repeat(10_000)])
  scenario(`a Service that comes to name what is no claim lets its address go: ${name.slice(0, 20)}`, async (bed) => {
    await associated(bed);
    assert.is(bed.user(one), 'tenant-a/a');
    bed.names('a', name);
    await bed.settle();
    assert.equal([bed.user(one), bed.pin('a'), bed.phase('IPAddressClaim', 'web')], [undefined, undefined, 'Bound']);
    assert.ok(bed.driver.reasons('a').includes('ClaimNotFound'), 'told');
    bed.delete('Service', 'a');
  });

scenario('a pin that is empty is nobody else’s, and hides the older one', async (bed) => {
  await stock(bed);
  bed.claim('web', { addressName: one });
  await bed.settle();
  bed.service('a', { claim: 'web', pin: '' });
  bed.annotate('Service', 'a', 'metallb.universe.tf/loadBalancerIPs', '198.51.100.9');
  await bed.settle();
  assert.equal([bed.user(one), bed.pin('a')], ['tenant-a/a', '203.0.113.0']);
});

coreScenario('a clock that can not be read begins anew, and nobody gets the address before', async (bed) => {
  bed.class('public', { releaseDelay: '1h' });
  const plant = (text: string, lastTransitionTime: string): void => {
    const object = addressObject(`ip-${text}`, text, {
      phase: 'Released',
      claim: 'tenant-a/gone uid-gone',
      bound: ['False', 'Released', 0],
    });
    const conditions = [{ type: 'Bound', status: 'False', reason: 'Released', message: '', lastTransitionTime }];
    bed.server.plant({ ...object, status: { ...object.status, conditions } });
  };
  const texts = ['', 'never', '2016-12-31T23:59:60Z'];
  for (const [n, text] of texts.entries()) plant(`203.0.113.${n}`, text);
  await bed.settle();
  await bed.wait(59 * 60_000);
  const phases = (): unknown[] => texts.map((_, n) => bed.phase('IPAddress', `ip-203.0.113.${n}`));
  assert.equal(phases(), ['Released', 'Released', 'Released']);
  await bed.wait(2 * 60_000);
  assert.equal(phases(), ['Available', 'Available', 'Available']);
});

test('adoption reads pins as MetalLB does: an empty one hides the older one', () => {
  const old = 'metallb.universe.tf/loadBalancerIPs';
  const pinOf = (pins: Record<string, string>) => readService(serviceObject('a/b', { pins })).pin.type;
  assert.equal(
    [pinOf({ [old]: '203.0.113.7' }), pinOf({ 'metallb.io/loadBalancerIPs': '', [old]: '203.0.113.7' })],
    ['one', 'none'],
  );
});

test('a tenant’s stamp does not give away finalizers of somebody else', () => {
  const other = 'billing.example/quota';
  const withFinalizers = (object: KubeObject, ...finalizers: string[]): KubeObject => ({
    ...object,
    metadata: { ...object.metadata, finalizers },
  });
  const claim = withFinalizers(claimObject('tenant-a/web'), addressFinalizers.claim, other);
  const stamped = {
    ...claim,
    metadata: { ...claim.metadata, annotations: { 'local.sdn.cozystack.io/provisioner': 'billing.example' } },
  };
  const plan = planStripping(bookOf([stamped, withFinalizers(addressObject('ip-1', '203.0.113.1'), other)]), []);
  assert.equal(
    plan.objects.map(({ name, remove, keep }) => [name, remove, keep]),
    [['web', [addressFinalizers.claim], [other]]],
  );
});

test('an adoption gives no claim an address that was made anew under the name, as another one', async () => {
  const service = serviceObject('tenant-a/web', {
    pins: { 'metallb.io/loadBalancerIPs': '203.0.113.7' },
    has: ['203.0.113.7'],
  });
  const recorded = addressObject('spare', '203.0.113.7', { phase: 'Available' });
  const book = bookOf([classObject('public', ['203.0.113.0/29']), recorded]);
  const request = { namespace: 'tenant-a', service: 'web' };
  const decision = planAdoption({ book, services: [readService(service)] }, request);
  if (decision.type === 'refused') throw new Error(JSON.stringify(decision.problems));
  const step = decision.plan.steps.find((each) => each.step === 'address');
  assert.is(step?.write, 'merge');
  const judged = async (object: KubeObject): Promise<string> => {
    const client = { get: () => Promise.resolve({ type: 'found', object }) } as unknown as KubeClient;
    return (await targetOf(client, decision.plan, step as NonNullable<typeof step>, signal)).type;
  };
  const other = addressObject('spare', '203.0.113.6', { phase: 'Available' });
  const elsewhere = addressObject('spare', '203.0.113.7', { phase: 'Available', className: 'office' });
  assert.equal([await judged(recorded), await judged(other), await judged(elsewhere)], ['open', 'refused', 'refused']);
  // Stored before texts had to be canonical.
  assert.is(await judged(addressObject('spare', '::ffff:203.0.113.7', { phase: 'Available' })), 'open');
});

const dangerous = 'x\n203.0.113.9 public\u001b[2J\u0007\u009b1A\u202e\r';

test('what tenants write does nothing to a terminal, and is no line of its own', () => {
  const claims = [claimObject('tenant-a/web', { className: dangerous })];
  const addresses = [addressObject('ip-1', dangerous, { className: dangerous, phase: 'Bound' })];
  const holdings = holdingsOf(bookOf([...claims, ...addresses]), {}, moment);
  const harmful = /\u202e|(?!\n)\p{Cc}/u;
  for (const width of [undefined, 20]) {
    const text = holdingsText(holdings, width);
    assert.not.match(text, harmful);
    assert.not.match(text, /^203\.0\.113\.9/m);
    assert.match(text, /x\\u000a203\.0\.113\.9 public\\u001b\[2J/);
  }
});

test('classes that tenants make up are none in the summary', () => {
  const made = Array.from({ length: 50 }, (_, n) => claimObject(`tenant-a/c${n}`, { className: `made-up-${n}` }));
  const summary = summaryOf(bookOf([classObject('public', ['203.0.113.0/29']), ...made]));
  assert.equal(
    summary?.classes.map(({ name, claims }) => [name, claims.Pending]),
    [
      ['', 50],
      ['public', 0],
    ],
  );
});

/** Runs on a folder that is taken away afterwards. */
async function inFolder(run: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'keelson-audit-'));
  try {
    await run(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const clock = new VirtualClock();
const append = (file: string): Promise<void> => appendAudit(file, clock, { event: 'done' });

async function refusal(file: string): Promise<string> {
  try {
    await append(file);
  } catch (error) {
    if (error instanceof Error && error.name === 'FailedWithProblems') return error.message;
    throw error;
  }
  return 'written';
}

test('a record whose last line was cut off keeps what is written after it readable', () =>
  inFolder(async (folder) => {
    const file = join(folder, 'audit.jsonl');
    writeFileSync(file, '{"event":"plan"}\n{"event":"wri');
    await append(file);
    await append(file);
    const lines = readFileSync(file, 'utf8').split('\n');
    assert.is(lines.length, 5);
    assert.equal([lines[0], lines[1], lines[4]], ['{"event":"plan"}', '{"event":"wri', '']);
    assert.equal(
      lines.slice(2, 4).map((line) => objectOf(JSON.parse(line)).event),
      ['done', 'done'],
    );
  }));

test('a record is kept in a file or not at all, and nothing is waited for', () =>
  inFolder(async (folder) => {
    execFileSync('mkfifo', [join(folder, 'pipe')]);
    mkdirSync(join(folder, 'folder'));
    assert.match(await refusal(join(folder, 'pipe')), /it is not a file/);
    assert.match(await refusal(join(folder, 'folder')), /a folder stands in its place/);
    assert.match(await refusal(join(folder, 'missing', 'file')), /ENOENT/);
    if (existsSync('/dev/full')) assert.match(await refusal('/dev/full'), /it is not a file|the disk is full/);
    const locked = join(folder, 'locked');
    mkdirSync(locked);
    chmodSync(locked, 0o500);
    if (process.getuid?.() !== 0) assert.match(await refusal(join(locked, 'file')), /permission denied/);
  }));

test.run();
