import { createHash } from 'node:crypto';
import {
  enrolmentGrantText,
  enrolmentLimits,
  enrolmentPath,
  parseEnrolmentRequest,
} from '../../constructs/api/enrolment.ts';
import { signPod } from '../pki/certificates.ts';
import { readRequest, refusalOf } from '../pki/request.ts';
import type { Authority } from '../pki/rotation.ts';
import type { TokenOutcome } from '../pki/token.ts';
import { type Exchanged, exchange } from './exchange.ts';
import type { Peer } from './handshake.ts';
import type { ProbeTarget } from './target.ts';

export interface Enroller {
  readonly signer: Authority;
  readonly validity: () => { readonly from: number; readonly to: number };
  readonly review: (token: string, signal: AbortSignal) => Promise<TokenOutcome>;
}

/** `hung`: no answer within the limit. `failed`: it was not for the probe that it did not work. */
export type Enrolled =
  | { readonly type: 'enrolled'; readonly certificate: string }
  | { readonly type: 'untrusted'; readonly message: string }
  | { readonly type: 'hung' }
  | { readonly type: 'failed'; readonly message: string };

const untrusted = (message: string): Enrolled => ({ type: 'untrusted', message });

/** What stands in the way of an answer, in words. */
function without(answer: Exclude<Exchanged, { type: 'answer' }>): Enrolled {
  if (answer.type === 'hung') return { type: 'hung' };
  if (answer.type === 'letGo') return untrusted(answer.message);
  return untrusted(answer.type === 'tooLarge' ? 'what the peer asks for is too large' : 'the peer does not speak HTTP');
}

/** A client gives a request up by an exception. That the API server is slow says nothing of the probe that waits for it. */
async function reviewed({ review }: Enroller, token: string, signal: AbortSignal): Promise<TokenOutcome> {
  try {
    return await review(token, signal);
  } catch (error) {
    if (!signal.aborted) throw error;
    return { type: 'unavailable', message: 'the API server did not review its token in time' };
  }
}

const fingerprint = (der: Uint8Array): string => createHash('sha256').update(der).digest('hex');

/**
 * Asks a probe what it wants to have signed, and signs it when all of it names the pod that was dialled. The peer of a new
 * probe must use the very key that it wants to have signed: nobody between can put another one in.
 */
export async function signRequest(
  peer: Exclude<Peer, { type: 'stale' }>,
  target: ProbeTarget,
  address: string,
  enroller: Enroller,
  signal: AbortSignal,
): Promise<Enrolled> {
  const key = peer.certificate.publicKey.export({ type: 'spki', format: 'der' });
  const question = { method: 'GET', path: enrolmentPath, limitBytes: enrolmentLimits.request } as const;
  const answer = await exchange(peer.socket, question, signal);
  if (answer.type !== 'answer') return without(answer);
  const wanted = answer.status === 200 ? parseEnrolmentRequest(answer.body.toString('utf8')) : undefined;
  if (wanted === undefined) return untrusted(`the peer asks for no certificate (status ${answer.status})`);
  const read = await readRequest(wanted.csr);
  if (read.type === 'refused') return untrusted(read.why);
  const { request } = read;
  if (peer.type === 'new' && fingerprint(request.publicKey) !== fingerprint(key))
    return untrusted('the request is for another key than the one behind the connection');
  const token = await reviewed(enroller, wanted.token, signal);
  if (token.type === 'refused') return untrusted(token.why);
  if (token.type === 'unavailable') return { type: 'failed', message: token.message };
  const why = refusalOf(request, token.pod, target, address);
  if (why !== undefined) return untrusted(why);
  const { publicKey } = request;
  const { signer, validity } = enroller;
  const certificate = await signPod({
    authority: signer,
    publicKey,
    identity: target,
    addresses: target.addresses,
    validity: validity(),
  });
  return { type: 'enrolled', certificate };
}

/** Hands a certificate over. */
export async function handOver(peer: Peer, certificate: string, signal: AbortSignal): Promise<Enrolled> {
  const body = enrolmentGrantText({ certificate });
  const question = { method: 'PUT', path: enrolmentPath, body, limitBytes: 4096 } as const;
  const answer = await exchange(peer.socket, question, signal);
  if (answer.type !== 'answer') return without(answer);
  if (answer.status === 200) return { type: 'enrolled', certificate };
  return { type: 'failed', message: `the probe does not take its certificate (status ${answer.status})` };
}
