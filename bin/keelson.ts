import { systemClock } from '../constructs/lib/clock.ts';
import { main } from './program.ts';

/** The command line: the only place that touches the process. */
const controller = new AbortController();
for (const name of ['SIGINT', 'SIGTERM'] as const)
  process.once(name, () => controller.abort(new Error(`stopped by ${name}`)));

process.exitCode = await main(process.argv.slice(2), {
  env: process.env,
  cwd: process.cwd(),
  clock: systemClock,
  random: Math.random,
  signal: controller.signal,
  out: (text) => process.stdout.write(`${text}\n`),
  err: (text) => process.stderr.write(`${text}\n`),
  terminal: process.stdout.isTTY === true,
});
