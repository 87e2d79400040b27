import { systemClock } from '../../constructs/lib/clock.ts';
import { waitFor } from '../../constructs/lib/wait.ts';
import { registryAnswers } from '../../images/push.ts';
import { freePort } from '../tools/ports.ts';
import { exited, kill9, spawnTied } from '../tools/process.ts';
import { ensureTool } from '../tools/tools.ts';

export interface Crane {
  /** `127.0.0.1:<port>` */
  readonly host: string;
  close(): Promise<void>;
}

/** A registry by another hand on a free loopback port: `crane registry serve`, empty. */
export async function startCrane(): Promise<Crane> {
  const host = `127.0.0.1:${await freePort()}`;
  const crane = spawnTied(await ensureTool('crane'), ['registry', 'serve', '--address', host], { stdio: 'ignore' });
  const close = async (): Promise<void> => {
    await kill9(crane);
    await exited(crane);
  };
  const probe = async () => ((await registryAnswers(host)) ? true : undefined);
  try {
    await waitFor({ what: 'the registry', limitMs: 20_000, intervalMs: 50, clock: systemClock, probe });
  } catch (error) {
    await close();
    throw error;
  }
  return { host, close };
}
