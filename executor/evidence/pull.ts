import { randomBytes, X509Certificate } from 'node:crypto';
import { limits } from '../../constructs/api/constants.ts';
import { enrolmentPath } from '../../constructs/api/enrolment.ts';
import { podURIs, sameNames } from '../../constructs/api/evidence/identity.ts';
import { type EvidenceKind, evidencePath } from '../../constructs/api/evidence/words.ts';
import { type EvidenceOf, parseEvidence } from '../../constructs/api/evidence.ts';
import type { Clock } from '../../constructs/lib/clock.ts';
import type { Outcome } from '../observe/round.ts';
import type { Trust } from '../pki/keeper.ts';
import { renewalDue } from '../pki/rotation.ts';
import { type Enrolled, type Enroller, handOver, signRequest } from './enrol.ts';
import { exchange } from './exchange.ts';
import { type Handshake, namesOf, type Peer, shakeHands } from './handshake.ts';
import type { ProbeTarget } from './target.ts';
import type { Open, Way } from './way.ts';

export interface PullOptions {
  readonly clock: Clock;
  /** What is believed now; undefined while nothing is. */
  readonly trust: () => Trust | undefined;
  readonly enroller: Omit<Enroller, 'signer'>;
  /** Ways to a pod, the first one that leads there being taken. */
  readonly ways: (target: ProbeTarget) => readonly Way[];
  readonly ports: (target: ProbeTarget) => readonly number[];
  /** Whether the pod is still the one that was to be asked; why not, otherwise. Looked up in memory. */
  readonly moved?: (target: ProbeTarget) => string | undefined;
  /** Milliseconds for one way, from dialling to the last byte. */
  readonly limitMs: number;
  readonly log: (message: string) => void;
}

/** A way's end that is not an answer. */
type Failed = {
  readonly type: 'Unreachable' | 'Untrusted' | 'Unreadable';
  readonly message: string;
  /** Nothing at all came within the limit. */
  readonly late?: true;
};
type Ended<K extends EvidenceKind> = Outcome<K> | Failed;

interface Dial<K extends EvidenceKind> {
  readonly options: PullOptions;
  readonly target: ProbeTarget<K>;
  readonly trust: Trust;
  readonly way: Way;
  readonly signal: AbortSignal;
}

const untrusted = (message: string): Failed => ({ type: 'Untrusted', message });

/**
 * Asks a probe for evidence, enrolling it where it has no certificate yet and renewing one that is due. What comes back is
 * an answer of the very pod that was asked, made for this request; or why there is none.
 */
export async function pullEvidence<K extends EvidenceKind>(
  target: ProbeTarget<K>,
  options: PullOptions,
  signal: AbortSignal,
): Promise<Outcome<K>> {
  const trust = options.trust();
  if (trust === undefined) return untrusted('the executor has no authority of evidence yet');
  const gone = options.moved?.(target);
  if (gone !== undefined) return { type: 'IdentityChanged', message: gone };
  const missed: string[] = [];
  for (const way of options.ways(target)) {
    const outcome = await withinLimit(options, signal, (limit) =>
      contained(() => overWay({ options, target, trust, way, signal: limit }), target, options),
    );
    signal.throwIfAborted();
    if (outcome.type !== 'Unreachable') return settled(outcome, target, options);
    missed.push(outcome.message);
  }
  return { type: 'Unreachable', message: missed.join('; ') };
}

/** Whatever one probe sends, and wherever it meets a defect of ours: the round of all the others goes on. */
async function contained<K extends EvidenceKind>(
  ask: () => Promise<Ended<K>>,
  { namespace, pod }: ProbeTarget<K>,
  { log }: PullOptions,
): Promise<Ended<K>> {
  try {
    return await ask();
  } catch (error) {
    // What the error says may be what the probe has sent.
    log(`pod ${namespace}/${pod} could not be asked: ${error instanceof Error ? error.name : 'a defect'}`);
    return { type: 'Unreadable', message: 'what it says can not be handled' };
  }
}

/** An answer counts only when its pod is still there. */
function settled<K extends EvidenceKind>(
  outcome: Ended<K>,
  target: ProbeTarget<K>,
  { moved }: PullOptions,
): Outcome<K> {
  const gone = outcome.type === 'Evidence' ? moved?.(target) : undefined;
  return gone === undefined ? outcome : { type: 'IdentityChanged', message: gone };
}

/** Runs with a signal that also aborts after the limit. */
async function withinLimit<T>(
  { clock, limitMs }: PullOptions,
  signal: AbortSignal,
  work: (limit: AbortSignal) => Promise<T>,
): Promise<T> {
  const [late, done] = [new AbortController(), new AbortController()];
  const timer = clock.sleep(limitMs, AbortSignal.any([done.signal, signal])).then(
    () => late.abort(),
    () => undefined,
  );
  try {
    return await work(AbortSignal.any([late.signal, signal]));
  } finally {
    done.abort();
    await timer;
  }
}

/** Every port in turn; what is worth most of what they come to. */
async function overWay<K extends EvidenceKind>(dial: Dial<K>): Promise<Ended<K>> {
  const missed: string[] = [];
  let other: Ended<K> | undefined;
  for (const port of dial.options.ports(dial.target)) {
    const outcome = await atPort(dial, port);
    // Another pod of the node may hold this port, and the right one the next.
    if (outcome.type === 'Unreachable') {
      missed.push(outcome.message);
      if ('late' in outcome) break;
    } else if (outcome.type === 'Untrusted') other ??= outcome;
    else return outcome;
  }
  return other ?? { type: 'Unreachable', message: missed.join('; ') };
}

type Met = { readonly type: 'met'; readonly peer: Peer } | Failed | { readonly type: 'Hung'; readonly limitMs: number };

/** Connects and shakes hands, as whoever the peer believes. */
async function meet<K extends EvidenceKind>(dial: Dial<K>, port: number, as?: number): Promise<Met> {
  const { options, trust, way, signal } = dial;
  const identity = trust.identities[as ?? 0];
  if (identity === undefined) return untrusted('the executor has no certificate yet');
  const opened = await way(port, signal);
  if (opened.type === 'unreachable') return { ...opened, type: 'Unreachable' };
  const shaken = await shakeHands(opened.stream, { authorities: trust.authorities, identity }, signal);
  return shaken.type === 'peer' ? { type: 'met', peer: shaken.peer } : unmet(shaken, opened, port, options);
}

/**
 * What a handshake that failed says. Whoever accepted a connection is there, and does not answer, or answers wrongly; on a way
 * that opens before anybody has accepted, silence and an end without a word only say that nobody was met.
 */
function unmet(
  shaken: Exclude<Handshake, { type: 'peer' }>,
  { unproven }: Open,
  port: number,
  { limitMs }: PullOptions,
): Exclude<Met, { type: 'met' }> {
  const place = unproven ?? `port ${port}`;
  switch (shaken.type) {
    case 'hung':
      if (unproven === undefined) return { type: 'Hung', limitMs };
      return { type: 'Unreachable', message: `${place}: nobody shook hands within ${limitMs} ms`, late: true };
    case 'letGo':
      if (unproven === undefined) return untrusted(`${place}: ${shaken.message}`);
      return { type: 'Unreachable', message: `${place}: it ended before anybody shook hands` };
    case 'unreachable':
      return { type: 'Unreachable', message: `${place}: ${shaken.message}` };
    case 'untrusted':
      return untrusted(`${place}: ${shaken.message}`);
  }
}

/** How often a probe is met anew: to enrol, to give a certificate up, to be asked as somebody else. */
const meetings = 6;

async function atPort<K extends EvidenceKind>(dial: Dial<K>, port: number): Promise<Ended<K>> {
  let as = 0;
  let last: Ended<K> = untrusted(`port ${port}: the probe could not be enrolled`);
  for (let n = 0; n < meetings; n += 1) {
    const met = await meet(dial, port, as);
    if (met.type !== 'met') return met;
    const next = await talk(dial, met.peer, port, as);
    if (next.type !== 'again') return next;
    if (next.why !== undefined) last = next.why;
    as = next.as;
    if (as >= dial.trust.identities.length) return last;
  }
  return last;
}

/** `again`: to be met once more, as this identity of the executor. */
type Talked<K extends EvidenceKind> = Ended<K> | { readonly type: 'again'; readonly as: number; readonly why?: Failed };

async function talk<K extends EvidenceKind>(dial: Dial<K>, peer: Peer, port: number, as: number): Promise<Talked<K>> {
  const { signal, options } = dial;
  if (peer.type === 'stale') {
    const answer = await exchange(peer.socket, { method: 'DELETE', path: enrolmentPath, limitBytes: 4096 }, signal);
    if (answer.type === 'hung') return { type: 'Hung', limitMs: options.limitMs };
    const why = untrusted(`port ${port}: its certificate is not believed (${peer.why})`);
    return { type: 'again', as: answer.type === 'answer' ? as : as + 1, why };
  }
  if (peer.type === 'new') return enrolled(dial, peer, port, as);
  const { target } = dial;
  const names = namesOf(peer.certificate);
  if (!sameNames(names, podURIs(target))) {
    peer.socket.destroy();
    return untrusted(`port ${port} is answered by ${names.join(' ') || 'somebody without a name'}`);
  }
  return asked(dial, peer, port, as);
}

/** Gives a new probe its certificate, and has it met again. */
async function enrolled<K extends EvidenceKind>(
  dial: Dial<K>,
  peer: Exclude<Peer, { type: 'stale' }>,
  port: number,
  as: number,
): Promise<Talked<K>> {
  const { options, target, trust, signal } = dial;
  const address = target.addresses[0] ?? '';
  const enroller = { ...options.enroller, signer: trust.signer };
  const signed = await signRequest(peer, target, address, enroller, signal);
  if (signed.type !== 'enrolled') return toOutcome(signed, options, port, as);
  const met = await meet(dial, port, as);
  if (met.type !== 'met') return met;
  const handed = await handOver(met.peer, signed.certificate, signal);
  return handed.type === 'enrolled' ? { type: 'again', as } : toOutcome(handed, options, port, as);
}

function toOutcome<K extends EvidenceKind>(
  failed: Exclude<Enrolled, { type: 'enrolled' }>,
  { limitMs }: PullOptions,
  port: number,
  as: number,
): Talked<K> {
  if (failed.type === 'hung') return { type: 'Hung', limitMs };
  const why = untrusted(`port ${port}: ${failed.message}`);
  // Where the peer let go, it may believe the executor as somebody else.
  return failed.type === 'untrusted' ? { type: 'again', as: as + 1, why } : why;
}

const askWith = (body: string) => ({ method: 'POST', body }) as const;

/** Asks for evidence; then looks whether the certificate is due. */
async function asked<K extends EvidenceKind>(
  dial: Dial<K>,
  peer: Extract<Peer, { type: 'known' }>,
  port: number,
  as: number,
): Promise<Talked<K>> {
  const { options, target, signal } = dial;
  const nonce = randomBytes(24).toString('hex');
  const path = `${evidencePath}?nonce=${nonce}`;
  const how = target.question === undefined ? ({ method: 'GET' } as const) : askWith(target.question);
  const answer = await exchange(peer.socket, { ...how, path, limitBytes: limits.evidenceBytes }, signal);
  switch (answer.type) {
    case 'hung':
      return { type: 'Hung', limitMs: options.limitMs };
    case 'letGo':
      return { type: 'again', as: as + 1, why: untrusted(`port ${port}: ${answer.message}`) };
    case 'tooLarge':
      return { type: 'Unreadable', message: `the answer has more than ${limits.evidenceBytes} bytes` };
    case 'garbled':
      return { type: 'Unreadable', message: 'the answer is not one of HTTP, or broke off' };
    case 'answer':
  }
  if (answer.status !== 200) return { type: 'Unreadable', message: `the probe answers with status ${answer.status}` };
  const outcome = readAnswer(answer.body, target, nonce);
  if (due(dial, peer.certificate)) await renew(dial, port, as);
  return outcome;
}

function readAnswer<K extends EvidenceKind>(body: Buffer, target: ProbeTarget<K>, nonce: string): Outcome<K> {
  const read = parseEvidence(body, { kind: target.kind, nonce });
  switch (read.outcome) {
    case 'evidence':
      return ofTarget(read.evidence, target);
    case 'unsupported':
      return { type: 'Unreadable', message: `the probe speaks ${read.schema}` };
    case 'tooLarge':
      return { type: 'Unreadable', message: `the answer has more than ${read.limitBytes} bytes` };
    case 'otherAnswer':
    case 'invalid':
      return { type: 'Unreadable', message: read.message };
  }
}

/** The certificate has said which pod it is; the answer has to say the same. */
function ofTarget<K extends EvidenceKind>(evidence: EvidenceOf<K>, target: ProbeTarget<K>): Outcome<K> {
  const { subject } = evidence;
  const members = ['namespace', 'pod', 'podUID', 'node', 'container'] as const;
  const other = members.find((member) => subject[member] !== target[member]);
  if (other === undefined) return { type: 'Evidence', evidence };
  return { type: 'Untrusted', message: `the answer is about ${other} ${subject[other]}, asked was ${target[other]}` };
}

function due<K extends EvidenceKind>({ trust, options }: Dial<K>, certificate: X509Certificate): boolean {
  const signer = new X509Certificate(trust.signer.certificate);
  const validity = { from: certificate.validFromDate.getTime(), to: certificate.validToDate.getTime() };
  return renewalDue(
    validity,
    certificate.checkIssued(signer) && certificate.verify(signer.publicKey),
    options.clock.now(),
  );
}

/** Renews a certificate that is still good. What goes wrong is told, and tried again with the next look. */
async function renew<K extends EvidenceKind>(dial: Dial<K>, port: number, as: number): Promise<void> {
  const { target, options } = dial;
  const met = await meet(dial, port, as);
  if (met.type === 'met' && met.peer.type === 'known' && sameNames(namesOf(met.peer.certificate), podURIs(target))) {
    const outcome = await enrolled(dial, met.peer, port, as);
    if (outcome.type === 'again' && outcome.why === undefined) return;
  }
  if (met.type === 'met') met.peer.socket.destroy();
  options.log(`the certificate of pod ${target.namespace}/${target.pod} could not be renewed`);
}
