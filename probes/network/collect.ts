import { networkInterfaces } from 'node:os';
import type { NetworkCheck } from '../../constructs/api/evidence/network.ts';
import {
  type NetworkQuestion,
  parseNetworkQuestion,
  type WantedCheck,
} from '../../constructs/api/evidence/question.ts';
import type { Clock } from '../../constructs/lib/clock.ts';
import { fault, ok } from '../jsonrpc/fault.ts';
import type { Collectors } from '../server/collector.ts';
import { askEcho } from './ask.ts';
import { judgeEcho, judgeName } from './check.ts';
import { type Resolve, serviceName } from './names.ts';
import type { SourcePorts } from './source-ports.ts';

export interface NetworkOptions {
  readonly clock: Clock;
  /** Milliseconds for all that was asked; each check has less than that, so that the answer names which of them hung. */
  readonly limitMs: number;
  readonly resolve: Resolve;
  /** Text of the pod's resolv.conf; it tells the cluster's domain. */
  readonly resolvConf: () => Promise<string>;
  /** A nonce that nobody had before. */
  readonly nonce: () => string;
  /** Where questions come from. */
  readonly from: SourcePorts;
}

const checkShare = 0.8;
const mostAddresses = 8;

/** What the client of the network probe answers: it asks what it is told to, all of it at once and anew every time. */
export const networkCollectors = (options: NetworkOptions): Collectors<'network'> => ({
  addresses: { limitMs: options.limitMs, collect: async () => ok(ownAddresses()) },
  checks: {
    limitMs: options.limitMs,
    async collect(signal, text) {
      const question = text === undefined ? undefined : parseNetworkQuestion(text);
      if (question === undefined) return fault('protocol', 'checks: nothing was asked that this probe understands');
      return ok(await allChecks(question, options, signal));
    },
  },
});

/** Addresses of the pod, as its interfaces have them. */
const ownAddresses = (): string[] =>
  Object.values(networkInterfaces())
    .flatMap((interfaces) => interfaces ?? [])
    .filter(({ internal, address }) => !internal && !address.toLowerCase().startsWith('fe80:'))
    .map(({ address }) => address)
    .slice(0, mostAddresses);

async function allChecks(
  { checks, service }: NetworkQuestion,
  options: NetworkOptions,
  signal: AbortSignal,
): Promise<NetworkCheck[]> {
  const named = checks.some(({ target }) => target === 'name');
  const name = named && service !== undefined ? serviceName(service, await options.resolvConf()) : undefined;
  return Promise.all(checks.map((check) => timed(check, name, options, signal)));
}

/** One check within its own limit. */
async function timed(
  wanted: WantedCheck,
  name: string | undefined,
  options: NetworkOptions,
  signal: AbortSignal,
): Promise<NetworkCheck> {
  const { clock, limitMs } = options;
  const [late, done] = [new AbortController(), new AbortController()];
  const timer = clock.sleep(limitMs * checkShare, AbortSignal.any([done.signal, signal])).then(
    () => late.abort(),
    () => undefined,
  );
  const from = clock.monotonic();
  const found = await made(wanted, name, options, AbortSignal.any([late.signal, signal]));
  done.abort();
  await timer;
  const { target, family, address, port } = wanted;
  return { target, family, address, port, ...found, elapsedMs: Math.round(clock.monotonic() - from) };
}

type Made = Omit<NetworkCheck, 'target' | 'family' | 'address' | 'port' | 'elapsedMs'>;

async function made(
  wanted: WantedCheck,
  name: string | undefined,
  { resolve, nonce, from }: NetworkOptions,
  signal: AbortSignal,
): Promise<Made> {
  const { target, family, address, port } = wanted;
  if (target !== 'name') return judgeEcho(wanted, await askEcho({ address, port, nonce: nonce() }, from, signal));
  if (name === undefined) return { outcome: 'failed', message: 'DNS: the question names no Service' };
  const resolved = await resolve(name, family, signal);
  const wrong = judgeName(wanted, name, resolved);
  if (wrong !== undefined || resolved.type !== 'resolved') return wrong ?? { outcome: 'failed' };
  const [first = address] = resolved.addresses;
  const echoed = await askEcho({ address: first, port, nonce: nonce(), host: name }, from, signal);
  return { ...judgeEcho(wanted, echoed), resolved: [...resolved.addresses] };
}
