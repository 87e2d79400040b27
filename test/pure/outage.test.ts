import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { conditionsFor, type DomainCondition } from '../../constructs/api/conditions.ts';
import { annotations, ledgerFormatVersion } from '../../constructs/api/constants.ts';
import { decodeLedger, encodeLedger } from '../../constructs/api/ledger.ts';
import type { KubeClient } from '../../executor/kube/client.ts';
import { Contact, type ContactEvent } from '../../executor/kube/contact.ts';
import type { Transport, TransportRequest } from '../../executor/kube/transport.ts';
import { guardedTransport } from '../../executor/lease/guarded.ts';
import { defaultLeaseTimings } from '../../executor/lease/timings.ts';
import { observeInTime } from '../../executor/network/observe.ts';
import { installationStatus } from '../../executor/network/status.ts';
import { defaultControllerTimings } from '../../executor/release/controller.ts';
import { Journal } from '../../executor/release/journal.ts';
import { standsUntil, startOfGrace, watchTrust } from '../../executor/release/trust.ts';
import { digest, sha } from './executor-support.ts';
import { specOf } from './network-fixture.ts';
import { installation } from './network-support.ts';
import { VirtualClock } from './virtualClock.ts';

/** What an executor that has lost its API server may still say, and for how long; on a clock that stands still. */

const grace = { everyMs: 30_000, graceMs: 30_000 };

test('a status stands until a round is overdue; from the end of an outage on a new round has thirty seconds', () => {
  assert.is(standsUntil({ lookedAt: 100_000, answersSince: 0 }, grace), 160_000);
  assert.is(standsUntil({ lookedAt: undefined, answersSince: 5_000 }, grace), 35_000);
  assert.is(standsUntil({ lookedAt: 100_000, answersSince: 700_000 }, grace), 730_000, 'it was looked at before');
  assert.is(standsUntil({ lookedAt: 701_000, answersSince: 700_000 }, grace), 761_000, 'and again after it');
  assert.is(standsUntil({ lookedAt: 100_000, answersSince: undefined }, grace), Number.POSITIVE_INFINITY);
  assert.is(defaultControllerTimings.outageGraceMs, 30_000);
  // A pass is given up, and so nothing is written on old knowledge, before the Lease is over.
  const { durationMs, marginMs } = defaultLeaseTimings;
  assert.ok(defaultControllerTimings.silenceMs < durationMs - marginMs);
});

function listened(clock: VirtualClock): { contact: Contact; told: [ContactEvent, number][] } {
  const contact = new Contact({ clock, silenceMs: 5_000 });
  const told: [ContactEvent, number][] = [];
  contact.listen((event) => told.push([event, clock.monotonic()]));
  return { contact, told };
}

test('contact: one second is forgotten, ten minutes are told at both ends, once', async () => {
  const clock = new VirtualClock();
  const { contact, told } = listened(clock);
  contact.attempted({});
  await clock.advance(1_000);
  contact.attempted({ status: 200 });
  await clock.advance(60_000);
  assert.equal(told, []);
  assert.is(contact.since, 0);
  assert.is(clock.sleeping, 0, 'no timer is left of a silence that ended');

  contact.attempted({});
  for (let second = 0; second < 600; second += 2) {
    await clock.advance(2_000);
    contact.attempted(second % 4 === 0 ? {} : { status: 503 });
  }
  assert.is(contact.since, undefined);
  contact.attempted({ status: 500 });
  assert.is(contact.since, undefined, 'a 500 proves nothing');
  contact.attempted({ status: 429 });
  contact.attempted({ status: 200 });
  assert.equal(told, [
    ['lost', 66_000],
    ['back', 661_000],
  ]);
  assert.equal([contact.since, contact.returned], [661_000, 661_000]);
  contact.attempted({});
  contact.close();
  await clock.advance(60_000);
  assert.is(told.length, 2, 'a closed one tells nothing more');
});

test('who begins soon after an outage has what is left of the grace; later, and without one, all of it', () => {
  assert.is(startOfGrace(102_000, 100_000, 30_000), 100_000);
  assert.is(startOfGrace(130_000, 100_000, 30_000), 130_000);
  assert.is(startOfGrace(102_000, undefined, 30_000), 102_000);
});

test('trust: a term that begins after an outage has no grace of its own', async () => {
  const clock = new VirtualClock();
  const { contact } = listened(clock);
  assert.is(contact.returned, undefined, 'the start of a process is no return');
  contact.attempted({});
  await clock.advance(10_000);
  contact.attempted({ status: 200 });
  await clock.advance(2_000);
  const over: number[] = [];
  const stop = new AbortController();
  const watching = watchTrust(
    { clock, contact, ...grace, lookedAt: () => undefined, over: () => over.push(clock.monotonic()) },
    stop.signal,
  );
  await clock.advance(60_000);
  stop.abort();
  await watching;
  contact.close();
  assert.equal(over, [40_000]);
});

async function trustOver(rounds: readonly number[], outage: readonly [from: number, to: number], until: number) {
  const clock = new VirtualClock();
  const { contact } = listened(clock);
  let lookedAt: number | undefined;
  const over: number[] = [];
  const stop = new AbortController();
  const watching = watchTrust(
    { clock, contact, ...grace, lookedAt: () => lookedAt, over: () => over.push(clock.monotonic()) },
    stop.signal,
  );
  for (let second = 0; second <= until; second += 1) {
    const away = second * 1000 >= outage[0] && second * 1000 < outage[1];
    contact.attempted(away ? {} : { status: 200 });
    if (rounds.includes(second * 1000)) lookedAt = clock.monotonic();
    await clock.advance(1_000);
  }
  stop.abort();
  await watching;
  contact.close();
  assert.is(clock.sleeping, 0);
  return over;
}

const every30 = (from: number, to: number): number[] =>
  Array.from({ length: Math.floor((to - from) / 30_000) + 1 }, (_, n) => from + n * 30_000);

test('trust: nothing is over while rounds come; after ten minutes of outage it is over in thirty seconds', async () => {
  assert.equal(await trustOver(every30(0, 300_000), [0, 0], 300), []);
  // The outage lasts from 60 s to 660 s; no round comes after it.
  assert.equal(await trustOver(every30(0, 59_000), [60_000, 660_000], 760), [690_000]);
  // A round within the grace keeps what is told.
  assert.equal(await trustOver([...every30(0, 59_000), ...every30(680_000, 800_000)], [60_000, 660_000], 800), []);
  // Without an outage a round that never ends is over after its turn and the grace.
  assert.equal(await trustOver([0], [0, 0], 100), [60_000]);
  // A process that never completes a round.
  assert.equal(await trustOver([], [0, 0], 100), [30_000]);
});

function steadyJournal(): Journal {
  const journal = new Journal(new VirtualClock(), () => undefined);
  journal.record.state = 'Reconciling';
  journal.record.desired = digest('1');
  journal.record.actual = digest('1');
  journal.outcome({ kind: 'steady', reason: 'Completed', message: 'in place' });
  return journal;
}

const readyOf = (journal: Journal): string => {
  const { outcome } = journal.record;
  const [ready] = conditionsFor({ outcome, previous: [], generation: 1, now: 0 });
  return `${ready?.status} ${ready?.reason}`;
};

test('journal: silence says nothing of what is in place, until it has lasted too long; anything else does at once', () => {
  const silent = [{ reason: 'ApiUnavailable', message: 'no answer from the API server' }];
  const journal = steadyJournal();
  journal.failed(silent, 'retry', 1_000);
  assert.is(readyOf(journal), 'True Completed');
  assert.equal([journal.record.attempt, journal.record.state], [1, 'Reconciling']);
  journal.outdated();
  assert.is(readyOf(journal), 'Unknown ObservationOutdated');
  assert.match(journal.record.outcome.message, 'no answer from the API server');
  journal.failed(silent, 'retry', 1_000);
  assert.is(readyOf(journal), 'Unknown ObservationOutdated', 'it is not False: nothing was seen to be wrong');
  const other = steadyJournal();
  other.failed([...silent, { reason: 'Forbidden', message: 'no' }], 'retry', 1_000);
  assert.is(readyOf(other).split(' ')[0], 'False');
  other.outdated();
  assert.is(readyOf(other).split(' ')[0], 'False', 'what is told of work is not told of a payload in place');
});

test('installation: a Release that can not be read makes Ready Unknown, whatever it said before', () => {
  const status = installationStatus({
    installation: installation(),
    spec: specOf({}),
    release: undefined,
    unread: 'no answer',
    workloads: { type: 'WorkloadsReady', status: 'Unknown', reason: 'ObservationFailed', message: 'no answer' },
    planOnly: false,
    now: 0,
    tick: 0,
  });
  const ready = (status.conditions as { type: string; status: string; reason: string }[]).find(
    ({ type }) => type === 'Ready',
  );
  assert.equal([ready?.status, ready?.reason, status.phase], ['Unknown', 'ObservationFailed', 'Verifying']);
});

test('installation: a look at its workloads that does not end is Unknown after twenty seconds', async () => {
  const clock = new VirtualClock();
  const client = {
    list: (_selection: unknown, { signal }: { signal: AbortSignal }) =>
      new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true })),
  } as unknown as KubeClient;
  const target = { release: 'network-main', namespace: 'system' };
  let told: DomainCondition | undefined;
  const looking = observeInTime(client, target, { clock, limitMs: 20_000 }, new AbortController().signal).then(
    (seen) => {
      told = seen;
    },
  );
  await clock.advance(19_999);
  assert.is(told, undefined);
  await clock.advance(1);
  await looking;
  assert.equal([told?.status, told?.reason], ['Unknown', 'ObservationOutdated']);
  assert.match(told?.message ?? '', 'within 20s');
  // The end of the process is not a look that came too late.
  const stop = new AbortController();
  const stopped = observeInTime(client, target, { clock, limitMs: 20_000 }, stop.signal);
  stop.abort(new Error('the process ends'));
  await stopped.then(
    () => assert.unreachable('it answered'),
    (error: unknown) => assert.match(String(error), 'the process ends'),
  );
  assert.is(clock.sleeping, 0);
});

test('without its Lease a process sends no write, whoever asks; reads, dry runs, reviews and Leases pass', async () => {
  const sent: string[] = [];
  const inner: Transport = async ({ method, path }) => {
    sent.push(`${method} ${path}`);
    return { status: 200, headers: {}, body: (async function* () {})() };
  };
  let held = true;
  const transport = guardedTransport(inner, () => {
    if (!held) throw new Error('the Lease is lost');
  });
  const request = (method: TransportRequest['method'], path: string, query = {}): TransportRequest => ({
    method,
    path,
    query,
    headers: {},
    timeoutMs: 1,
  });
  const writes = [
    request('PATCH', '/api/v1/namespaces/demo/configmaps/leases'),
    request('DELETE', '/api/v1/namespaces/demo/configmaps/a'),
    request('PATCH', '/apis/keelson.dev/v1alpha1/namespaces/s/releases/r/status'),
    request('POST', '/apis/events.k8s.io/v1/namespaces/s/events'),
  ];
  const free = [
    request('GET', '/api/v1/namespaces/demo/configmaps/a'),
    request('PATCH', '/api/v1/namespaces/demo/configmaps/a', { dryRun: 'All' }),
    request('POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'),
    request('PUT', '/apis/coordination.k8s.io/v1/namespaces/s/leases/keelson-executor'),
    request('POST', '/apis/coordination.k8s.io/v1/namespaces/s/leases'),
  ];
  for (const each of [...writes, ...free]) await transport(each);
  held = false;
  sent.length = 0;
  for (const each of writes)
    await transport(each).then(
      () => assert.unreachable(each.path),
      () => undefined,
    );
  assert.equal(sent, []);
  for (const each of free) await transport(each);
  assert.is(sent.length, free.length);
});

test('ledgers: this format and the one before are read; a newer one is refused whole, and by name', () => {
  const entry = {
    id: '/ConfigMap/demo/a',
    state: 'applied' as const,
    sha256: sha('a'),
    phase: 'one',
    payload: digest('1'),
  };
  const [written] = encodeLedger(new Map([[entry.id, entry]]), { release: 'manifests-demo', namespace: 'system' });
  assert.ok(written);
  const marked = (format: string | undefined) => {
    const { [annotations.ledgerFormat]: _format, ...others } = written.metadata.annotations;
    const notes = format === undefined ? others : { ...others, [annotations.ledgerFormat]: format };
    return decodeLedger([{ ...written, metadata: { ...written.metadata, annotations: notes } }]);
  };
  assert.is(written.metadata.annotations[annotations.ledgerFormat], String(ledgerFormatVersion));
  for (const format of [undefined, String(ledgerFormatVersion)]) {
    const read = marked(format);
    assert.ok(read.ok && read.value.ledger.size === 1, `format ${format}`);
  }
  for (const format of [String(ledgerFormatVersion + 1), 'next']) {
    const read = marked(format);
    if (read.ok) throw new Error(`format ${format} was read`);
    assert.equal(
      read.problems.map(({ reason, object }) => [reason, object]),
      [['ExecutorTooOld', 'ConfigMap keelson-ledger-manifests-demo-0']],
    );
  }
});

test.run();
