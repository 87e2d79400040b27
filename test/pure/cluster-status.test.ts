/** `cluster/status` and the short answers: what real servers said, everything the grammar allows, and what is refused. */
import { readdirSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { clusterFacts } from '../../probes/central/cluster.ts';
import { type ClusterStatus, readClusterStatus } from '../../probes/unixctl/cluster-status.ts';
import type { Reading } from '../../probes/unixctl/reading.ts';
import {
  readConnectionStatus,
  readLines,
  readNorthdStatus,
  readPaused,
  readVersion,
} from '../../probes/unixctl/words.ts';
import { clusterStatuses, clusterStatusText } from './cluster-status-text.ts';

const folder = new URL('cluster-status/', import.meta.url);
const captured = (name: string): string => readFileSync(new URL(`${name}.txt`, folder), 'utf8');
function read(text: string): ClusterStatus {
  const reading = readClusterStatus(text);
  if (reading.type !== 'read') throw new Error(`line ${reading.line}: ${reading.message}`);
  return reading.value;
}
const refused = (text: string): string => {
  const reading = readClusterStatus(text);
  return reading.type === 'unreadable' ? `${reading.line}: ${reading.message}` : 'read';
};

test('every captured text is read, and written again it is the same', () => {
  const names = readdirSync(folder).map((name) => name.replace(/\.txt$/, ''));
  assert.ok(names.length >= 13, names.join());
  for (const name of names) assert.is(clusterStatusText(read(captured(name))), captured(name), name);
});

test('what captured texts say', () => {
  const leader = read(captured('three-leader'));
  assert.is(leader.status, 'member');
  assert.is(leader.role, 'leader');
  assert.equal(leader.leader, { type: 'self' });
  assert.is(leader.servers.length, 3);
  assert.equal(
    leader.servers.map(({ matchIndex }) => matchIndex),
    [4n, 4n, 4n],
  );
  assert.is(leader.commitIndex, 4n, 'the end of the log is the next index, not the last');
  const follower = read(captured('three-follower'));
  assert.equal(follower.leader, { type: 'other', nickname: leader.sid.slice(0, 4) });
  assert.equal(follower.connections[0], { direction: 'out', nickname: '0000', up: true });
  const joining = read(captured('joining-no-peer'));
  assert.is(joining.status, 'joining');
  assert.is(joining.cid, undefined);
  assert.equal(joining.remotes, ['tcp:127.0.0.8:6643', 'tcp:[127.0.0.7]:6643']);
  assert.equal(
    joining.connections.map(({ up }) => up),
    [false, false],
  );
  assert.equal(joining.servers, []);
  assert.is(read(captured('leaving')).status, 'leaving');
  const removing = read(captured('leader-removing'));
  assert.is(removing.removing?.phase, 'removing');
  assert.not(removing.servers.some(({ sid }) => sid === removing.removing?.sid));
  assert.is(read(captured('transferred-leader')).lastElection?.reason, 'leadership_transfer');
  assert.is(read(captured('election-timer-changing')).electionTimerChangesToMs, 2000n);
  assert.is(read(captured('election-timer-changing')).notCommitted, 1n);
  const candidate = read(captured('lost-candidate'));
  assert.equal([candidate.role, candidate.status, candidate.leader.type], ['candidate', 'member', 'unknown']);
  assert.is(candidate.servers.find(({ self }) => self)?.votedFor, candidate.nickname);
  assert.is(read(captured('lost-disconnected')).status, 'disconnected');
});

test('whatever the grammar allows is read as it was meant', () => {
  fc.assert(
    fc.property(clusterStatuses, (status) => {
      // A clone: what was made up has no prototype, what is read has one.
      assert.equal(readClusterStatus(clusterStatusText(status)), { type: 'read', value: structuredClone(status) });
    }),
    { numRuns: 500 },
  );
});

test('phases, two members with one prefix, no connections, the line of a newer server', () => {
  const text = captured('five-leader');
  const self = read(text).servers.find((one) => one.self)?.sid ?? '';
  const withAdding = text.replace(
    'Role:',
    'Adding server 1e10 (1e10 at ssl:[fd00::5]:6643) (adding: caught up)\nRole:',
  );
  assert.equal(read(withAdding).adding, [
    { nickname: '1e10', sid: '1e10', address: 'ssl:[fd00::5]:6643', phase: 'adding: caught up' },
  ]);
  const twins = text.replace('2f0e (2f0e at', '1c81 (1c81 at');
  assert.is(read(twins).servers.filter(({ sid }) => sid === '1c81').length, 2);
  assert.equal(read(text.replace(/^Connections:.*$/m, 'Connections: ')).connections, []);
  assert.is(read(text.replace('Role:', 'Weather: fine today\nRole:')).role, 'leader');
  assert.is(read(text.replace(/^Disconnections.*\n/m, '')).disconnections, undefined);
  assert.is(read(text.replace(`${self} (${self} at`, `s1 (${self} at`)).servers.at(-1)?.nickname, 's1');
});

test('what is missing, double or against itself is refused, with its line', () => {
  const text = captured('three-leader');
  const lines = text.trimEnd().split('\n');
  const of = (start: string): number => lines.findIndex((line) => line.startsWith(start)) + 1;
  for (const start of [
    'Name',
    'Cluster ID',
    'Server ID',
    'Address',
    'Status',
    'Role',
    'Term',
    'Leader',
    'Vote',
    'Election timer',
    'Log',
    'Entries not yet committed',
    'Entries not yet applied',
    'Connections',
    'Servers',
  ]) {
    const gone = lines.filter((line) => !line.startsWith(start)).join('\n');
    assert.is.not(refused(gone), 'read', `without ${start}`);
    const twice = lines.flatMap((line) => (line.startsWith(start) ? [line, line] : [line])).join('\n');
    assert.match(refused(twice), new RegExp(`^${of(start) + 1}: a second`), `two of ${start}`);
  }
  const cases: [string, string, RegExp][] = [
    ['Term: 1', 'Term: 1a', new RegExp(`^${of('Term')}: not a line`)],
    ['Term: 1', 'Term: -1', new RegExp(`^${of('Term')}: `)],
    ['Term: 1', 'Term: 18446744073709551616', new RegExp(`^${of('Term')}: `)],
    ['Role: leader', 'Role: king', /: not a line of the role/],
    ['Status: cluster member', 'Status: fine', /: not a line of the status/],
    ['Log: [2, 5]', 'Log: [2 5]', /: not a line of the log/],
    ['Connections: <-', 'Connections: (<-', /: connection 1 is none/],
    [' (self)', ' (Self)', /: not a line of the server/],
    [' (self)', '', /^read$/],
    ['    ', '  ', /: a line of no known form/],
    ['Role:', 'no such line\nRole:', /: a line of no known form/],
    ['Address: tcp:127.0.0.1', 'Address: tcp:127.0.0.9', /: this server has another address/],
  ];
  for (const [from, to, expected] of cases) assert.match(refused(text.replace(from, to)), expected, to);
  const [before = '', servers = ''] = text.split('Servers:\n');
  assert.match(refused(`${before}Servers:\n`), /: a member of a cluster that has none/);
  assert.match(refused(`${before}Servers:\n${servers}${servers}`), /: a second member that is this server/);
  for (const bad of ['', '\n', 'unknown cluster', 'a b\nName: x', '\u0000']) assert.is.not(refused(bad), 'read');
});

test('no text whatever makes a reader throw', () => {
  const total = (text: string): void => {
    for (const reader of [readClusterStatus, readNorthdStatus, readConnectionStatus, readPaused, readVersion] as ((
      text: string,
    ) => Reading<unknown>)[])
      assert.ok(['read', 'unreadable'].includes(reader(text).type));
    readLines(text);
  };
  const text = captured('five-leader');
  fc.assert(
    fc.property(fc.nat(text.length), fc.nat(30), fc.string({ unit: 'binary', maxLength: 20 }), (at, cut, put) => {
      total(`${text.slice(0, at)}${put}${text.slice(at + cut)}`);
      total(put);
    }),
    { numRuns: 1000 },
  );
});

test('facts: full ids, prefixes of others, indexes as text, what only a leader knows', () => {
  const facts = clusterFacts(read(captured('three-leader')));
  assert.is(facts.status, 'member');
  assert.equal(facts.log, { first: '2', last: '4', committed: '4', applied: '4', unapplied: '0', uncommitted: '0' });
  assert.is(facts.members.length, 3);
  assert.ok(facts.members.every(({ phase, matchIndex }) => phase === 'stable' && matchIndex === '4'));
  const follower = clusterFacts(read(captured('three-follower')));
  assert.ok(follower.members.every(({ phase, lastMessageMs }) => phase === undefined && lastMessageMs === undefined));
  const removing = clusterFacts(read(captured('leader-removing')));
  assert.equal(
    removing.members.filter(({ voting }) => voting === false).map(({ sid, phase }) => [sid, phase]),
    [['a382', 'removing']],
    'a server that is on its way out is counted no more',
  );
  const adding = captured('three-leader').replace(
    'Role:',
    'Adding server 1e10 (1e10 at tcp:127.0.0.5:6643) (adding: catchup)\nRole:',
  );
  assert.equal(clusterFacts(read(adding)).members.at(-1), {
    sid: '1e10',
    address: 'tcp:127.0.0.5:6643',
    self: false,
    phase: 'adding',
    voting: false,
  });
  const joining = clusterFacts(read(captured('joining-no-peer')));
  assert.equal([joining.cid, joining.leader, joining.joiningFrom?.length], [undefined, 'unknown', 2]);
  const counterless = captured('three-leader').replace('committed: 0', 'committed: 18446744073709551615');
  assert.is(clusterFacts(read(counterless)).log, undefined, 'a commit index beyond the log is none');
});

test('short answers', () => {
  const value = <T>(reading: Reading<T>): T | string => (reading.type === 'read' ? reading.value : reading.message);
  assert.equal(
    ['active', 'standby', 'paused'].map((word) => value(readNorthdStatus(`Status: ${word}\n`))),
    ['active', 'standby', 'paused'],
  );
  for (const bad of ['', 'active', 'Status: Active', 'Status: active\nmore'])
    assert.is(readNorthdStatus(bad).type, 'unreadable', bad);
  assert.equal(
    [value(readConnectionStatus('connected\n')), value(readConnectionStatus('not connected'))],
    [true, false],
  );
  assert.is(readConnectionStatus('toString').type, 'unreadable');
  assert.equal([value(readPaused('running')), value(readPaused('paused'))], [false, true]);
  assert.is(value(readVersion('ovsdb-server (Open vSwitch) 3.1.0')), '3.1.0');
  assert.is(value(readVersion('ovn-northd 25.03.1\nOpen vSwitch Library 3.5.0\n')), '25.03.1');
  assert.is(readVersion('who knows').type, 'unreadable');
  assert.equal(readLines('br-int\nbr-ex\n'), ['br-int', 'br-ex']);
});

test.run();
