/** Many evidence servers on loopback, each with an address and a key of its own; some hang, and some are not there. */
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { EvidenceSubject } from '../../constructs/api/evidence.ts';
import { systemClock } from '../../constructs/lib/clock.ts';
import type { Collectors } from '../../probes/server/collector.ts';
import { makeOffer } from '../../probes/server/offer.ts';
import { runProbe } from '../../probes/server/run.ts';
import { chassisCollectors } from './evidence-bed.ts';

export interface Member {
  readonly subject: EvidenceSubject;
  readonly address: string;
  readonly token: string;
  /** `hangs`: it accepts connections and says nothing. */
  readonly manner: 'answers' | 'hangs';
}

export interface FleetOptions {
  /** Folder for tokens. */
  readonly directory: string;
  readonly authoritiesFile: string;
  readonly members: readonly Member[];
  /** Ports of all of them, the first free one being taken; 0 for any. */
  readonly ports: readonly number[];
  /** Milliseconds that a look at a daemon takes. */
  readonly latencyMs: number;
}

export interface Fleet {
  /** Port by address. */
  readonly ports: ReadonlyMap<string, number>;
  /** How often each answered, by its address; a server that hangs counts connections. */
  readonly asked: ReadonlyMap<string, number>;
  stop(): Promise<void>;
}

/** Address `n` of a thousand, on this host alone. */
export const loopbackOf = (n: number): string => `127.77.${Math.floor(n / 250)}.${(n % 250) + 1}`;

/** Collectors of a chassis on which all is well, and which take their time. */
function slowly(latencyMs: number, systemID: string, looked: () => void): Collectors<'chassis'> {
  const { ovsdb, controller, vswitchd } = chassisCollectors;
  return {
    ovsdb: {
      limitMs: 5_000,
      async collect(signal) {
        looked();
        await delay(latencyMs, undefined, { signal });
        const facts = await ovsdb.collect(signal);
        if (facts.type !== 'ok') return facts;
        return { ...facts, value: { ...facts.value, systemID, encaps: [{ type: 'geneve', ip: '10.0.0.1' }] } };
      },
    },
    controller,
    vswitchd,
  };
}

/** Starts them all; what hangs is a socket that accepts. */
export async function startFleet(options: FleetOptions): Promise<Fleet> {
  const end = new AbortController();
  const [ports, asked] = [new Map<string, number>(), new Map<string, number>()];
  const running: Promise<unknown>[] = [];
  const count = (address: string): void => void asked.set(address, (asked.get(address) ?? 0) + 1);
  await mkdir(options.directory, { recursive: true });
  for (const member of options.members) {
    const looked = (): void => count(member.address);
    const port = await (member.manner === 'hangs' ? hang : serve)(member, options, looked, running, end.signal);
    ports.set(member.address, port);
  }
  return {
    ports,
    asked,
    async stop() {
      end.abort();
      await Promise.all(running);
    },
  };
}

async function serve(
  { subject, address, token }: Member,
  { directory, authoritiesFile, latencyMs, ports }: FleetOptions,
  looked: () => void,
  running: Promise<unknown>[],
  signal: AbortSignal,
): Promise<number> {
  const tokenFile = join(directory, `token-${subject.podUID}`);
  await writeFile(tokenFile, token);
  const listening = Promise.withResolvers<number>();
  running.push(
    runProbe(
      {
        kind: 'chassis',
        collectors: slowly(latencyMs, `system-${subject.node}`, looked),
        subject,
        version: 'test',
        clock: systemClock,
        random: Math.random,
        ports,
        host: address,
        authoritiesFile,
        tokenFile,
        makeOffer: () => makeOffer(subject, [address], Date.now()),
        log: () => undefined,
        onListening: listening.resolve,
      },
      signal,
    ),
  );
  return listening.promise;
}

async function hang(
  { address }: Member,
  { ports: [port = 0] }: FleetOptions,
  looked: () => void,
  running: Promise<unknown>[],
  signal: AbortSignal,
): Promise<number> {
  const server: Server = createServer((socket) => {
    looked();
    socket.on('error', () => undefined);
    socket.resume();
    signal.addEventListener('abort', () => socket.destroy(), { once: true });
  });
  server.listen(port, address);
  await once(server, 'listening');
  running.push(once(server, 'close'));
  signal.addEventListener('abort', () => server.close(), { once: true });
  const bound = server.address();
  return typeof bound === 'object' && bound !== null ? bound.port : 0;
}
