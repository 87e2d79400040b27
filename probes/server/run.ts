import type { EvidenceKind } from '../../constructs/api/evidence/words.ts';
import type { EvidenceSubject } from '../../constructs/api/evidence.ts';
import type { Clock, Random } from '../../constructs/lib/clock.ts';
import { answer, type Stuck } from './answer.ts';
import type { Collectors } from './collector.ts';
import { listenSomewhere } from './listen.ts';
import { Material } from './material.ts';
import type { Offer } from './offer.ts';
import { evidenceServer, type ServeLimits } from './serve.ts';

export interface ProbeOptions<K extends EvidenceKind> {
  readonly kind: K;
  readonly collectors: Collectors<K>;
  readonly subject: EvidenceSubject;
  readonly version: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly ports: readonly number[];
  readonly host?: string;
  readonly authoritiesFile: string;
  readonly tokenFile: string;
  readonly makeOffer: () => Promise<Offer>;
  readonly log: (message: string) => void;
  readonly limits?: Partial<ServeLimits>;
  readonly onListening?: (port: number) => void;
}

/** Serves evidence until the signal aborts. Nothing that it lacks meanwhile, a port or a certificate, makes it end. */
export async function runProbe<K extends EvidenceKind>(options: ProbeOptions<K>, signal: AbortSignal): Promise<void> {
  const { kind, collectors, subject, version, clock, log } = options;
  const material = new Material({ ...options, identity: subject });
  const stuck: Stuck = new Set();
  const { server, close } = evidenceServer({
    clock,
    material,
    log,
    answer: (nonce, question, gone) =>
      answer({
        kind,
        nonce,
        question,
        subject,
        version,
        collectors,
        clock,
        stuck,
        signal: AbortSignal.any([gone, signal]),
      }),
    ...(options.limits === undefined ? {} : { limits: options.limits }),
  });
  try {
    const port = await listenSomewhere({ ...options, server }, signal);
    if (port === undefined) return;
    server.on('error', (error) => log(`the server: ${error.message}`));
    log(`listening on port ${port}`);
    options.onListening?.(port);
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
  } finally {
    await close();
  }
}
