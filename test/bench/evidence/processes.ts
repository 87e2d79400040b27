/** Evidence servers in processes of their own. */
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { FleetOptions } from '../../pure/evidence-fleet.ts';
import { spawnTied } from '../../tools/process.ts';

export interface FleetProcesses {
  /** How often each was asked, by its address. */
  asked(): Promise<ReadonlyMap<string, number>>;
  stop(): Promise<void>;
}

/** Divides the servers among `processes` processes, and waits until all listen. */
export async function startFleets(options: FleetOptions, processes: number): Promise<FleetProcesses> {
  const fleets = Array.from({ length: processes }, (_, share) => {
    const members = options.members.filter((_member, n) => n % processes === share);
    return startOne({ ...options, members });
  });
  const ready = await Promise.all(fleets.map(({ tell }) => tell()));
  const listening = ready.reduce((sum: number, one) => sum + Number(one), 0);
  if (listening !== options.members.length) throw new Error(`${listening} servers listen`);
  return {
    async asked() {
      const counts = await Promise.all(fleets.map(({ ask }) => ask()));
      return new Map(counts.flatMap((one) => one as [string, number][]));
    },
    async stop() {
      await Promise.all(fleets.map(({ stop }) => stop()));
    },
  };
}

function startOne(options: FleetOptions) {
  const program = fileURLToPath(new URL('./fleet.ts', import.meta.url));
  const child = spawnTied(process.execPath, [program], { stdio: ['pipe', 'pipe', 'inherit'], env: {} });
  const { stdin, stdout } = child;
  if (stdin === null || stdout === null) throw new Error('a fleet has no streams');
  const lines = createInterface({ input: stdout })[Symbol.asyncIterator]();
  const say = (line: string): void => void stdin.write(`${line}\n`);
  say(JSON.stringify(options));
  const tell = async (): Promise<unknown> => {
    const { value, done } = await lines.next();
    if (done === true) throw new Error('a fleet has ended');
    return JSON.parse(value);
  };
  return {
    tell,
    ask(): Promise<unknown> {
      say('counts');
      return tell();
    },
    async stop() {
      const ended = once(child, 'exit');
      stdin.end();
      await ended;
    },
  };
}
