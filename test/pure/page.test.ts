import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { matrixOf } from '../../executor/observe/matrix.ts';
import { evidenceReport } from '../../executor/page/evidence.ts';
import { page } from '../../executor/page/html/page.ts';
import { ageText } from '../../executor/page/html/parts.ts';
import { installationView, matrixView } from '../../executor/page/installation.ts';
import { type PageModel, pageLimits } from '../../executor/page/model.ts';
import { type Known, pageModel } from '../../executor/page/page.ts';
import { releaseView } from '../../executor/page/release.ts';
import {
  centralRound,
  centralSample,
  chassisRound,
  chassisSample,
  nodeFacts,
  silences,
  withNb,
  withOutcome,
  withoutComponent,
} from './observe-support.ts';
import {
  drainRows,
  failedRelease,
  installationOf,
  knownOf,
  moment,
  networkRelease,
  networkRound,
  observedOf,
  readyCondition,
} from './page-support.ts';

const modelOf = (known: Known | undefined, tick = 1_000): PageModel =>
  pageModel({ identity: 'executor-1', namespace: 'keelson-system', planOnly: false, known, tick });
const well = observedOf({ network: networkRound() });
const all = (): Known => knownOf(installationOf(well, readyCondition), well, [networkRelease(), failedRelease()]);
const textOf = async (model: PageModel, now = moment): Promise<string> => String(await page(model, 'digest', now));

test('matrix: what each sidecar said, node by node, and nothing where nothing is wanted', () => {
  const matrix = matrixOf({ central: centralRound(), chassis: chassisRound(4), network: networkRound(4) });
  assert.equal(
    matrix.nodes.map(({ name, kubelet, central, chassis, probe }) => [
      name,
      ...[kubelet, central, chassis, probe].map(({ word }) => word),
    ]),
    [
      ['n1', 'ready', 'leads NB SB', 'connected', '4/4'],
      ['n2', 'ready', 'follows', 'connected', '4/4'],
      ['n3', 'ready', 'follows', 'connected', '4/4'],
      ['n4', 'ready', '', 'connected', '4/4'],
    ],
  );
  assert.is(matrix.nodes[3]?.central.state, 'absent');
  assert.equal(
    matrix.northd.map(({ node, status }) => `${node} ${status}`),
    ['n1 active', 'n2 standby', 'n3 standby'],
  );
  assert.equal(matrix.progress, { nbCfg: '3', sbCfg: '3', hvCfg: '3' });
});

test('matrix: only what is known to be missing is broken; every kind of silence is unknown, and has a word', () => {
  for (const outcome of silences) {
    const matrix = matrixOf({
      central: centralRound(3, withOutcome(2, outcome as never)),
      chassis: chassisRound(3, (n) => (n === 2 ? chassisSample(2, {}, outcome as never) : undefined)),
    });
    const row = matrix.nodes[1];
    assert.equal([row?.central.state, row?.chassis.state], ['unknown', 'unknown'], outcome.type);
    assert.ok(row?.central.word !== '' && row?.chassis.detail !== undefined, outcome.type);
    assert.is(matrix.members.find(({ node }) => node === 'n2')?.state, 'unknown');
  }
  const gone = matrixOf({ central: centralRound(3, withOutcome(2, { type: 'Broken', message: 'the node is gone' })) });
  assert.is(gone.nodes[1]?.central.state, 'broken');
});

test('matrix: a daemon that nobody listens for, a member that joins, a chassis without SB, a node that went', () => {
  const down = matrixOf({ central: centralRound(3, withoutComponent(3, 'nb', 'refused')) });
  assert.equal(down.nodes[2]?.central, { state: 'broken', word: 'nb refused' });
  const hung = matrixOf({ central: centralRound(3, withoutComponent(3, 'northd', 'timeout')) });
  assert.is(hung.nodes[2]?.central.state, 'unknown');
  const joining = matrixOf({ central: centralRound(3, withNb(3, { status: 'joining' })) });
  assert.equal([joining.members[2]?.state, joining.members[2]?.status], ['unknown', 'joining']);
  const electing = matrixOf({ central: centralRound(3, withNb(3, { role: 'candidate' })) });
  assert.equal([electing.members[2]?.state, electing.members[2]?.status], ['unknown', 'candidate']);
  const cut = matrixOf({ central: centralRound(3, withNb(3, { connected: false })) });
  assert.equal([cut.members[2]?.state, cut.members[2]?.status], ['broken', 'disconnected']);
  const alone = chassisSample(1, { controller: { connected: false, daemon: { socketInode: '1', startTicks: '1' } } });
  const lost = { ...chassisSample(2), target: { ...chassisSample(2).target, live: undefined } };
  const silent = {
    ...chassisSample(3),
    target: { ...chassisSample(3).target, live: nodeFacts(3, { ready: 'Unknown' }) },
  };
  const { nodes } = matrixOf({ chassis: { ...chassisRound(3), samples: [alone, lost, silent] } });
  assert.equal(
    nodes.map(({ kubelet, chassis }) => `${kubelet.word}/${chassis.word}`),
    ['ready/no SB', 'gone/connected', 'silent/connected'],
  );
  const paused = centralSample(1, 1, {
    northd: { state: 'paused', nb: true, sb: true, daemon: { socketInode: '1', startTicks: '1' } },
  });
  assert.is(matrixOf({ central: { ...centralRound(1), samples: [paused] } }).northd[0]?.state, 'broken');
});

test('a thousand nodes: counted in full, and only those are listed that are not well, the broken ones first', () => {
  const { nodes } = matrixOf({
    chassis: chassisRound(1000, (n) =>
      n % 20 === 0
        ? chassisSample(n, {}, { type: 'Hung', limitMs: 10_000 })
        : n === 777
          ? chassisSample(n, {}, { type: 'Broken', message: 'no pod' })
          : undefined,
    ),
  });
  const view = matrixView({ nodes });
  assert.equal(view.counts[2], { well: 949, broken: 1, unknown: 50 });
  assert.is(view.rows[0]?.name, 'n777');
  assert.is(view.rows.length, pageLimits.matrixRows);
  assert.is(view.more, 51 - pageLimits.matrixRows);
  assert.ok(JSON.stringify(view).length < 16_000);
  const few = matrixView({ nodes: nodes.slice(0, pageLimits.wholeMatrix) });
  assert.equal([few.summarised, few.rows.length], [false, pageLimits.wholeMatrix]);
});

test('installation: databases by the last round, or by the status where nothing was seen here', () => {
  const object = installationOf(well, readyCondition);
  const view = installationView(object, well, 1_000);
  assert.equal(
    view.databases.map(({ name, leader, term, members }) => [name, leader, term, members.length]),
    [
      ['OVN_Northbound', 'n1', '5', 3],
      ['OVN_Southbound', 'n1', '5', 3],
    ],
  );
  assert.is(view.evidence?.stale, false);
  assert.is(installationView(object, well, 60_001).evidence?.stale, true);
  const member = (node: string, serverID: string): JsonObject => ({ node, serverID });
  const topology = {
    databases: [
      {
        name: 'OVN_Northbound',
        model: 'clustered',
        leader: 'b',
        term: '7',
        members: [member('n1', 'a'), member('n2', 'b')],
      },
    ],
  };
  const told = installationView({ ...object, status: { ...object.status, topology } }, undefined, 0);
  assert.equal(
    told.databases.map(({ leader, term }) => [leader, term]),
    [['n2', '7']],
  );
  assert.equal(
    told.databases[0]?.members.map(({ mark, word }) => `${word} ${mark}`),
    ['member unknown', 'leader unknown'],
    'a status is not what this process saw',
  );
  assert.is(told.evidence, undefined);
  assert.is(told.matrix, undefined);
});

test('conditions: Degraded and its like are good news when they are False, and Unknown is never well', () => {
  const status = (type: string, value: string): JsonObject => ({ type, status: value, reason: 'R', message: 'm' });
  const object = installationOf(well, readyCondition);
  const conditions = [
    status('Degraded', 'False'),
    status('OVNDBReady', 'False'),
    status('Failing', 'Unknown'),
    status('Progressing', 'True'),
  ];
  const view = installationView({ ...object, status: { conditions } }, undefined, 0);
  assert.equal(
    view.conditions.map(({ mark }) => mark),
    ['well', 'broken', 'unknown', 'working'],
  );
  assert.equal([view.ready.mark, view.ready.reason], ['unknown', 'Pending']);
});

test('release: phases, gates, what it waits for, what people set, and a history within bounds', () => {
  const waiting = releaseView(
    networkRelease({ gate: 'OVNDBReady(central)', reason: 'MemberJoining', message: 'n3 joins' }),
  );
  assert.equal(
    waiting.phases.map(({ name, mark, word }) => [name, mark, word]),
    [
      ['definitions', 'well', 'Done'],
      ['access', 'well', 'Done'],
      ['central', 'working', 'Waiting'],
      ['data-plane', 'idle', 'Pending'],
    ],
  );
  assert.equal(
    waiting.phases[2]?.gates.map(({ name, word }) => `${name} ${word}`),
    ['WorkloadsReady open', 'OVNDBReady not known', 'NorthdReady open'],
  );
  assert.is(waiting.phases[3]?.gates[0]?.mark, 'idle', 'a gate that nobody has come to is not shut');
  assert.equal([waiting.blocker?.what, waiting.blocker?.softLimit], ['OVNDBReady(central)', '10m0s']);
  assert.equal([waiting.history.length, waiting.historyMore], [pageLimits.history, 3]);
  const failed = releaseView(failedRelease());
  assert.equal(failed.loud, ['pin: eeeeeeeeeeee']);
  assert.is(failed.failures[0]?.reason, 'Conflict');
  const bare = releaseView({ apiVersion: 'keelson.dev/v1alpha1', kind: 'Release', metadata: { name: 'new' } });
  assert.equal([bare.state, bare.ready.reason, bare.phases.length], ['Initial', 'Pending', 0]);
  const bypassed = { type: 'OVNDBReady', scope: 'central', state: 'True', bypassed: true };
  const passed = releaseView({
    ...networkRelease(),
    status: { phases: [{ name: 'central', state: 'Done', gates: [bypassed] }] },
  });
  assert.equal([passed.phases[0]?.gates[0]?.mark, passed.phases[0]?.gates[0]?.word], ['unknown', 'bypassed']);
});

test('whatever lies in the cluster is escaped, secrets are redacted, and no mark is told by colour alone', async () => {
  const nasty = '<img src=x onerror=alert(1)>"\'&';
  const object = installationOf(well, {
    ...readyCondition,
    message: `${nasty} Authorization: Bearer abcdefgh12345678`,
  });
  const release = networkRelease();
  release.metadata.name = nasty;
  release.metadata.annotations = { 'keelson.dev/hold': `${nasty} token=verysecretvalue` };
  const model = modelOf(knownOf(object, well, [release]));
  const text = await textOf(model);
  assert.not.match(text, '<img');
  assert.match(text, '&lt;img src=x onerror=alert(1)&gt;');
  assert.not.match(text, /abcdefgh12345678|verysecretvalue/);
  assert.not.match(JSON.stringify(model), /abcdefgh12345678|verysecretvalue/);
  assert.not.match(text, / style=| on[a-z]+="|<script>/);
  const symbols = [...text.matchAll(/<span class="mark (\w+)" aria-hidden="true">(.)<\/span>/g)].map(
    ([, mark, symbol]) => `${mark}${symbol}`,
  );
  assert.ok(symbols.length > 20);
  assert.equal(
    [...new Set(symbols)].filter((one) => !['well✓', 'broken✗', 'unknown?', 'working▸', 'idle–'].includes(one)),
    [],
  );
});

test('the page of a process that does not lead, and of one that knows nothing yet, says so', async () => {
  assert.match(await textOf(modelOf(undefined)), 'stands by');
  assert.match(await textOf(modelOf({ ...all(), releases: [], installations: [] })), 'Nothing was delivered yet');
  assert.match(await textOf(modelOf(all())), 'leads since');
});

test('equal knowledge is an equal page, and more than it shows is counted', () => {
  assert.equal(modelOf(all(), 1_000), modelOf(all(), 2_000));
  const many = Array.from({ length: 130 }, (_, n) => ({ ...networkRelease(), metadata: { name: `r${n}` } }));
  const model = modelOf({ ...all(), releases: many });
  assert.equal([model.releases.length, model.more], [pageLimits.releases, 30]);
});

test('ages have one unit, and no moment is in the future', () => {
  assert.equal([-5_000, 59_400, 60_000, 3_599_000, 86_399_000, 172_800_000].map(ageText), [
    '0s',
    '59s',
    '1m',
    '59m',
    '23h',
    '2d',
  ]);
});

test('evidence report: one node when it is named, its age, and nothing from a process that does not lead', () => {
  const report = evidenceReport('executor-1', all(), 30_000, 'n2');
  const [one] = report.installations;
  assert.equal(
    [one?.ageMs, one?.stale, one?.nodes.length, one?.members.length, one?.northd.length],
    [30_000, false, 1, 2, 1],
  );
  assert.is(evidenceReport('executor-1', all(), 70_000, undefined).installations[0]?.stale, true);
  assert.equal(evidenceReport('executor-1', undefined, 0, undefined), {
    leads: false,
    identity: 'executor-1',
    installations: [],
  });
});

const leaving = (): Known => knownOf(installationOf(well, readyCondition), { ...well, drains: drainRows() }, []);

test('drain: cordoned nodes are shown with what would be lost; what is too old is unknown, and nobody else is shown', async () => {
  const [shown] = modelOf(leaving(), 30_000).installations;
  assert.equal(
    shown?.drains.map(({ node, mark, word, why }) => [node, mark, word, why.length]),
    [
      ['n1', 'well', 'drained', 0],
      ['n2', 'working', 'blocked', 2],
      ['n3', 'unknown', 'unknown', 1],
    ],
  );
  const text = await textOf(modelOf(leaving(), 30_000));
  assert.match(text, 'traffic goes through node n2');
  assert.not.match(text, 'node n4 is not cordoned');
  assert.equal(modelOf(leaving(), 31_000), modelOf(leaving(), 30_000), 'it does not change with time alone');
  assert.not.match(await textOf(modelOf(all())), 'would be lost');
});

test('drain: the report tells every node, its age and until when it holds', () => {
  const report = evidenceReport('executor-1', leaving(), 30_000, undefined).installations[0];
  assert.equal(
    report?.drains.map(({ node, state, ageMs, blockers, unknown }) => [
      ...[node, state, ageMs],
      [...blockers, ...unknown].map(({ reason }) => reason).join(' '),
    ]),
    [
      ['n1', 'drained', 30_000, ''],
      ['n2', 'blocked', 30_000, 'PodsRemain GatewayActive'],
      ['n3', 'unknown', 100_000, 'EvidenceStale'],
      ['n4', 'blocked', 30_000, 'NodeNotCordoned'],
    ],
  );
  assert.equal(
    evidenceReport('executor-1', leaving(), 30_000, 'n4').installations[0]?.drains.map(({ node }) => node),
    ['n4'],
  );
});

test.run();
