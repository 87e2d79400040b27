import { addressCases } from './cel-address-cases.ts';
import { installationCases } from './cel-installation-cases.ts';
import { approval, type CelCase, edit, recovery, release, sha, uuidOf } from './cel-objects.ts';

const reservation = { operationID: uuidOf(2), reservedAt: '2029-12-31T12:00:00Z' };
const reserved = edit(approval, { '/status': { observedGeneration: 1, phase: 'Reserved', reservation } });
const completed = edit(approval, {
  '/status': { observedGeneration: 1, phase: 'Completed', completedAt: '2029-12-31T13:00:00Z' },
});

const restore = edit(recovery, {
  '/spec/mode': 'reconvert',
  '/spec/targetMemberName': undefined,
  '/spec/backupRef': { pairID: sha('c') },
});
const ended = edit(recovery, { '/status': { observedGeneration: 1, phase: 'Failed' } });

const fromFlux = (path: string) =>
  edit(release, { '/spec/source': { flux: { kind: 'GitRepository', name: 'fleet', namespace: 'flux-system', path } } });

/**
 * One table of CEL rules: for each an object that is accepted and one that this rule refuses. It runs through our own
 * evaluator and through a real API server; a rule without an entry fails both suites.
 */
export const celCases: readonly CelCase[] = [
  ...installationCases,
  ...addressCases,
  {
    rule: 'the RAFT address must be tcp:<address>:<port> or ssl:<address>:<port> with a literal address',
    accepted: edit(approval, { '/spec/databases/0/address': 'ssl:[fd00::3]:6643' }),
    refused: edit(approval, { '/spec/databases/0/address': 'tcp:node-3:6643' }),
  },
  ...(
    [
      ['/spec/reason', 'another'],
      ['/spec/expiresAt', '2031-01-01T00:00:00Z'],
      ['/spec/operationID', uuidOf(9)],
      ['/spec/installationRef/uid', uuidOf(9)],
      ['/spec/databases/0/serverID', uuidOf(9)],
      ['/spec/requestedBy', 'somebody'],
    ] as const
  ).map(([pointer, value]) => ({
    rule: 'an approval cannot be changed, only revoked',
    old: approval,
    accepted: edit(approval, { '/spec/revoked': true }),
    refused: edit(approval, { [pointer]: value }),
  })),
  {
    rule: 'a revoked approval stays revoked',
    old: edit(approval, { '/spec/revoked': true }),
    accepted: edit(approval, { '/spec/revoked': true }),
    refused: approval,
  },
  {
    rule: 'the status of a completed approval cannot be changed',
    old: completed,
    status: true,
    accepted: completed,
    refused: edit(completed, { '/status/phase': 'Pending' }),
  },
  {
    rule: 'a reserved approval stays reserved for its operation',
    old: reserved,
    status: true,
    accepted: edit(reserved, { '/status/phase': 'Completed' }),
    refused: edit(reserved, { '/status/reservation/operationID': uuidOf(9) }),
  },
  {
    rule: 'mode rejoin needs targetMemberName, the other modes take none',
    accepted: recovery,
    refused: edit(recovery, { '/spec/targetMemberName': undefined }),
  },
  {
    rule: 'mode rejoin needs targetMemberName, the other modes take none',
    accepted: restore,
    refused: edit(restore, { '/spec/targetMemberName': 'ovn-central-4' }),
  },
  {
    rule: 'modes reconvert and freshBootstrap need backupRef, mode rejoin takes none',
    accepted: edit(restore, { '/spec/mode': 'freshBootstrap' }),
    refused: edit(restore, { '/spec/backupRef': undefined }),
  },
  {
    rule: 'modes reconvert and freshBootstrap need backupRef, mode rejoin takes none',
    accepted: recovery,
    refused: edit(recovery, { '/spec/backupRef': { pairID: sha('c') } }),
  },
  {
    rule: 'a recovery that has ended stays ended',
    old: ended,
    status: true,
    accepted: edit(ended, { '/status/observedGeneration': 2 }),
    refused: edit(ended, { '/status/phase': 'Executing' }),
  },
  {
    rule: 'name exactly one source: configMaps or flux',
    accepted: release,
    refused: edit(release, { '/spec/source': {} }),
  },
  {
    rule: 'name exactly one source: configMaps or flux',
    accepted: fromFlux('prod/payload/demo'),
    refused: edit(release, {
      '/spec/source/flux': {
        kind: 'GitRepository',
        name: 'fleet',
        namespace: 'flux-system',
        path: 'prod/payload/demo',
      },
    }),
  },
  ...['prod//demo', 'prod/./demo', 'prod/..', 'prod/'].map((path) => ({
    rule: 'the path must not hold empty, . or .. segments',
    accepted: fromFlux('prod/.payload/demo.v1'),
    refused: fromFlux(path),
  })),
  ...(
    [
      ['network-prod', 'network'],
      ['storage-a', 'storages-a'],
      ['addresses', 'addresses-x'],
      ['manifests-x', 'demo'],
    ] as const
  ).map(([accepted, refused]) => ({
    rule: 'the name must be network-<name>, storage-<name>, addresses or manifests-<name>',
    accepted: edit(release, { '/metadata/name': accepted }),
    refused: edit(release, { '/metadata/name': refused }),
  })),
  {
    rule: 'a release cannot depend on itself',
    accepted: edit(release, { '/spec/dependsOn': [{ name: 'network-prod' }] }),
    refused: edit(release, { '/spec/dependsOn': [{ name: 'network-prod' }, { name: 'manifests-demo' }] }),
  },
];
