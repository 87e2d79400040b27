/**
 * HCPReady: whether OVN central, or the data plane, that another installation holds fits this one. A provider looks: the default
 * one at an installation of the same cluster. It fails closed, with a reason of its own for everything that does not fit;
 * what could merely not be reached is Unknown. No byte of a Secret is in here. Pure.
 */
import { ovnTLSSecret } from '../../constructs/api/constants.ts';
import type { InstallationSpec } from '../../constructs/api/kinds/kubeovn-installation-spec.ts';
import { broken, type Finding, type Judged, judge, open } from './finding.ts';

/** A Secret by which generation of it was looked with. */
export interface SecretGeneration {
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
}

/** An installation that may be the other half. */
export interface PeerInstallation {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly spec: Pick<InstallationSpec, 'version' | 'hcp'>;
}

export interface PeerEndpoint {
  readonly endpoint: string;
  readonly result:
    | {
        readonly type: 'served';
        /** Names of the databases that it has open. */
        readonly schemas: readonly string[];
        /** Those of them that are not connected: the server has joined no cluster, or has lost it. */
        readonly unconnected?: readonly string[];
        /** What SB tells chassis that match the version of northd. */
        readonly northdVersion?: string;
      }
    | { readonly type: 'unreachable'; readonly message: string }
    | { readonly type: 'untrusted'; readonly message: string };
}

/** What became of the client keys, told without a byte of them. */
export type PeerCertificate =
  | { readonly type: 'valid' }
  | { readonly type: 'keysMissing' }
  | { readonly type: 'invalid'; readonly message: string }
  /** On the executor's clock, milliseconds since 1970. */
  | { readonly type: 'outside'; readonly notBefore: number; readonly notAfter: number };

export interface PeerReport {
  /** As it was before the look and after it; undefined where there is none. */
  readonly secretBefore: SecretGeneration | undefined;
  readonly secretAfter: SecretGeneration | undefined;
  readonly certificate: PeerCertificate;
  /** Installations of the peer namespace that hold half of a pair. */
  readonly peers: readonly PeerInstallation[];
  readonly endpoints: readonly PeerEndpoint[];
}

/** What the round has of the other half. */
export type PeerObservation =
  | { readonly type: 'noProvider' }
  | { readonly type: 'pending' }
  | { readonly type: 'failed'; readonly message: string }
  | { readonly type: 'observed'; readonly report: PeerReport };

export interface OwnHalf {
  readonly namespace: string;
  readonly name: string;
  readonly spec: Pick<InstallationSpec, 'version' | 'hcp' | 'external'>;
}

/** What status tells of the pair. */
export interface PeerView {
  readonly peer: { readonly namespace: string; readonly name: string; readonly uid: string; readonly version: string };
  readonly secret: SecretGeneration;
  readonly endpoints: readonly { readonly endpoint: string; readonly reachable: boolean }[];
}

export interface JudgedPeer extends Judged {
  readonly view: PeerView | undefined;
}

const databases = { northbound: 'OVN_Northbound', southbound: 'OVN_Southbound' } as const;

type Pair = NonNullable<InstallationSpec['hcp']>;

/**
 * What is looked at of an installation: the pair that it is half of, or databases outside of any; of these only endpoints and
 * Secret are known, and nobody is the other half. Undefined where everything is its own.
 */
export function lookedAt({ hcp, external }: Pick<InstallationSpec, 'hcp' | 'external'>): Pair | undefined {
  if (hcp?.enabled === true) return hcp;
  return external === undefined ? undefined : { enabled: false, tlsSecretRef: { name: ovnTLSSecret }, ...external };
}

/** Whether keys are needed for a look. */
export const needsKeys = ({ enabled, northbound = '', southbound = '' }: Pair): boolean =>
  enabled || northbound.startsWith('ssl:') || southbound.startsWith('ssl:');

/** Whether an installation has another half that has to be seen before it may be Ready. */
export const needsPeer = ({ hcp, external }: Pick<InstallationSpec, 'hcp' | 'external'>): boolean =>
  hcp?.enabled === true || external !== undefined;

/**
 * Judges what a provider saw. Without `endpoints`, those need not be served yet: before its first write the central half has
 * nothing that could serve them.
 */
export function judgePeer(own: OwnHalf, observation: PeerObservation, { endpoints = true } = {}): JudgedPeer {
  const { hcp, external } = own.spec;
  const judged = (findings: readonly Finding[], message = '', view?: PeerView): JudgedPeer => ({
    ...judge('HCPReady', findings, { reason: 'PeerVerified', message }),
    view,
  });
  if (hcp?.enabled !== true) return judged(...externalFindings(external, observation));
  if (observation.type !== 'observed') return judged([unobserved(observation, 'the pair', 'the other half')]);
  const { report } = observation;
  const served = endpoints ? endpointFindings(report, hcp) : [];
  const findings = [...secretFindings(report, hcp), ...peerFindings(own, report), ...served];
  const [peer] = report.peers.filter((one) => isReciprocal(own, one));
  // Nothing is told of a pair that is not verified: what was told before is cleared.
  if (findings.length > 0 || peer === undefined || report.secretAfter === undefined) return judged(findings);
  const view: PeerView = {
    peer: { namespace: peer.namespace, name: peer.name, uid: peer.uid, version: peer.spec.version },
    secret: report.secretAfter,
    endpoints: report.endpoints.map(({ endpoint, result }) => ({ endpoint, reachable: result.type === 'served' })),
  };
  return judged(
    findings,
    `${peer.namespace}/${peer.name} of version ${peer.spec.version} fits, both databases are served`,
    view,
  );
}

/** Why there is no report. A pair without a provider fails closed. */
function unobserved(
  observation: Exclude<PeerObservation, { readonly type: 'observed' }>,
  about: string,
  component: string,
): Finding {
  switch (observation.type) {
    case 'noProvider':
      return broken('PeerProviderMissing', about);
    case 'pending':
      return open('PeerPending', about);
    case 'failed':
      return open('EvidenceIncomplete', about, { component, message: observation.message });
  }
}

/**
 * Databases outside of any pair. There is no other installation that could tell a role and a version: the databases themselves
 * tell which they are, that they belong to their clusters, and which northd works on them.
 */
function externalFindings(
  external: InstallationSpec['external'],
  observation: PeerObservation,
): [findings: Finding[], message: string] {
  const about = 'OVN central';
  const where = external === undefined ? 'at no known address' : `at ${external.northbound} and ${external.southbound}`;
  const looked = lookedAt({ external });
  if (looked === undefined || observation.type === 'noProvider')
    return [[open('PeerEvidenceMissing', about, { message: where })], ''];
  if (observation.type !== 'observed') return [[unobserved(observation, about, 'the other side')], ''];
  const { report } = observation;
  const findings = [...(needsKeys(looked) ? secretFindings(report, looked) : []), ...endpointFindings(report, looked)];
  const northd = peerNorthd(observation);
  if (findings.length === 0 && northd === undefined)
    findings.push(
      open('EvidenceIncomplete', about, { component: 'the version of northd', message: 'its SB does not tell it' }),
    );
  return [findings, `both databases ${where} are served, and northd ${northd ?? ''} works on them`];
}

const generationText = (one: SecretGeneration): string => `UID ${one.uid} at ${one.resourceVersion}`;

function secretFindings({ secretBefore, secretAfter, certificate }: PeerReport, hcp: Pair): Finding[] {
  const secret = hcp.tlsSecretRef?.name ?? 'without a name';
  const about = `Secret ${secret}`;
  if (secretBefore === undefined || secretAfter === undefined) return [broken('PeerSecretMissing', about, { secret })];
  const [wanted, observed] = [generationText(secretBefore), generationText(secretAfter)];
  if (wanted !== observed || secretAfter.name !== secret)
    return [open('PeerSecretRotated', about, { secret, wanted, observed })];
  switch (certificate.type) {
    case 'valid':
      return [];
    case 'keysMissing':
      return [broken('PeerSecretKeysMissing', about, { secret })];
    case 'invalid':
      return [broken('PeerCertificateInvalid', about, { secret, message: certificate.message })];
    case 'outside': {
      const [from, to] = [certificate.notBefore, certificate.notAfter].map((ms) => new Date(ms).toISOString());
      return [broken('PeerCertificateExpired', about, { secret, observed: `from ${from} to ${to}` })];
    }
  }
}

const isReciprocal = (own: OwnHalf, { namespace, spec }: PeerInstallation): boolean =>
  namespace === own.spec.hcp?.peerNamespace && spec.hcp?.enabled === true && spec.hcp.peerNamespace === own.namespace;

const plainVersion = (version: string): string => version.replace(/^v/, '');

function peerFindings(own: OwnHalf, { peers }: PeerReport): Finding[] {
  const namespace = own.spec.hcp?.peerNamespace ?? '';
  const halves = peers.filter((one) => one.namespace === namespace && one.spec.hcp?.enabled === true);
  const fitting = halves.filter((one) => isReciprocal(own, one));
  const [peer, ...more] = fitting;
  if (more.length > 0) return [broken('PeerAmbiguous', 'the pair', { wanted: namespace, observed: fitting.length })];
  if (peer === undefined) {
    const [other] = halves;
    if (other === undefined) return [broken('PeerMissing', 'the pair', { wanted: namespace })];
    const observed = other.spec.hcp?.peerNamespace ?? 'none';
    return [broken('PeerNotReciprocal', nameOf(other), { observed, wanted: own.namespace })];
  }
  const findings: Finding[] = [];
  const wanted = own.spec.hcp?.role === 'central' ? 'dataPlane' : 'central';
  if (peer.spec.hcp?.role !== wanted)
    findings.push(broken('PeerRoleWrong', nameOf(peer), { observed: peer.spec.hcp?.role ?? 'none', wanted }));
  const [observed, own_] = [peer.spec.version, own.spec.version].map(plainVersion);
  if (observed !== own_)
    findings.push(broken('PeerVersionDiffers', nameOf(peer), { observed: observed ?? '', wanted: own_ ?? '' }));
  return findings;
}

const nameOf = ({ namespace, name }: PeerInstallation): string => `KubeOVNInstallation ${namespace}/${name}`;

/** Both endpoints have to serve their database; that somebody listens there proves nothing. */
function endpointFindings({ endpoints }: PeerReport, hcp: Pair): Finding[] {
  const secret = hcp.tlsSecretRef?.name ?? 'without a name';
  return (['northbound', 'southbound'] as const).flatMap((which): Finding[] => {
    const wanted = databases[which];
    const endpoint = hcp[which] ?? which;
    const found = endpoints.find((one) => one.endpoint === endpoint);
    if (found === undefined)
      return [open('PeerEndpointUnreachable', endpoint, { endpoint, message: 'it was not asked' })];
    const { result } = found;
    if (result.type === 'unreachable')
      return [open('PeerEndpointUnreachable', endpoint, { endpoint, message: result.message })];
    if (result.type === 'untrusted')
      return [broken('PeerUntrusted', endpoint, { endpoint, secret, message: result.message })];
    if (result.unconnected?.includes(wanted))
      return [
        open('PeerEndpointUnreachable', endpoint, { endpoint, message: `${wanted} is not connected to its cluster` }),
      ];
    if (result.schemas.includes(wanted)) return [];
    return [
      broken('PeerSchemaDiffers', endpoint, { endpoint, observed: result.schemas.join(', ') || 'no database', wanted }),
    ];
  });
}

/** Version of the northd of the other half, as its SB tells chassis; undefined where nobody saw it. */
export function peerNorthd(observation: PeerObservation): string | undefined {
  if (observation.type !== 'observed') return undefined;
  const told = observation.report.endpoints.flatMap(({ result }) =>
    result.type === 'served' && result.northdVersion !== undefined ? [result.northdVersion] : [],
  );
  const [version] = told;
  return new Set(told).size === 1 ? version : undefined;
}
