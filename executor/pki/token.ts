import { managers } from '../../constructs/api/constants.ts';
import { evidenceAudience } from '../../constructs/api/evidence/identity.ts';
import { isObject, type JsonValue } from '../../constructs/lib/json.ts';
import type { KubeClient } from '../kube/client.ts';
import type { KubeObject } from '../kube/types.ts';
import type { TokenPod } from './request.ts';

/** `refused`: the token proves nothing here. `unavailable`: the API server did not say. */
export type TokenOutcome =
  | { readonly type: 'pod'; readonly pod: TokenPod }
  | { readonly type: 'refused'; readonly why: string }
  | { readonly type: 'unavailable'; readonly message: string };

const extraOf = (extra: JsonValue | undefined, key: string): string | undefined => {
  const values = isObject(extra) ? extra[`authentication.kubernetes.io/${key}`] : undefined;
  return Array.isArray(values) && values.length === 1 && typeof values[0] === 'string' ? values[0] : undefined;
};

const refused = (why: string): TokenOutcome => ({ type: 'refused', why });

/** Reads the answer to a review. A token that is bound to no pod, or made for another audience, proves no pod. */
export function readReview(status: JsonValue | undefined): TokenOutcome {
  if (!isObject(status) || status.authenticated !== true) return refused('the API server does not know the token');
  const { audiences, user } = status;
  if (!Array.isArray(audiences) || !audiences.includes(evidenceAudience))
    return refused(`the token was not made for the audience ${evidenceAudience}`);
  const { username, extra } = isObject(user) ? user : {};
  const [, namespace] = /^system:serviceaccount:([^:]+):[^:]+$/.exec(String(username)) ?? [];
  const [pod, podUID, node] = ['pod-name', 'pod-uid', 'node-name'].map((key) => extraOf(extra, key));
  if (namespace === undefined || pod === undefined || podUID === undefined)
    return refused('the token is not bound to a pod');
  return { type: 'pod', pod: { namespace, pod, podUID, ...(node === undefined ? {} : { node }) } };
}

/** Asks the API server whose token it is. The token is in the request and nowhere else. */
export async function reviewToken(client: KubeClient, token: string, signal: AbortSignal): Promise<TokenOutcome> {
  const review = {
    apiVersion: 'authentication.k8s.io/v1' as const,
    kind: 'TokenReview' as const,
    metadata: { name: 'keelson-evidence' },
    spec: { token, audiences: [evidenceAudience] },
  };
  const outcome = await client.create(review, { fieldManager: managers.objects, signal });
  if (outcome.type === 'created') return readReview((outcome.object as KubeObject).status);
  if (outcome.type === 'exists') return { type: 'unavailable', message: 'the review of the token was not carried out' };
  // What a refusal of a review says may hold what was reviewed; only the kind of refusal is told.
  return { type: 'unavailable', message: `the review of the token was not carried out: ${outcome.type}` };
}
