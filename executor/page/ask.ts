/** Asks the page of the executor that leads, through the API server and a kubelet, for what its last round saw. */
import { request } from 'node:http';
import type { Duplex } from 'node:stream';
import { leaseNames, ports } from '../../constructs/api/constants.ts';
import { isObject } from '../../constructs/lib/json.ts';
import { kubeletWay } from '../evidence/forward.ts';
import type { KubeClient } from '../kube/client.ts';
import type { CredentialSource } from '../kube/credentials.ts';
import type { EvidenceReport } from './evidence.ts';

export type AskedPage =
  | { readonly type: 'answered'; readonly report: EvidenceReport }
  /** Nobody could be asked, and why. */
  | { readonly type: 'unanswered'; readonly why: string };

export interface PageQuestion {
  readonly client: KubeClient;
  readonly credentials: CredentialSource;
  readonly namespace: string;
  readonly node: string | undefined;
  readonly limitMs: number;
}

const unanswered = (why: string): AskedPage => ({ type: 'unanswered', why });
const mostBytes = 8 * 1024 * 1024;

const pathOf = (node: string | undefined): string =>
  node === undefined ? '/evidence.json' : `/evidence.json?node=${encodeURIComponent(node)}`;

/** Asks whoever holds the Lease of the executor; the account needs `pods/portforward` in its namespace. */
export async function askLeader(question: PageQuestion, signal: AbortSignal): Promise<AskedPage> {
  const { client, credentials, namespace, limitMs } = question;
  const lease = await client.get(
    { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', namespace, name: leaseNames.role('executor') },
    { signal },
  );
  if (lease.type !== 'found') return unanswered('the Lease of the executor can not be read');
  const { spec } = lease.object;
  const holder = isObject(spec) && typeof spec.holderIdentity === 'string' ? spec.holderIdentity : '';
  if (holder === '') return unanswered('no executor leads');
  // A holder is the pod's name and a word that nobody had before.
  const pod = holder.slice(0, Math.max(0, holder.lastIndexOf('_')));
  const limit = AbortSignal.any([signal, AbortSignal.timeout(limitMs)]);
  const opened = await kubeletWay(credentials, { namespace, pod }, limitMs)(ports.page, limit);
  if (opened.type !== 'open') return unanswered(opened.message);
  return exchange(opened.stream, pathOf(question.node), limit);
}

/** Asks a page whose port is forwarded already. */
export async function askPage(url: string, node: string | undefined, signal: AbortSignal): Promise<AskedPage> {
  try {
    const reply = await fetch(new URL(pathOf(node), url), { signal, redirect: 'error' });
    return reply.ok ? readReport(await reply.text()) : unanswered(`${url} answers ${reply.status}`);
  } catch (error) {
    signal.throwIfAborted();
    return unanswered(`${url}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function readReport(text: string): AskedPage {
  try {
    const report: unknown = JSON.parse(text);
    if (isObject(report as never) && Array.isArray((report as { installations?: unknown }).installations))
      return { type: 'answered', report: report as EvidenceReport };
  } catch {
    // Told below.
  }
  return unanswered('the answer is not that of a status page');
}

function exchange(stream: Duplex, path: string, signal: AbortSignal): Promise<AskedPage> {
  return new Promise((resolve) => {
    const end = (answer: AskedPage): void => {
      stream.destroy();
      resolve(answer);
    };
    const sent = request({
      path,
      headers: { host: 'localhost' },
      createConnection: () => stream,
      signal,
    });
    sent.once('error', (error) => end(unanswered(`the page did not answer: ${error.message}`)));
    sent.once('response', (reply) => {
      const chunks: Buffer[] = [];
      let size = 0;
      reply.on('data', (chunk: Buffer) => {
        size += chunk.length;
        if (size > mostBytes) end(unanswered('the answer is too large'));
        else chunks.push(chunk);
      });
      reply.once('error', (error) => end(unanswered(`the answer broke off: ${error.message}`)));
      reply.once('end', () =>
        end(
          reply.statusCode === 200
            ? readReport(Buffer.concat(chunks).toString('utf8'))
            : unanswered(`the page answers ${reply.statusCode}`),
        ),
      );
    });
    sent.end();
  });
}
