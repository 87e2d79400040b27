import type { JsonObject } from '../../constructs/lib/json.ts';
import { type CelCase, edit, installation, sha, uuidOf } from './cel-objects.ts';

const external = { northbound: 'tcp:ovn.example.org:6641', southbound: 'tcp:ovn.example.org:6642' };
const nodeNetworking = edit(installation, { '/spec/mode': 'nodeNetworking', '/spec/external': external });

const hcpOf = (role: string): JsonObject => ({
  enabled: true,
  role,
  peerNamespace: 'peer',
  tlsSecretRef: { name: 'ovn-tls' },
  northbound: 'ssl:[fd00::10]:6641',
  southbound: 'ssl:[fd00::10]:6642',
});
const hcp = edit(installation, { '/spec/mode': 'nodeNetworking', '/spec/hcp': hcpOf('dataPlane') });
const hcpCentral = edit(installation, { '/spec/mode': 'centralOnly', '/spec/hcp': hcpOf('central') });

const member: JsonObject = {
  name: 'ovn-central-4',
  node: 'node-4',
  storage: { claimName: 'ovn-central-4' },
  image: `docker.io/kubeovn/central-runtime:v1.16.2@${sha('b')}`,
  addresses: {
    northboundClient: 'tcp:10.0.0.4:16641',
    southboundClient: 'tcp:10.0.0.4:16642',
    northboundRaft: 'tcp:10.0.0.4:16643',
    southboundRaft: 'tcp:10.0.0.4:16644',
  },
};
const members = edit(installation, { '/spec/central': { memberRequests: [member] } });
const at = '/spec/central/memberRequests/0';
const retiring = edit(installation, {
  '/spec/central': { memberRequests: [{ name: 'smaller', retirePod: 'ovn-central-7d9c-abcde' }] },
});

const standalone = edit(installation, { '/spec/central': { replicas: 1, database: 'standalone' } });

const adoption = edit(installation, {
  '/spec/adoption': { enabled: true, selector: { matchLabels: { app: 'kube-ovn' } } },
});
const expression = edit(installation, {
  '/spec/adoption': { enabled: true, selector: { matchExpressions: [{ key: 'app', operator: 'Exists' }] } },
});

const backup = edit(installation, {
  '/spec/upgrade': { backup: { destination: 's3://backups/prod', schedule: '24h' } },
});

const endpointCases = ['external.northbound', 'external.southbound', 'hcp.northbound', 'hcp.southbound'].flatMap(
  (what) => {
    const [parent, side] = what.split('.');
    const base = parent === 'external' ? nodeNetworking : hcp;
    const protocol = parent === 'external' ? 'tcp' : 'ssl';
    const wrong = [
      'udp:10.0.0.1:6641',
      'tcp:10.0.0.1',
      'tcp:10.0.0.1:0',
      'ssl:host:65536',
      'tcp::6641',
      'tcp:a b:6641',
      'host:6641',
    ];
    return wrong.map((refused) => ({
      rule: `${what} must be tcp:<host>:<port> or ssl:<host>:<port> with a port from 1 to 65535`,
      accepted: edit(base, { [`/spec/${parent}/${side}`]: `${protocol}:ovn-central.example.org:65535` }),
      refused: edit(base, { [`/spec/${parent}/${side}`]: refused }),
    }));
  },
);

const listenerCases = ['northboundClient', 'southboundClient', 'northboundRaft', 'southboundRaft'].flatMap((what) =>
  ['tcp:10.0.0.4:1023', 'tcp:node-4:16650', 'tcp:10.0.0.256:16650', 'tcp:10.0.0.4', 'udp:10.0.0.4:16650'].map(
    (refused) => ({
      rule: `${what} must be tcp:<address>:<port> or ssl:<address>:<port> with a literal address and a port from 1024 to 65535`,
      accepted: edit(members, { [`${at}/addresses/${what}`]: 'tcp:[fd00::4]:16650' }),
      refused: edit(members, { [`${at}/addresses/${what}`]: refused }),
    }),
  ),
);

const sourceCases: [accepted: string, refused: string][] = [
  ['oci://registry.example.org/charts/kube-ovn', 'http://charts.example.org/kube-ovn.tgz'],
  ['oci://registry.example.org:5000/kube-ovn:v1.16.2', 'http://localhost/kube-ovn.tgz'],
  ['http://127.0.0.1:8080/kube-ovn.tgz', 'https://charts.example.org/kube-ovn.zip'],
  ['http://[::1]:8080/kube-ovn.tgz', 'https://user@charts.example.org/kube-ovn.tgz'],
  ['https://charts.example.org/a/b/kube-ovn.tgz', 'ftp://charts.example.org/kube-ovn.tgz'],
  ['https://[2001:db8::1]/kube-ovn.tgz', 'oci://registry.example.org'],
  ['https://charts.example.org:8443/kube-ovn.tgz', 'oci://registry.example.org/Charts/kube-ovn'],
];

const destinationCases: [accepted: string, refused: string][] = [
  ['file:///var/lib/keelson/backups', 'file://var/lib/backups'],
  ['file:///backups', '/var/lib/backups'],
  ['s3://backups', 's3:///prefix'],
  ['s3://backups/a/b', 's3://Backups/a'],
  ['s3://backups/', 'backups'],
];

const scheduleCases: [accepted: string, refused: string][] = [
  ['1m', '59s'],
  ['60s', '59999ms'],
  ['720h', '720h1s'],
  ['1h30m', '721h'],
];

/** The rules of KubeOVNInstallation. */
export const installationCases: readonly CelCase[] = [
  ...endpointCases,
  ...listenerCases,
  ...sourceCases.map(([accepted, refused]) => ({
    rule: 'chart.source must be an https:// URL of a .tgz, an oci:// repository, or http:// with a literal loopback address',
    accepted: edit(installation, { '/spec/chart/source': accepted }),
    refused: edit(installation, { '/spec/chart/source': refused }),
  })),
  ...destinationCases.map(([accepted, refused]) => ({
    rule: 'backup.destination must be file:///<absolute folder> or s3://<bucket>/<prefix>',
    accepted: edit(backup, { '/spec/upgrade/backup/destination': accepted }),
    refused: edit(backup, { '/spec/upgrade/backup/destination': refused }),
  })),
  ...scheduleCases.map(([accepted, refused]) => ({
    rule: 'schedule must be from 1m to 720h',
    accepted: edit(backup, { '/spec/upgrade/backup/schedule': accepted }),
    refused: edit(backup, { '/spec/upgrade/backup/schedule': refused }),
  })),
  {
    rule: 'the name must have at most 52 characters, because names are made from it',
    accepted: edit(installation, { '/metadata/name': 'n'.repeat(52) }),
    refused: edit(installation, { '/metadata/name': 'n'.repeat(53) }),
  },
  {
    rule: 'mode cannot be changed',
    old: installation,
    accepted: edit(installation, { '/spec/version': 'v1.16.3' }),
    refused: edit(installation, { '/spec/mode': 'centralOnly' }),
  },
  {
    rule: 'central.database cannot be changed',
    old: edit(installation, { '/spec/central': { replicas: 1 } }),
    accepted: edit(installation, { '/spec/central': { replicas: 1, database: 'raft' } }),
    refused: standalone,
  },
  {
    rule: 'an existingClaim brings its own class and size',
    accepted: edit(standalone, { '/spec/central/storage': { claim: { existingClaim: 'ovn' } } }),
    refused: edit(standalone, { '/spec/central/storage': { claim: { existingClaim: 'ovn', size: '10Gi' } } }),
  },
  {
    rule: 'central.storage must name exactly one of hostPath and claim',
    accepted: edit(installation, { '/spec/central': { storage: { hostPath: '/etc/origin/ovn' } } }),
    refused: edit(installation, { '/spec/central': { storage: { hostPath: '/etc/origin/ovn', claim: {} } } }),
  },
  {
    rule: 'central.storage must name exactly one of hostPath and claim',
    accepted: edit(standalone, { '/spec/central/storage': { claim: { size: '10Gi' } } }),
    refused: edit(standalone, { '/spec/central/storage': {} }),
  },
  {
    rule: 'a standalone database needs central.replicas: 1',
    accepted: standalone,
    refused: edit(standalone, { '/spec/central/replicas': undefined }),
  },
  {
    rule: 'memberRequests need a RAFT database',
    accepted: edit(standalone, { '/spec/central/memberRequests': [] }),
    refused: edit(standalone, { '/spec/central/memberRequests': [member] }),
  },
  {
    rule: 'a RAFT database lives on a hostPath, a standalone one in a claim',
    accepted: edit(standalone, { '/spec/central/storage': { claim: {} } }),
    refused: edit(standalone, { '/spec/central/storage': { hostPath: '/etc/origin/ovn' } }),
  },
  {
    rule: 'a RAFT database lives on a hostPath, a standalone one in a claim',
    accepted: edit(installation, { '/spec/central': { storage: { hostPath: '/etc/origin/ovn' } } }),
    refused: edit(installation, { '/spec/central': { storage: { claim: {} } } }),
  },
  {
    rule: 'the four addresses of a member must differ',
    accepted: members,
    refused: edit(members, { [`${at}/addresses/southboundRaft`]: 'tcp:10.0.0.4:16643' }),
  },
  {
    rule: 'a member request needs node, storage, image and addresses unless it only retires a pod',
    accepted: members,
    refused: edit(members, { [`${at}/node`]: undefined }),
  },
  {
    rule: 'a request with retirePod must name nothing else',
    accepted: retiring,
    refused: edit(retiring, { [`${at}/node`]: 'node-4' }),
  },
  {
    rule: 'a request with retirePod must name nothing else',
    accepted: edit(members, { [`${at}/replacePod`]: 'ovn-central-7d9c-abcde' }),
    refused: edit(retiring, { [`${at}/removalApprovalRef`]: { name: 'a', uid: uuidOf(1) } }),
  },
  {
    rule: 'ssl: addresses of a member need tlsSecretRef',
    accepted: edit(members, {
      [`${at}/tlsSecretRef`]: { name: 'member-tls' },
      [`${at}/addresses/northboundRaft`]: 'ssl:10.0.0.4:16643',
    }),
    refused: edit(members, { [`${at}/addresses/northboundRaft`]: 'ssl:10.0.0.4:16643' }),
  },
  ...(['role', 'peerNamespace', 'tlsSecretRef'] as const).map((field) => ({
    rule: `an enabled hcp needs ${field}`,
    accepted: hcp,
    refused: edit(hcp, { [`/spec/hcp/${field}`]: undefined }),
  })),
  {
    rule: 'an enabled hcp needs northbound and southbound',
    accepted: edit(installation, { '/spec/hcp': { enabled: false } }),
    refused: edit(hcp, { '/spec/hcp/southbound': undefined }),
  },
  {
    rule: 'both hcp endpoints must use the same protocol',
    accepted: hcp,
    refused: edit(hcp, { '/spec/hcp/southbound': 'tcp:[fd00::10]:6642' }),
  },
  {
    rule: 'In and NotIn need values, Exists and DoesNotExist take none',
    accepted: expression,
    refused: edit(expression, { '/spec/adoption/selector/matchExpressions/0/operator': 'In' }),
  },
  {
    rule: 'In and NotIn need values, Exists and DoesNotExist take none',
    accepted: edit(expression, {
      '/spec/adoption/selector/matchExpressions/0': { key: 'app', operator: 'In', values: ['ovs'] },
    }),
    refused: edit(expression, { '/spec/adoption/selector/matchExpressions/0/values': ['ovs'] }),
  },
  {
    rule: 'an enabled adoption needs a selector that is not empty',
    accepted: adoption,
    refused: edit(adoption, { '/spec/adoption/selector': undefined }),
  },
  {
    rule: 'an enabled adoption needs a selector that is not empty',
    accepted: edit(installation, { '/spec/adoption': {} }),
    refused: edit(adoption, { '/spec/adoption/selector/matchLabels': {} }),
  },
  {
    rule: 'mode nodeNetworking needs external or an enabled hcp',
    accepted: nodeNetworking,
    refused: edit(nodeNetworking, { '/spec/external': undefined }),
  },
  {
    rule: 'mode nodeNetworking needs external or an enabled hcp',
    accepted: hcp,
    refused: edit(hcp, { '/spec/hcp/enabled': false }),
  },
  {
    rule: 'external needs mode nodeNetworking',
    accepted: nodeNetworking,
    refused: edit(nodeNetworking, { '/spec/mode': 'full' }),
  },
  {
    rule: 'external and an enabled hcp exclude each other',
    accepted: edit(nodeNetworking, { '/spec/hcp': { enabled: false } }),
    refused: edit(nodeNetworking, { '/spec/hcp': hcpOf('dataPlane') }),
  },
  {
    rule: 'hcp role central needs mode centralOnly, role dataPlane needs mode nodeNetworking',
    accepted: hcpCentral,
    refused: edit(hcpCentral, { '/spec/hcp/role': 'dataPlane' }),
  },
  {
    rule: 'memberRequests need a local central',
    accepted: members,
    refused: edit(nodeNetworking, { '/spec/central': { memberRequests: [member] } }),
  },
];
