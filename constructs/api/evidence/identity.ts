/**
 * Who is who between the executor and its probes. Names are URIs in certificates: a probe is its pod and its node, and
 * nothing that its node's other pods, or another node, could claim.
 */

/** Audience of the tokens by which a probe proves which pod it is; no API server takes them for anything else. */
export const evidenceAudience = 'keelson-evidence';

const authority = 'keelson://evidence';

/** Name of the executor in its certificate. */
export const executorURI = `${authority}/executor`;

/** A pod, and the node that it runs on. */
export interface PodIdentity {
  readonly namespace: string;
  readonly pod: string;
  readonly podUID: string;
  readonly node: string;
}

/** Names of a probe in its certificate: exactly these, in this order. */
export const podURIs = ({ namespace, pod, podUID, node }: PodIdentity): string[] => [
  `${authority}/namespaces/${namespace}/pods/${pod}/${podUID}`,
  `${authority}/nodes/${node}`,
];

/** URIs among the subject's alternative names, as Node prints them. What Node has to quote is none of ours. */
export const urisOf = (subjectAltName: string | undefined): string[] =>
  (subjectAltName ?? '')
    .split(', ')
    .filter((name) => name.startsWith('URI:'))
    .map((name) => name.slice('URI:'.length));

/** Extended key usages, as object identifiers. */
export const keyUsages = { server: '1.3.6.1.5.5.7.3.1', client: '1.3.6.1.5.5.7.3.2' } as const;

export const sameNames = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((name, n) => name === b[n]);
