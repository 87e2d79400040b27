import type { NetworkCheck } from '../../constructs/api/evidence/network.ts';
import type { ServerIdentity, WantedCheck } from '../../constructs/api/evidence/question.ts';
import type { Echoed } from './ask.ts';
import { plainAddress, type Resolved } from './names.ts';

/** What a check came to, from what was resolved and who answered. Pure. */

type Found = Pick<NetworkCheck, 'outcome'> & Partial<NetworkCheck>;

const mostResolved = 16;
const messageLength = 256;
const told = (message: string): string => message.slice(0, messageLength);

/** What a name came to; undefined where it leads to the address that was observed, and to no other. */
export function judgeName({ address, family }: WantedCheck, name: string, resolved: Resolved): Found | undefined {
  if (resolved.type !== 'resolved') return { outcome: resolved.type, message: told(`DNS: ${resolved.message}`) };
  const addresses = resolved.addresses.slice(0, mostResolved);
  if (addresses.length === 0) return { outcome: 'failed', message: told(`DNS: ${name} has no ${family} address`) };
  const wanted = plainAddress(address);
  return addresses.every((one) => one === wanted)
    ? undefined
    : { outcome: 'wrongAddress', resolved: addresses, message: told(`DNS: ${name} leads elsewhere`) };
}

const same = (a: ServerIdentity, b: ServerIdentity): boolean =>
  a.podUID === b.podUID && a.node === b.node && a.namespace === b.namespace;

/** What an answer came to: a healthy server that is another pod is as wrong as none. */
export function judgeEcho({ server }: WantedCheck, echoed: Echoed): Found {
  switch (echoed.type) {
    case 'answered':
      return { outcome: server === undefined || same(server, echoed.by) ? 'ok' : 'wrongPeer', answered: echoed.by };
    case 'stranger':
      return { outcome: 'wrongPeer', message: told(echoed.message) };
    case 'timeout':
    case 'refused':
    case 'failed':
      return { outcome: echoed.type, message: told(echoed.message) };
  }
}
